#!/usr/bin/env python3
"""Checks a proving daemon through gRPC's own Python implementation, as a stranger would use it.

    check.py ADDRESS --proto DIR [input]

Two clients: one that knows nothing beforehand and works by reflection alone, and one with stubs that are generated from
our proto file. Each check prints a line; the exit code is 0 if all hold, 1 if one does not, 2 for wrong usage.

The input is a small WindowPoSt: a JSON array of base64 strings, as sealing software writes it, and the public values
that belong to it.
"""

import argparse
import base64
import contextlib
import importlib
import json
import pathlib
import sys
import tempfile
import time
import uuid

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

# Curio's limits, in both directions.
OPTIONS = [("grpc.max_send_message_length", 256 << 20), ("grpc.max_receive_message_length", 256 << 20)]
PROOF_BYTES = 192
# For calls that do not wait for a proof.
SOON = 10


class Failed(Exception):
    """A check that does not hold."""


def expect(condition, message):
    if not condition:
        raise Failed(message)


def refused(call, code, what):
    """The status with which a call is refused, which must have this code and say something."""
    try:
        answer = call()
    except grpc.RpcError as error:
        expect(error.code() == code, f"{what}: refused with {error.code()} ({error.details()}), expected {code}")
        expect(error.details(), f"{what}: the refusal says nothing")
        return error
    raise Failed(f"{what}: accepted, answered {answer!r}; expected {code}")


def stubs(proto_dir):
    """Messages and stubs generated from our proto file into a temporary directory."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as out:
        arguments = ["protoc", f"-I{proto_dir}", f"--python_out={out}", f"--grpc_python_out={out}", "cuzk.proto"]
        expect(protoc.main(arguments) == 0, "grpcio-tools does not take the proto file")
        sys.path.insert(0, out)
        try:
            return importlib.import_module("cuzk_pb2"), importlib.import_module("cuzk_pb2_grpc")
        finally:
            sys.path.remove(out)


class Bearer(
    grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamStreamClientInterceptor
):
    """Puts a token on every call, those of reflection and health included."""

    def __init__(self, token):
        self.header = ("authorization", f"Bearer {token}")

    def _intercept(self, continuation, details, request):
        metadata = [*(details.metadata or []), self.header]
        return continuation(details._replace(metadata=metadata), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_stream = _intercept


class Checks:
    def __init__(self, channel, pb, pb_grpc, arguments):
        self.channel = channel
        self.pb = pb
        self.engine = pb_grpc.ProvingEngineStub(channel)
        self.extra = pb_grpc.EngineStub(channel)
        self.limit = arguments.limit
        encoded = json.loads(pathlib.Path(arguments.vanilla).read_text(encoding="utf-8"))
        self.vanilla = [base64.b64decode(text, validate=True) for text in encoded]
        self.arguments = arguments
        # Names of this run's requests: the daemon may know those of an earlier run.
        self.run = uuid.uuid4().hex[:12]

    def request(self, name="", **changes):
        arguments = self.arguments
        request = self.pb.SubmitProofRequest(
            request_id=f"{self.run}-{name}" if name else "",
            proof_kind=self.pb.WINDOW_POST_PARTITION,
            sector_size=arguments.sector_size,
            registered_proof=arguments.registered_proof,
            vanilla_proofs=self.vanilla,
            miner_id=arguments.miner,
            randomness=bytes.fromhex(arguments.randomness),
            partition_index=arguments.partition,
        )
        for field, value in changes.items():
            request.ClearField(field)
            if isinstance(value, list):
                getattr(request, field).extend(value)
            elif value is not None:
                setattr(request, field, value)
        return request

    def call(self, method, request, timeout=SOON):
        return getattr(self.engine, method)(request, timeout=timeout)

    def wait(self, job, timeout_ms=0):
        request = self.pb.AwaitProofRequest(job_id=job, timeout_ms=timeout_ms)
        return self.call("AwaitProof", request, self.limit)

    def expect_proof(self, end, what):
        status = self.pb.AwaitProofResponse.Status.Name(end.status)
        expect(status == "COMPLETED", f"{what}: ended as {status}: {end.error_message}")
        size = len(end.proof)
        expect(size and size % PROOF_BYTES == 0, f"{what}: the proof has {size} bytes, which is not {PROOF_BYTES} each")
        expect(end.verified, f"{what}: the proof was not verified before it was released")
        expect(end.total_ms >= end.queue_wait_ms, f"{what}: it waited longer than it took")

    # The checks, in this order.

    def reflection_alone(self):
        """A generic client lists the services and calls GetStatus, with descriptors from reflection only."""
        database = ProtoReflectionDescriptorDatabase(self.channel)
        services = set(database.get_services())
        wanted = {"cuzk.v1.ProvingEngine", "cuzk.v1.Engine", "grpc.health.v1.Health"}
        expect(wanted <= services, f"listed are {sorted(services)}; missing: {sorted(wanted - services)}")
        pool = descriptor_pool.DescriptorPool(database)
        method = pool.FindServiceByName("cuzk.v1.ProvingEngine").FindMethodByName("GetStatus")
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        path = f"/{method.containing_service.full_name}/{method.name}"
        call = self.channel.unary_unary(path, request.SerializeToString, response.FromString)
        status = call(request(), timeout=SOON)
        expect(status.state == "running", f"the state is {status.state!r}")
        return f"{len(services)} services; version {status.version}"

    def health(self):
        """gRPC's standard health service says that it serves."""
        stub = health_pb2_grpc.HealthStub(self.channel)
        for service in ["", "cuzk.v1.ProvingEngine"]:
            request = health_pb2.HealthCheckRequest(service=service)
            answer = stub.Check(request, timeout=SOON)
            status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
            expect(status == "SERVING", f"service {service!r} is {status}")
        request = health_pb2.HealthCheckRequest(service="no.such.Service")
        refused(
            lambda: stub.Check(request, timeout=SOON),
            grpc.StatusCode.NOT_FOUND,
            "health of an unknown service",
        )

    def submit_and_await(self):
        """A proof is handed in and awaited, and can be fetched again."""
        submitted = self.call("SubmitProof", self.request("await"))
        expect(submitted.job_id and not submitted.joined, f"answered {submitted!r}")
        end = self.wait(submitted.job_id)
        self.expect_proof(end, "AwaitProof")
        expect(end.job_id == submitted.job_id, f"asked for {submitted.job_id}, answered {end.job_id}")
        again = self.wait(submitted.job_id)
        expect(again.proof == end.proof, "the second answer has another proof")
        return f"{len(end.proof)} bytes in {end.total_ms} ms on {end.device}"

    def prove_with_deadline(self):
        """Curio's way: a unary Prove under a deadline."""
        request = self.pb.ProveRequest(submit=self.request("prove"))
        self.expect_proof(self.call("Prove", request, self.limit).result, "Prove")

    def request_id_joins(self):
        """The same name and input joins; the same name with another input is new work."""
        first = self.call("SubmitProof", self.request("joined"))
        second = self.call("SubmitProof", self.request("joined"))
        expect(second.joined and second.job_id == first.job_id, f"{first!r} was not joined by {second!r}")
        # Fewer or more sectors are another statement.
        other = self.vanilla[:1] if len(self.vanilla) > 1 else self.vanilla * 2
        third = self.call("SubmitProof", self.request("joined", vanilla_proofs=other))
        expect(third.job_id != first.job_id and not third.joined, "another input joined the work of its name")
        self.call("CancelProof", self.pb.CancelProofRequest(job_id=third.job_id))
        nameless = {self.call("SubmitProof", self.request()).job_id for _ in range(2)}
        expect(len(nameless) == 2, "requests without a name were joined")
        for job in nameless | {first.job_id}:
            self.expect_proof(self.wait(job), "after joining")

    def short_wait(self):
        """A wait that ends before the proof does leaves the work as it is."""
        job = self.call("SubmitProof", self.request("short")).job_id
        end = self.wait(job, timeout_ms=1)
        names = self.pb.AwaitProofResponse.Status
        expect(end.status in (names.TIMEOUT, names.COMPLETED), f"ended as {names.Name(end.status)}")
        self.expect_proof(self.wait(job), "after a short wait")

    def cancel(self):
        """A job is cancelled; one that has ended is not."""
        # The last waits behind the others, if these take longer than a call does: else more of them do.
        for burst in (4, 32, 256):
            calls = [
                self.engine.SubmitProof.future(self.request(f"cancel-{burst}-{i}"), timeout=self.limit)
                for i in range(burst)
            ]
            jobs = [call.result().job_id for call in calls]
            last = max(calls, key=lambda call: call.result().queue_position).result().job_id
            answer = self.call("CancelProof", self.pb.CancelProofRequest(job_id=last))
            if answer.was_running:
                break
        expect(answer.was_running, "the last of 256 jobs had ended when it was cancelled")
        jobs.remove(last)
        end = self.wait(last)
        status = self.pb.AwaitProofResponse.Status.Name(end.status)
        expect(status == "CANCELLED", f"the cancelled job ended as {status}")
        expect(not end.proof, "a cancelled job has a proof")
        for job in jobs:
            self.expect_proof(self.wait(job), "beside a cancelled one")
        answer = self.call("CancelProof", self.pb.CancelProofRequest(job_id=jobs[0]))
        expect(not answer.was_running, "a job that had ended was cancelled")

    def watch(self):
        """A stream of news ends with the job."""
        job = self.call("SubmitProof", self.request("watch")).job_id
        request = self.pb.WatchProofRequest(job_id=job)
        news = list(self.extra.WatchProof(request, timeout=self.limit))
        expect(news and all(entry.job_id == job for entry in news), f"news are {news!r}")
        last = self.pb.ProofProgress.State.Name(news[-1].state)
        expect(last == "COMPLETED", f"the last news is {last}")
        expect(news[-1].partitions_done == news[-1].partitions > 0, f"not all partitions are done: {news[-1]!r}")
        listed = self.extra.ListProofs(self.pb.ListProofsRequest(limit=100), timeout=SOON)
        expect(job in [proof.job_id for proof in listed.proofs], "the job is not listed")

    def status_and_metrics(self):
        """Status as Curio reads it for back-pressure, and the metrics that clients know."""
        status = self.call("GetStatus", self.pb.GetStatusRequest(), 5)
        expect(status.total_proofs_completed > 0, "no proof is counted")
        expect(len(status.queues) == 4, f"{len(status.queues)} queues, expected one for each kind")
        expect(len(status.gpus) > 0, "no device is shown")
        text = self.call("GetMetrics", self.pb.GetMetricsRequest()).prometheus_text
        samples = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line and line[0] != "#"}
        known = {
            "cuzk_proofs_completed_total", "cuzk_proofs_failed_total", "cuzk_uptime_seconds", "cuzk_queue_depth",
            "cuzk_proofs_completed", "cuzk_proofs_failed", "cuzk_running_jobs", "cuzk_gpu_workers",
        }
        expect(known <= samples, f"missing metrics: {sorted(known - samples)}")
        histogram = any(name.startswith("cuzk_proof_duration_seconds") for name in samples)
        expect(histogram, "cuzk_proof_duration_seconds is missing")

    def wrong_input(self):
        """What is wrong is INVALID_ARGUMENT, whatever is wrong with it."""
        wrong = {
            "no kind": self.request(proof_kind=None),
            "an unknown kind": self.request(proof_kind=77),
            "no input": self.request(vanilla_proofs=[]),
            "an empty input": self.request(vanilla_proofs=[b""]),
            "an unknown sector size": self.request(sector_size=2047),
            "no randomness": self.request(randomness=None),
            "short randomness": self.request(randomness=b"x" * 31),
            "another kind's input": self.request(proof_kind=self.pb.POREP_SEAL_COMMIT),
            "an unknown priority": self.request(priority=99),
        }
        if not self.arguments.fake:
            # What takes knowledge of the circuit to see.
            wrong["a truncated input"] = self.request(vanilla_proofs=[self.vanilla[0][:-1], *self.vanilla[1:]])
            wrong["noise"] = self.request(vanilla_proofs=[bytes(range(256)) * 20])
        for what, request in wrong.items():
            refused(lambda r=request: self.call("SubmitProof", r), grpc.StatusCode.INVALID_ARGUMENT, what)
        request = self.pb.ProveRequest()
        refused(lambda: self.call("Prove", request), grpc.StatusCode.INVALID_ARGUMENT, "Prove of nothing")
        # Bytes that are no message of this type.
        raw = self.channel.unary_unary("/cuzk.v1.ProvingEngine/SubmitProof")
        code = grpc.StatusCode.INVALID_ARGUMENT
        refused(lambda: raw(b"\xff\xff\xff", timeout=SOON), code, "no message")
        unknown = {
            "AwaitProof": self.pb.AwaitProofRequest(job_id="no-such-job"),
            "CancelProof": self.pb.CancelProofRequest(job_id="no-such-job"),
        }
        for method, request in unknown.items():
            refused(lambda m=method, r=request: self.call(m, r), grpc.StatusCode.NOT_FOUND, f"{method} of nothing")

    def gone_deadline(self):
        """A caller's deadline is honoured, and the work it gave up on can be joined."""
        request = self.pb.ProveRequest(submit=self.request("gone"))
        started = time.monotonic()
        with contextlib.suppress(grpc.RpcError):
            self.call("Prove", request, 0.001)
        expect(time.monotonic() - started < 5, "a deadline of a millisecond took seconds")
        self.expect_proof(self.call("Prove", request, self.limit).result, "Prove after a missed deadline")

    ALL = [
        reflection_alone, health, submit_and_await, prove_with_deadline, request_id_joins, short_wait, cancel, watch,
        status_and_metrics, wrong_input, gone_deadline,
    ]


def channel_to(address, ca):
    """A channel in the notation of our other clients, which is nearly gRPC's."""
    for prefix in ("http://", "https://"):
        address = address.removeprefix(prefix)
    options = OPTIONS
    if address.startswith("unix:"):
        # gRPC core would send the percent-encoded path as the authority, which strict HTTP/2 servers refuse.
        options = [*OPTIONS, ("grpc.default_authority", "localhost")]
    if ca:
        credentials = grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes())
        return grpc.secure_channel(address, credentials, options)
    return grpc.insecure_channel(address, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("address", help="host:port or unix:///path")
    parser.add_argument("--proto", required=True, help="the directory of cuzk.proto")
    parser.add_argument("--vanilla", required=True, help="WindowPoSt vanilla proofs: a JSON array of base64 strings")
    parser.add_argument("--sector-size", type=int, default=2048, help="bytes")
    parser.add_argument("--registered-proof", type=int, default=10, help="the chain's number; 10: window V1_1, 2 KiB")
    parser.add_argument("--miner", type=int, default=1000, help="actor id")
    parser.add_argument("--randomness", required=True, help="64 hexadecimal digits")
    parser.add_argument("--partition", type=int, default=0, help="number of the partition")
    parser.add_argument("--limit", type=float, default=300, help="seconds that a proof may take")
    parser.add_argument("--ca", help="certificates (PEM) of the authority that has signed the daemon's")
    parser.add_argument("--token-file", help="a file with the token that the daemon knows the caller by")
    parser.add_argument("--fake", action="store_true", help="the daemon does not look into vanilla proofs")
    arguments = parser.parse_args()

    with channel_to(arguments.address, arguments.ca) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=30)
        except grpc.FutureTimeoutError:
            print(f"FAILED  cannot connect to {arguments.address} within 30 s", flush=True)
            return 1
        if arguments.token_file:
            token = pathlib.Path(arguments.token_file).read_text(encoding="utf-8").strip()
            called = grpc.intercept_channel(channel, Bearer(token))
        else:
            called = channel
        checks = Checks(called, *stubs(arguments.proto), arguments)
        failures = 0
        for check in Checks.ALL:
            name = check.__name__.replace("_", " ")
            started = time.monotonic()
            try:
                told = check(checks)
                detail = f": {told}" if told else ""
                print(f"ok      {name} ({time.monotonic() - started:.2f} s){detail}", flush=True)
            except Failed as error:
                failures += 1
                print(f"FAILED  {name}: {error}", flush=True)
            except grpc.RpcError as error:
                failures += 1
                print(f"FAILED  {name}: {error.code()}: {error.details()}", flush=True)
    print(f"{len(Checks.ALL) - failures} of {len(Checks.ALL)} checks hold")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
