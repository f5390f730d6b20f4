//! Proofs of spacetime.

use std::{fmt, sync::Arc};

use storage_proofs_update::constants::TreeRDomain;

use super::{
    part,
    seal_check::{comm_r, opening},
};
use crate::{
    CircuitId, Fault, FilecoinError, Partition, ProofKind, SectorSize, WindowPostVersion, circuits,
    error::Hex,
    partition::{Content, PostPartition, PostPublic, PostSector},
    vanilla,
    wire::{self, Node, PostSectorProof, TreeShape},
};

/// WinningPoSt: 66 openings of one sector, in one partition.
#[derive(Clone)]
pub struct WinningStatement {
    circuit: CircuitId,
    public: Arc<PostPublic>,
    sector: Arc<Vec<PostSector>>,
}

/// WindowPoSt: ten openings of each sector, in ascending order of their numbers, in partitions of up to
/// [`SectorSize::window_sectors`] sectors. The last partition may be short: it proves its last
/// sector repeatedly.
#[derive(Clone)]
pub struct WindowStatement {
    circuit: CircuitId,
    public: Arc<PostPublic>,
    first_partition: u32,
    partitions: Vec<Arc<Vec<PostSector>>>,
}

impl WinningStatement {
    /// From the vanilla proof of the winning sector, `bincode(FallbackPoStSectorProof)`.
    ///
    /// `prover_id` and `randomness` must be canonical field elements, as
    /// [`prover_id_from_miner`](crate::prover_id_from_miner) and the chain make them. Checked are
    /// counts, tree shapes, canonical elements, that the openings are those that the randomness
    /// determines, and the roots; not the hashes along the paths, which
    /// [`Statement::check_hashes`](crate::Statement::check_hashes) checks.
    ///
    /// # Errors
    /// [`FilecoinError::Bincode`] for bytes that do not parse, otherwise [`FilecoinError::Invalid`].
    pub fn new(
        size: SectorSize,
        prover_id: [u8; 32],
        randomness: [u8; 32],
        vanilla: &[Vec<u8>],
    ) -> Result<Self, FilecoinError> {
        wire::count("vanilla proofs", 1, vanilla.len()).map_err(|fault| fault.at("WinningPoSt"))?;
        let circuit = CircuitId::new(ProofKind::WinningPoSt, size);
        let public = PostPublic { version: WindowPostVersion::default(), prover_id, randomness };
        let sectors = check(circuit, &public, 0, vanilla)?;
        Ok(Self { circuit, public: Arc::new(public), sector: Arc::new(sectors) })
    }

    /// The circuit: WinningPoSt of the sector's size.
    pub const fn circuit_id(&self) -> CircuitId {
        self.circuit
    }

    /// One.
    pub const fn partitions(&self) -> usize {
        1
    }

    /// The partition 0.
    ///
    /// # Errors
    /// [`FilecoinError::PartitionOutOfRange`] unless `k` is 0.
    pub fn partition(&self, k: usize) -> Result<Partition, FilecoinError> {
        let content = Content::Post(PostPartition {
            public: Arc::clone(&self.public),
            sectors: Arc::clone(part(std::slice::from_ref(&self.sector), k)?),
        });
        Ok(Partition::new(self.circuit, k, content))
    }

    pub(crate) fn public(&self) -> &PostPublic {
        &self.public
    }

    pub(crate) fn sectors(&self) -> &[PostSector] {
        &self.sector
    }
}

impl WindowStatement {
    /// From the vanilla proofs of a deadline's sectors, each `bincode(FallbackPoStSectorProof)`: each sector once, in
    /// ascending order of their numbers, because the verifier takes them so.
    ///
    /// The first of them is the first sector of the deadline's partition number `first_partition`
    /// (0 for a whole deadline): to prove one partition alone, pass its sectors and its number.
    /// Arguments and checks otherwise as for [`WinningStatement::new`].
    ///
    /// # Errors
    /// [`FilecoinError::Bincode`] for bytes that do not parse, otherwise [`FilecoinError::Invalid`].
    pub fn new(
        size: SectorSize,
        version: WindowPostVersion,
        prover_id: [u8; 32],
        randomness: [u8; 32],
        first_partition: u32,
        vanilla: &[Vec<u8>],
    ) -> Result<Self, FilecoinError> {
        if vanilla.is_empty() {
            let fault = Fault::Count { what: "vanilla proofs", expected: 1, found: 0 };
            return Err(fault.at("WindowPoSt"));
        }
        let circuit = CircuitId::new(ProofKind::WindowPoSt, size);
        let public = PostPublic { version, prover_id, randomness };
        let first_slot = u64::from(first_partition) * size.window_sectors() as u64;
        let mut sectors = check(circuit, &public, first_slot, vanilla)?.into_iter();
        let mut partitions = Vec::new();
        while sectors.len() > 0 {
            let chunk: Vec<_> = sectors.by_ref().take(size.window_sectors()).collect();
            partitions.push(Arc::new(chunk));
        }
        Ok(Self { circuit, public: Arc::new(public), first_partition, partitions })
    }

    /// The circuit: WindowPoSt of the sectors' size.
    pub const fn circuit_id(&self) -> CircuitId {
        self.circuit
    }

    /// How challenges were derived.
    pub fn version(&self) -> WindowPostVersion {
        self.public.version
    }

    /// Number of partitions that the sectors fill.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// The `k`-th partition of this statement, which is the deadline's
    /// `first_partition + k`-th.
    ///
    /// # Errors
    /// [`FilecoinError::PartitionOutOfRange`] unless `k < partitions()`.
    pub fn partition(&self, k: usize) -> Result<Partition, FilecoinError> {
        let content = Content::Post(PostPartition {
            public: Arc::clone(&self.public),
            sectors: Arc::clone(part(&self.partitions, k)?),
        });
        let index = self.first_partition as usize + k;
        Ok(Partition::new(self.circuit, index, content))
    }

    pub(crate) fn public(&self) -> &PostPublic {
        &self.public
    }

    pub(crate) const fn first_partition(&self) -> u32 {
        self.first_partition
    }

    pub(crate) fn sectors(&self) -> impl Iterator<Item = &PostSector> {
        self.partitions.iter().flat_map(|sectors| sectors.iter())
    }
}

impl fmt::Debug for WinningStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WinningStatement")
            .field("circuit", &format_args!("{}", self.circuit))
            .field("randomness", &Hex(self.public.randomness))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WindowStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowStatement")
            .field("circuit", &format_args!("{}", self.circuit))
            .field("version", &self.public.version)
            .field("randomness", &Hex(self.public.randomness))
            .field("first_partition", &self.first_partition)
            .field("partitions", &self.partitions.len())
            .finish_non_exhaustive()
    }
}

/// Parses and checks one vanilla proof a sector; the first sector has slot number `first_slot`.
fn check(
    circuit: CircuitId,
    public: &PostPublic,
    first_slot: u64,
    vanilla: &[Vec<u8>],
) -> Result<Vec<PostSector>, FilecoinError> {
    let of_statement = |fault: Fault| fault.at(circuit.to_string());
    let randomness: TreeRDomain = Node(public.randomness).domain("randomness").map_err(of_statement)?;
    Node(public.prover_id).scalar("prover_id").map_err(of_statement)?;
    let shape = TreeShape::replica(circuit.sector_size);
    let mut sectors = Vec::with_capacity(vanilla.len());
    for (i, bytes) in vanilla.iter().enumerate() {
        let proof: PostSectorProof = vanilla::decode(bytes, || format!("vanilla proof {i}"))?;
        let id = proof.sector_id;
        in_order(&sectors, id).map_err(|fault| fault.at(format!("vanilla proof {i}")))?;
        let slot = first_slot + i as u64;
        let challenges = circuits::post_challenges(circuit, public, &randomness, id, slot);
        let sector = sector(proof, &shape, &challenges)
            .map_err(|(part, fault)| fault.at(format!("vanilla proof {i} (sector {id}){part}")))?;
        sectors.push(sector);
    }
    Ok(sectors)
}

/// Refuses a sector that stands twice, or not in ascending order: the published verifier, and so the chain, takes them
/// from a map by their numbers.
fn in_order(before: &[PostSector], id: u64) -> Result<(), Fault> {
    match before.last().map(|sector| sector.id) {
        Some(previous) if previous >= id => Err(match before.iter().position(|sector| sector.id == id) {
            Some(first) => Fault::Repeated { sector: id, first },
            None => Fault::Order { previous, found: id },
        }),
        _ => Ok(()),
    }
}

fn sector(proof: PostSectorProof, shape: &TreeShape, challenges: &[u64]) -> Result<PostSector, (String, Fault)> {
    let whole = |fault| (String::new(), fault);
    let mut sectors = proof.vanilla_proof.sectors;
    wire::count("sectors", 1, sectors.len()).map_err(whole)?;
    let opened = sectors.remove(0);
    wire::count("challenges", challenges.len(), opened.inclusion_proofs.len()).map_err(whole)?;
    proof.comm_r.scalar("comm_r").map_err(whole)?;
    comm_r("comm_r", &opened.comm_c, &opened.comm_r_last, &proof.comm_r).map_err(whole)?;
    for (n, (proof, challenge)) in opened.inclusion_proofs.iter().zip(challenges).enumerate() {
        opening(proof, shape, *challenge, &opened.comm_r_last).map_err(|fault| (format!(", challenge {n}"), fault))?;
    }
    Ok(PostSector {
        id: proof.sector_id,
        comm_r: proof.comm_r,
        comm_c: opened.comm_c,
        comm_r_last: opened.comm_r_last,
        inclusion_proofs: opened.inclusion_proofs,
    })
}
