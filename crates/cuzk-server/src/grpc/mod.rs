//! The gRPC side: both services of `cuzk.v1`, health and reflection, over [`Jobs`] and a [`Prover`].
//!
//! | code | when |
//! |---|---|
//! | `INVALID_ARGUMENT` | a field is wrong, a message cannot be decoded, or the prover says that the input is wrong |
//! | `FAILED_PRECONDITION` | the request is right, but this machine cannot do it: a key is missing or in use |
//! | `NOT_FOUND` | no job or circuit has that name |
//! | `RESOURCE_EXHAUSTED` | a message is too long; the queue, a client's share, the disk, or what may wait is full |
//! | `UNAVAILABLE` | the server is about to stop, or the journal does not work; a retry is worth it |
//! | `DEADLINE_EXCEEDED` | the caller's time was over before the proof was done, which goes on |
//! | `UNAUTHENTICATED` | no token, or not the right one |
//! | `INTERNAL` | a mistake in here; the log has more under the number that is told |
//!
//! A proof that fails is not an error of the call: its result says so.

mod convert;
mod deadline;
mod failure;
mod gate;
mod service;
mod validate;

use std::sync::Arc;

use cuzk_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{engine_server::EngineServer, proving_engine_server::ProvingEngineServer},
};
use tonic::service::Routes;
use tonic_health::{ServingStatus, server::HealthReporter};

pub use gate::{Gate, Gated};

use crate::{http::About, jobs::Jobs, prover::Prover};

/// What the services work on.
#[derive(Clone)]
pub struct Grpc {
    /// The jobs.
    pub jobs: Jobs,
    /// What proves them.
    pub prover: Arc<dyn Prover>,
    /// What is running.
    pub about: Arc<About>,
    /// The largest message in bytes.
    pub max_message_size: usize,
}

/// Says whether new work is taken, by gRPC's standard health service.
#[derive(Clone)]
pub struct Health(HealthReporter);

/// Services whose health can be asked for; the empty name is the whole server's.
const HEALTHY: [&str; 3] = ["", "cuzk.v1.ProvingEngine", "cuzk.v1.Engine"];

impl Health {
    /// From now on, new work is taken or not.
    pub async fn set(&self, serving: bool) {
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for service in HEALTHY {
            self.0.set_service_status(service, status).await;
        }
    }
}

impl Grpc {
    /// All services, and what says how they are.
    ///
    /// # Errors
    /// The descriptors that reflection shows cannot be decoded.
    pub fn routes(self) -> Result<(Routes, Health), tonic_reflection::server::Error> {
        let limit = self.max_message_size;
        let (reporter, health) = tonic_health::server::health_reporter();
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let service = service::Service::new(self);
        let proving =
            ProvingEngineServer::new(service.clone()).max_decoding_message_size(limit).max_encoding_message_size(limit);
        let engine = EngineServer::new(service).max_decoding_message_size(limit).max_encoding_message_size(limit);
        let routes = Routes::new(proving)
            .add_service(engine)
            .add_service(health)
            .add_service(reflection().build_v1()?)
            .add_service(reflection().build_v1alpha()?);
        Ok((routes, Health(reporter)))
    }
}
