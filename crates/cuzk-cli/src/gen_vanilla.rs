//! `cuzk gen-vanilla`: vanilla proofs from the files of a sealed sector.

use cuzk_filecoin::{SealedFiles, prover_id_from_miner, write_vanilla_list};

use crate::{
    args::{GenVanillaArgs, Global, Kind},
    failure::Failure,
    files, report,
    statement::{hex32, sector_size},
};

pub(crate) fn run(global: &Global, args: &GenVanillaArgs) -> Result<(), Failure> {
    files::refuse_special(&args.out)?;
    let size = sector_size(&args.sector_size)?;
    let comm_r = hex32("--comm-r", Some(&args.comm_r))?;
    let (sealed, cache, number) = (args.sealed.clone(), args.cache.clone(), args.sector);
    let sector = SealedFiles { size, number, sealed, cache, comm_r };
    let post = || {
        let miner = args.miner.ok_or_else(|| Failure::usage("--miner is missing"))?;
        Ok::<_, Failure>((prover_id_from_miner(miner), hex32("--randomness", args.randomness.as_deref())?))
    };
    let vanilla = match args.kind {
        Kind::Porep => return Err(Failure::usage("a PoRep is proved from the C1 file that sealing writes")),
        Kind::Winning => {
            let (prover, randomness) = post()?;
            sector.winning_vanilla(prover, randomness)?
        }
        Kind::Window => {
            let (prover, randomness) = post()?;
            sector.window_vanilla(args.window_version.into(), prover, randomness)?
        }
        Kind::Update => {
            let (Some(sealed), Some(cache)) = (&args.updated_sealed, &args.updated_cache) else {
                return Err(Failure::usage("--updated-sealed and --updated-cache are needed for an update"));
            };
            let comm_r = hex32("--comm-r-new", args.comm_r_new.as_deref())?;
            let comm_d = hex32("--comm-d-new", args.comm_d_new.as_deref())?;
            let updated = SealedFiles { size, number, sealed: sealed.clone(), cache: cache.clone(), comm_r };
            sector.update_vanilla(&updated, comm_d)?
        }
    };
    files::write(&args.out, write_vanilla_list(&vanilla).as_bytes())?;
    let bytes: usize = vanilla.iter().map(Vec::len).sum();
    report::print(
        global,
        || serde_json::json!({ "out": report::path(&args.out), "proofs": vanilla.len(), "bytes": bytes }),
        || format!("{}: {} vanilla proofs, {bytes} bytes", args.out.display(), vanilla.len()),
    )
}
