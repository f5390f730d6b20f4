//! From the command line to a statement.

use cuzk_filecoin::{
    SectorSize, Statement, UpdateStatement, WindowStatement, WinningStatement, parse_c1, parse_vanilla_list,
    prover_id_from_miner,
};

use crate::{
    args::{Kind, StatementArgs},
    failure::Failure,
    files,
};

/// Reads and checks the statement that the command line describes.
pub(crate) fn read(args: &StatementArgs) -> Result<Statement, Failure> {
    if let Some(c1) = &args.c1 {
        let statement = parse_c1(&files::read(c1)?);
        return Ok(statement.map_err(|e| Failure::input(format!("{}: {e}", c1.display())))?.into());
    }
    let (Some(path), Some(kind), Some(size)) = (&args.vanilla, args.kind, &args.sector_size) else {
        return Err(Failure::usage("--c1 FILE, or --vanilla FILE with --kind and --sector-size"));
    };
    let named = |e: cuzk_filecoin::FilecoinError| Failure::input(format!("{}: {e}", path.display()));
    let size = sector_size(size)?;
    let vanilla = parse_vanilla_list(&files::read(path)?).map_err(named)?;
    Ok(match kind {
        Kind::Porep => return Err(Failure::usage("a PoRep is proved from a C1 file: --c1 FILE")),
        Kind::Winning => {
            let (prover, randomness) = post_arguments(args)?;
            WinningStatement::new(size, prover, randomness, &vanilla).map_err(named)?.into()
        }
        Kind::Window => {
            let (prover, randomness) = post_arguments(args)?;
            let version = args.window_version.into();
            WindowStatement::new(size, version, prover, randomness, args.first_partition, &vanilla)
                .map_err(named)?
                .into()
        }
        Kind::Update => {
            let r_old = hex32("--comm-r-old", args.comm_r_old.as_deref())?;
            let r_new = hex32("--comm-r-new", args.comm_r_new.as_deref())?;
            let d_new = hex32("--comm-d-new", args.comm_d_new.as_deref())?;
            UpdateStatement::new(size, r_old, r_new, d_new, &vanilla).map_err(named)?.into()
        }
    })
}

fn post_arguments(args: &StatementArgs) -> Result<([u8; 32], [u8; 32]), Failure> {
    let miner = args.miner.ok_or_else(|| Failure::usage("--miner is missing"))?;
    Ok((prover_id_from_miner(miner), hex32("--randomness", args.randomness.as_deref())?))
}

pub(crate) fn sector_size(text: &str) -> Result<SectorSize, Failure> {
    if let Ok(bytes) = text.parse::<u64>() {
        return SectorSize::try_from(bytes).map_err(Failure::usage);
    }
    let wanted = text.to_ascii_lowercase();
    let found = SectorSize::ALL.into_iter().find(|size| {
        let name = size.to_string();
        wanted == name || wanted == format!("{name}ib")
    });
    found.ok_or_else(|| {
        let known = SectorSize::ALL.map(|s| s.to_string()).join(", ");
        Failure::usage(format!("--sector-size {text}: expected bytes, or one of {known}"))
    })
}

/// 32 bytes in hexadecimal.
pub(crate) fn hex32(flag: &str, text: Option<&str>) -> Result<[u8; 32], Failure> {
    let text = text.ok_or_else(|| Failure::usage(format!("{flag} is missing")))?;
    let bytes = hex::decode(text).map_err(|e| Failure::usage(format!("{flag}: {e}")))?;
    let length = bytes.len();
    bytes.try_into().map_err(|_| Failure::usage(format!("{flag}: {length} bytes, expected 32")))
}
