//! `cuzk verify`: a proof against a statement, or against a verifying key and public inputs.

use blstrs::Scalar as Fr;
use cuzk_curve::Bls12;
use cuzk_groth16::{PreparedVerifyingKey, Proof, decode_inputs};
use cuzk_keys::VerifyingKey;

use crate::{
    args::{Global, VerifyArgs},
    failure::Failure,
    files, report, statement,
};

pub(crate) fn run(global: &Global, args: &VerifyArgs) -> Result<(), Failure> {
    let (inputs, default_vk) = if let Some(path) = &args.public_inputs {
        (public_inputs(path)?, None)
    } else {
        let statement = statement::read(&args.statement)?;
        let partitions: Vec<usize> = args.partition.map_or((0..statement.partitions()).collect(), |k| vec![k]);
        let inputs = partitions
            .into_iter()
            .map(|k| statement.partition(k)?.public_inputs())
            .collect::<Result<Vec<Vec<Fr>>, _>>()?;
        (inputs, Some(args.param_dir.join(statement.circuit_id().vk_file_name()?)))
    };
    let path = args.vk.clone().or(default_vk).ok_or_else(|| Failure::usage("--vk is missing"))?;
    let vk = PreparedVerifyingKey::new(&VerifyingKey::<Bls12>::read_file(&path)?)?;
    let proofs = Proof::many_from_bytes(&files::read(&args.proof)?, inputs.len())?;
    vk.verify_batch(&proofs, &inputs)?;
    report::print(
        global,
        || serde_json::json!({ "proof": report::path(&args.proof), "partitions": proofs.len(), "valid": true }),
        || format!("{}: valid, {} partitions", args.proof.display(), proofs.len()),
    )
}

/// A JSON array with one array for each partition, of hexadecimal encodings.
fn public_inputs(path: &std::path::Path) -> Result<Vec<Vec<Fr>>, Failure> {
    let named = |e: &dyn std::fmt::Display| Failure::input(format!("{}: {e}", path.display()));
    let partitions: Vec<Vec<String>> = serde_json::from_slice(&files::read(path)?).map_err(|e| named(&e))?;
    let decode = |partition: Vec<String>| {
        let bytes = partition.iter().map(hex::decode).collect::<Result<Vec<_>, _>>().map_err(|e| named(&e))?;
        decode_inputs(&bytes).map_err(|e| named(&e))
    };
    partitions.into_iter().map(decode).collect()
}
