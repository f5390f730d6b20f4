//! Generates the messages and services from `proto/cuzk.proto`, without a compiler of protocol buffers on the machine.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/cuzk.proto");
    let descriptors = protox::compile(["cuzk.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("cuzk.v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().bytes("AwaitProofResponse.proof").compile_fds(descriptors)?;
    Ok(())
}
