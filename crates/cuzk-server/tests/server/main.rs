//! The server from outside, as one program so that there is one link step.

#[allow(dead_code)]
#[path = "../common/fake.rs"]
mod fake;
mod grpc;
mod http;
mod jobs;
mod process;
mod python;
