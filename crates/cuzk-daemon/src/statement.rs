//! What a request asks for: from the fields of a [`SubmitProofRequest`] to a [`Statement`].
//!
//! | kind | input | what else counts |
//! |---|---|---|
//! | PoRep | `vanilla_proof`: a C1, wrapped or not | `sector_size`, `registered_proof`, `sector_number` and `miner_id` are compared with it where they are given |
//! | WinningPoSt | `vanilla_proofs`: one | `sector_size` (or `registered_proof`), `miner_id`, `randomness` |
//! | WindowPoSt | `vanilla_proofs`: one a sector, no more than a partition has, in ascending order | as for WinningPoSt; `registered_proof` tells the version of the challenges, `partition_index` the partition |
//! | SnapDeals | `vanilla_proofs`: one a partition | `sector_size` (or `registered_proof`), `comm_r_old`, `comm_r_new`, `comm_d_new` |

use cuzk_filecoin::{
    FilecoinError, SealStatement, SectorSize, Statement, UpdateStatement, WindowPostVersion, WindowStatement,
    WinningStatement, parse_c1, prover_id_from_miner,
};
use cuzk_proto::v1::{ProofKind, SubmitProofRequest};

/// Why a request asks for nothing that can be proved. The text names the field.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// A field must not be empty.
    #[error("{field} is missing")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// A field has no place in a request of this kind.
    #[error("{field} does not belong to a request for {kind}")]
    Foreign {
        /// Its name.
        field: &'static str,
        /// The kind.
        kind: &'static str,
    },
    /// A field has another length.
    #[error("{field} has {found} bytes, expected {expected}")]
    Length {
        /// Its name.
        field: &'static str,
        /// Bytes that it should have.
        expected: usize,
        /// Bytes that it has.
        found: usize,
    },
    /// A list is longer than what it is for.
    #[error("{field} has {found} proofs, but {what} has at most {most}")]
    TooMany {
        /// Its name.
        field: &'static str,
        /// What it is for.
        what: String,
        /// Entries that it may have.
        most: usize,
        /// Entries that it has.
        found: usize,
    },
    /// A number stands for nothing.
    #[error("{field} {value} is unknown: {expected}")]
    Unknown {
        /// The field's name.
        field: &'static str,
        /// What it says.
        value: u64,
        /// What it could say.
        expected: String,
    },
    /// A field contradicts the input.
    #[error("{field} is {given}, but the input is for {found}")]
    Contradiction {
        /// Its name.
        field: &'static str,
        /// What it says.
        given: u64,
        /// What the input says.
        found: u64,
    },
    /// The input is not what it should be.
    #[error("{field}: {cause}")]
    Input {
        /// Name of its field.
        field: &'static str,
        /// What is wrong with it.
        #[source]
        cause: Box<FilecoinError>,
    },
}

/// The statement that a request asks for, with all hashes of its vanilla proofs checked: what passes can be proved.
///
/// # Errors
/// [`RequestError`].
pub fn check(request: &SubmitProofRequest) -> Result<Statement, RequestError> {
    let statement = read(request)?;
    let field = if matches!(statement, Statement::Seal(_)) { "vanilla_proof" } else { "vanilla_proofs" };
    statement.check_hashes().map_err(|cause| wrong(field, cause))?;
    Ok(statement)
}

/// The statement that a request asks for, with everything but the hashes checked: enough for one that passed
/// [`check`] before.
///
/// # Errors
/// [`RequestError`].
pub fn read(request: &SubmitProofRequest) -> Result<Statement, RequestError> {
    let kind = ProofKind::try_from(request.proof_kind).map_err(|_| RequestError::Unknown {
        field: "proof_kind",
        value: u64::from(request.proof_kind.unsigned_abs()),
        expected: "1 to 4".to_owned(),
    })?;
    Ok(match kind {
        ProofKind::Unspecified => return Err(RequestError::Missing { field: "proof_kind" }),
        ProofKind::PorepSealCommit => seal(request)?.into(),
        ProofKind::WinningPost => winning(request)?.into(),
        ProofKind::WindowPostPartition => window(request)?.into(),
        ProofKind::SnapDealsUpdate => update(request)?.into(),
    })
}

fn seal(request: &SubmitProofRequest) -> Result<SealStatement, RequestError> {
    const FIELD: &str = "vanilla_proof";
    if !request.vanilla_proofs.is_empty() {
        return Err(RequestError::Foreign { field: "vanilla_proofs", kind: "PoRep" });
    }
    if request.vanilla_proof.is_empty() {
        return Err(RequestError::Missing { field: FIELD });
    }
    let input = |cause| wrong(FIELD, cause);
    let statement = parse_c1(&request.vanilla_proof).map_err(input)?;
    // 0 is both the number of the oldest proof of 2 KiB sectors and a field that is not set.
    let compare = |field, given: u64, found: u64| {
        let agrees = given == 0 || given == found;
        if agrees { Ok(()) } else { Err(RequestError::Contradiction { field, given, found }) }
    };
    compare("sector_size", request.sector_size, statement.circuit_id().sector_size.bytes())?;
    compare("registered_proof", request.registered_proof, statement.registered_proof() as u64)?;
    if let Some(number) = statement.sector_number() {
        compare("sector_number", request.sector_number, number)?;
    }
    if request.miner_id != 0 {
        let number = if request.sector_number != 0 { Some(request.sector_number) } else { statement.sector_number() };
        let prover = prover_id_from_miner(request.miner_id);
        number.map_or(Ok(()), |number| statement.check_replica_id(&prover, number)).map_err(input)?;
    }
    Ok(statement)
}

fn winning(request: &SubmitProofRequest) -> Result<WinningStatement, RequestError> {
    let vanilla = vanilla_proofs(request, "WinningPoSt")?;
    let size = sector_size(request, 0..=4)?;
    WinningStatement::new(size, prover(request)?, bytes32("randomness", &request.randomness)?, vanilla)
        .map_err(|cause| wrong("vanilla_proofs", cause))
}

fn window(request: &SubmitProofRequest) -> Result<WindowStatement, RequestError> {
    let vanilla = vanilla_proofs(request, "WindowPoSt")?;
    let size = sector_size(request, 5..=14)?;
    let version = match request.registered_proof {
        5..=9 => WindowPostVersion::V1,
        _ => WindowPostVersion::V1_2,
    };
    let randomness = bytes32("randomness", &request.randomness)?;
    let most = size.window_sectors();
    if vanilla.len() > most {
        // Before any of them is parsed.
        let what = format!("a WindowPoSt partition of {size} sectors");
        return Err(RequestError::TooMany { field: "vanilla_proofs", what, most, found: vanilla.len() });
    }
    WindowStatement::new(size, version, prover(request)?, randomness, request.partition_index, vanilla)
        .map_err(|cause| wrong("vanilla_proofs", cause))
}

fn update(request: &SubmitProofRequest) -> Result<UpdateStatement, RequestError> {
    let vanilla = vanilla_proofs(request, "SnapDeals")?;
    let size = sector_size(request, 0..=4)?;
    UpdateStatement::new(
        size,
        bytes32("comm_r_old", &request.comm_r_old)?,
        bytes32("comm_r_new", &request.comm_r_new)?,
        bytes32("comm_d_new", &request.comm_d_new)?,
        vanilla,
    )
    .map_err(|cause| wrong("vanilla_proofs", cause))
}

fn wrong(field: &'static str, cause: FilecoinError) -> RequestError {
    RequestError::Input { field, cause: Box::new(cause) }
}

fn vanilla_proofs<'a>(request: &'a SubmitProofRequest, kind: &'static str) -> Result<&'a [Vec<u8>], RequestError> {
    if !request.vanilla_proof.is_empty() {
        return Err(RequestError::Foreign { field: "vanilla_proof", kind });
    }
    if request.vanilla_proofs.is_empty() {
        return Err(RequestError::Missing { field: "vanilla_proofs" });
    }
    Ok(&request.vanilla_proofs)
}

/// The sector size by its own field, or by the registered proof, whose numbers go through the sizes in ascending order.
/// Both must agree if both are given; 0 in the latter is not given.
fn sector_size(
    request: &SubmitProofRequest,
    numbers: std::ops::RangeInclusive<u64>,
) -> Result<SectorSize, RequestError> {
    let registered = match request.registered_proof {
        0 => None,
        number if numbers.contains(&number) => SectorSize::ALL.get((number % 5) as usize).copied(),
        value => {
            let expected = format!("{} to {} for this kind", numbers.start(), numbers.end());
            return Err(RequestError::Unknown { field: "registered_proof", value, expected });
        }
    };
    let given = match request.sector_size {
        0 => None,
        bytes => Some(SectorSize::try_from(bytes).map_err(|_| RequestError::Unknown {
            field: "sector_size",
            value: bytes,
            expected: SectorSize::ALL.map(|size| size.bytes().to_string()).join(", "),
        })?),
    };
    match (given, registered) {
        (Some(size), Some(of_proof)) if size != of_proof => {
            Err(RequestError::Contradiction { field: "sector_size", given: size.bytes(), found: of_proof.bytes() })
        }
        (Some(size), _) | (None, Some(size)) => Ok(size),
        (None, None) => Err(RequestError::Missing { field: "sector_size" }),
    }
}

fn prover(request: &SubmitProofRequest) -> Result<[u8; 32], RequestError> {
    match request.miner_id {
        0 => Err(RequestError::Missing { field: "miner_id" }),
        miner => Ok(prover_id_from_miner(miner)),
    }
}

fn bytes32(field: &'static str, bytes: &[u8]) -> Result<[u8; 32], RequestError> {
    match bytes.len() {
        0 => Err(RequestError::Missing { field }),
        found => bytes.try_into().map_err(|_| RequestError::Length { field, expected: 32, found }),
    }
}
