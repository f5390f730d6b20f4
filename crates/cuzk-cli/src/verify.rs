//! `cuzk verify`: a proof against a statement, or against a verifying key and public inputs.

use std::path::Path;

use blstrs::Scalar as Fr;
use cuzk_curve::Bls12;
use cuzk_groth16::{PreparedVerifyingKey, Proof, decode_inputs};
use cuzk_keys::VerifyingKey;

use crate::{
    args::{Global, VerifyArgs},
    failure::Failure,
    files, keys, report, statement,
};

pub(crate) fn run(global: &Global, args: &VerifyArgs) -> Result<(), Failure> {
    // Before what is computed.
    let proof = files::read(&args.proof)?;
    let vk_of = |path: &Path| Ok::<_, Failure>(PreparedVerifyingKey::new(&VerifyingKey::<Bls12>::read_file(path)?)?);
    let (inputs, vk) = if let Some(path) = &args.public_inputs {
        let vk = args.vk.as_deref().ok_or_else(|| Failure::usage("--vk is missing"))?;
        (public_inputs(path)?, vk_of(vk)?)
    } else {
        let statement = statement::read(&args.statement)?;
        let vk = match &args.vk {
            Some(vk) => vk_of(vk)?,
            None => vk_of(&keys::verifying(statement.circuit_id(), &args.param_dir)?)?,
        };
        let partitions: Vec<usize> = args.partition.map_or((0..statement.partitions()).collect(), |k| vec![k]);
        let inputs = partitions
            .into_iter()
            .map(|k| statement.partition(k)?.public_inputs())
            .collect::<Result<Vec<Vec<Fr>>, _>>()?;
        (inputs, vk)
    };
    let proofs = Proof::many_from_bytes(&proof, inputs.len())?;
    vk.verify_batch(&proofs, &inputs)?;
    report::print(
        global,
        || serde_json::json!({ "proof": report::path(&args.proof), "partitions": proofs.len(), "valid": true }),
        || format!("{}: valid, {} partitions", args.proof.display(), proofs.len()),
    )
}

/// A JSON array with one array for each partition, of hexadecimal encodings.
fn public_inputs(path: &Path) -> Result<Vec<Vec<Fr>>, Failure> {
    let named = |e: &dyn std::fmt::Display| Failure::input(format!("{}: {e}", path.display()));
    let partitions: Vec<Vec<String>> = serde_json::from_slice(&files::read(path)?).map_err(|e| named(&e))?;
    let decode = |partition: Vec<String>| {
        let bytes = partition.iter().map(hex::decode).collect::<Result<Vec<_>, _>>().map_err(|e| named(&e))?;
        decode_inputs(&bytes).map_err(|e| named(&e))
    };
    partitions.into_iter().map(decode).collect()
}
