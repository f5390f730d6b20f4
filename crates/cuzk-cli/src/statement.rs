//! From the command line to a statement.

use std::path::Path;

use cuzk_bench::statement::{Input, Post, StatementArgs, Vanilla};
use cuzk_filecoin::{
    FilecoinError, SectorSize, Statement, UpdateStatement, WindowPostVersion, WindowStatement, WinningStatement,
    parse_c1, parse_vanilla_list, prover_id_from_miner,
};

use crate::{args::window_version, failure::Failure, files};

/// Reads and checks the statement that the command line describes.
pub(crate) fn read(args: &StatementArgs) -> Result<Statement, Failure> {
    Ok(match args.input()? {
        Input::Porep { c1 } => {
            let statement = parse_c1(&files::read(c1)?).map_err(named(c1))?;
            let found = statement.circuit_id().sector_size;
            if let Some(given) = args.sector_size.filter(|given| given.bytes() != found.bytes()) {
                return Err(Failure::input(format!(
                    "{}: the C1 of a sector of {found}, which --sector-size {given} contradicts",
                    c1.display()
                )));
            }
            if let (Some(miner), Some(sector)) = (args.miner, statement.sector_number()) {
                statement.check_replica_id(&prover_id_from_miner(miner.0), sector).map_err(named(c1))?;
            }
            statement.into()
        }
        Input::Winning { vanilla, post } => {
            let (size, proofs) = of(vanilla)?;
            let (prover, randomness) = prover_and_randomness(post);
            WinningStatement::new(size, prover, randomness, &proofs).map_err(named(vanilla.file))?.into()
        }
        Input::Window { vanilla, post, first_partition, version } => {
            let (size, proofs) = of(vanilla)?;
            let (prover, randomness) = prover_and_randomness(post);
            let version: WindowPostVersion = window_version(version);
            WindowStatement::new(size, version, prover, randomness, first_partition, &proofs)
                .map_err(named(vanilla.file))?
                .into()
        }
        Input::Update { vanilla, comm_r_old, comm_r_new, comm_d_new } => {
            let (size, proofs) = of(vanilla)?;
            UpdateStatement::new(size, comm_r_old.0, comm_r_new.0, comm_d_new.0, &proofs)
                .map_err(named(vanilla.file))?
                .into()
        }
    })
}

/// An error with the file that it is about.
fn named(file: &Path) -> impl Fn(FilecoinError) -> Failure + '_ {
    move |error| Failure::input(format!("{}: {error}", file.display()))
}

fn of(vanilla: Vanilla<'_>) -> Result<(SectorSize, Vec<Vec<u8>>), Failure> {
    let proofs = parse_vanilla_list(&files::read(vanilla.file)?).map_err(named(vanilla.file))?;
    Ok((sector_size(vanilla.sector_size)?, proofs))
}

/// Prover id and randomness of a proof of spacetime.
pub(crate) fn prover_and_randomness(post: Post) -> ([u8; 32], [u8; 32]) {
    (prover_id_from_miner(post.miner.0), post.randomness.0)
}

/// The published crates' name of a size.
pub(crate) fn sector_size(size: cuzk_bench::statement::SectorSize) -> Result<SectorSize, Failure> {
    Ok(SectorSize::try_from(size.bytes())?)
}
