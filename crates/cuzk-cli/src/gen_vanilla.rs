//! `cuzk gen-vanilla`: vanilla proofs from the files of a sealed sector.

use cuzk_bench::statement::{Kind, Post, required};
use cuzk_filecoin::{SealedFiles, write_vanilla_list};

use crate::{
    args::{GenVanillaArgs, Global, window_version},
    failure::Failure,
    files, report,
    statement::{prover_and_randomness, sector_size},
};

pub(crate) fn run(global: &Global, args: &GenVanillaArgs) -> Result<(), Failure> {
    files::check_target(&args.out)?;
    let size = sector_size(args.sector_size)?;
    let comm_r = args.comm_r.0;
    let (sealed, cache, number) = (args.sealed.clone(), args.cache.clone(), args.sector);
    let sector = SealedFiles { size, number, sealed, cache, comm_r };
    let post = || Post::new(args.miner, args.randomness).map(prover_and_randomness);
    let vanilla = match args.kind {
        Kind::Porep => return Err(Failure::usage("a PoRep is proved from the C1 file that sealing writes")),
        Kind::Winning => {
            let (prover, randomness) = post()?;
            sector.winning_vanilla(prover, randomness)?
        }
        Kind::Wpost => {
            let (prover, randomness) = post()?;
            sector.window_vanilla(window_version(args.window_version), prover, randomness)?
        }
        Kind::Snap => {
            let (Some(sealed), Some(cache)) = (&args.updated_sealed, &args.updated_cache) else {
                return Err(Failure::usage("--updated-sealed and --updated-cache are needed for an update"));
            };
            let comm_r = required("--comm-r-new", args.comm_r_new)?.0;
            let comm_d = required("--comm-d-new", args.comm_d_new)?.0;
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
