//! What must hold of a C1 before a circuit is made of it.

use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::{DefaultTreeHasher, SectorShapeBase};
use filecoin_proofs_api::RegisteredSealProof;
use storage_proofs_core::drgraph::{BASE_DEGREE, Graph};
use storage_proofs_porep::stacked::{EXP_DEGREE, PublicInputs, PublicParams, TOTAL_PARENTS};
use storage_proofs_update::constants::{TreeDDomain, TreeRDomain};

use crate::{
    Fault, FilecoinError, SectorSize, circuits,
    error::{no_panic, published},
    partition::SealPublic,
    wire::{self, ColumnProof, MerkleProof, Node, SealProof, TreeShape},
};

/// Checks all that the published circuit and its construction take for granted.
pub(super) struct Checker {
    size: SectorSize,
    /// Graph and challenges, which do not depend on the shape of trees C and R.
    params: PublicParams<SectorShapeBase>,
    inputs: PublicInputs<TreeRDomain, TreeDDomain>,
    registered_proof: RegisteredSealProof,
    data: TreeShape,
    replica: TreeShape,
    comm_d: Node,
    comm_r: Node,
}

/// A part of a challenge's proof and what is wrong with it.
type Misfit = (String, Fault);

impl Checker {
    pub(super) fn new(size: SectorSize, public: &SealPublic) -> Result<Self, FilecoinError> {
        Ok(Self {
            size,
            params: circuits::porep_params(public.registered_proof)?,
            inputs: circuits::porep_published_inputs(public)?,
            registered_proof: public.registered_proof,
            data: TreeShape::data(size),
            replica: TreeShape::replica(size),
            comm_d: Node(public.comm_d),
            comm_r: Node(public.comm_r),
        })
    }

    pub(super) fn partitions(&self, partitions: &[Vec<SealProof>]) -> Result<(), FilecoinError> {
        wire::count("partitions", usize::from(self.registered_proof.partitions()), partitions.len())
            .map_err(|fault| fault.at("C1 vanilla_proofs"))?;
        partitions.iter().enumerate().try_for_each(|(k, proofs)| self.partition(k, proofs))
    }

    fn partition(&self, k: usize, proofs: &[SealProof]) -> Result<(), FilecoinError> {
        let at = |fault: Fault| fault.at(format!("partition {k}"));
        let graph = &self.params.graph;
        let challenges = no_panic("stacked::PublicInputs::challenges", || {
            self.inputs.challenges(&self.params.challenges, graph.size(), Some(k))
        })?;
        wire::count("challenges", challenges.len(), proofs.len()).map_err(at)?;
        let Some(first) = proofs.first() else {
            return Ok(());
        };
        let roots = [first.replica_column_proofs.c_x.inclusion_proof.root(), first.comm_r_last_proof.root()];
        for (i, (proof, challenge)) in proofs.iter().zip(challenges).enumerate() {
            let mut parents = [0; BASE_DEGREE + EXP_DEGREE];
            graph.parents(challenge, &mut parents).map_err(published("StackedGraph::parents"))?;
            self.challenge(proof, challenge as u64, &parents, roots)
                .map_err(|(part, fault)| fault.at(format!("partition {k}, challenge {i}, {part}")))?;
        }
        let [comm_c, comm_r_last] = roots;
        comm_r("comm_r", comm_c, comm_r_last, &self.comm_r).map_err(at)
    }

    fn challenge(
        &self,
        proof: &SealProof,
        challenge: u64,
        parents: &[u32],
        [comm_c, comm_r_last]: [&Node; 2],
    ) -> Result<(), Misfit> {
        let in_part = |part: &'static str| move |fault| (part.to_owned(), fault);
        opening(&proof.comm_d_proofs, &self.data, challenge, &self.comm_d).map_err(in_part("tree D"))?;
        opening(&proof.comm_r_last_proof, &self.replica, challenge, comm_r_last).map_err(in_part("tree R"))?;
        let columns = &proof.replica_column_proofs;
        self.column(&columns.c_x, challenge, comm_c).map_err(in_part("column"))?;

        let (base, expander) = parents.split_at(BASE_DEGREE);
        for (what, nodes, found) in
            [("base parent", base, &columns.drg_parents), ("expander parent", expander, &columns.exp_parents)]
        {
            wire::count("columns", nodes.len(), found.len()).map_err(|fault| (format!("{what}s"), fault))?;
            for (j, (node, column)) in nodes.iter().zip(found).enumerate() {
                self.column(column, u64::from(*node), comm_c).map_err(|fault| (format!("{what} {j}"), fault))?;
            }
        }
        self.labels(proof, challenge).map_err(in_part("labels"))
    }

    fn column(&self, proof: &ColumnProof, node: u64, comm_c: &Node) -> Result<(), Fault> {
        wire::number("column of node", node, u64::from(proof.column.index))?;
        wire::count("layers", self.size.layers(), proof.column.rows.len())?;
        for label in &proof.column.rows {
            label.scalar("label")?;
        }
        opening(&proof.inclusion_proof, &self.replica, node, comm_c)
    }

    fn labels(&self, proof: &SealProof, challenge: u64) -> Result<(), Fault> {
        wire::count("labels", self.size.layers(), proof.labeling_proofs.len())?;
        let last = (self.size.layers() as u64, &proof.encoding_proof);
        for (layer, label) in (1..).zip(&proof.labeling_proofs).chain([last]) {
            wire::number("layer", layer, u64::from(label.layer_index))?;
            wire::number("label of node", challenge, label.node)?;
            wire::count("parent labels", TOTAL_PARENTS, label.parents.len())?;
            for parent in &label.parents {
                parent.scalar("parent label")?;
            }
        }
        Ok(())
    }
}

/// A Merkle proof of the right shape, for this leaf, under this root.
pub(super) fn opening(proof: &MerkleProof, shape: &TreeShape, node: u64, root: &Node) -> Result<(), Fault> {
    proof.check(shape, node)?;
    proof.root().expect("root", root)
}

/// comm_r = Poseidon(comm_c, comm_r_last).
pub(super) fn comm_r(what: &'static str, comm_c: &Node, comm_r_last: &Node, comm_r: &Node) -> Result<(), Fault> {
    let expected =
        <DefaultTreeHasher as Hasher>::Function::hash2(&comm_c.domain("comm_c")?, &comm_r_last.domain("comm_r_last")?);
    comm_r.expect(what, &Node::from(blstrs::Scalar::from(expected)))
}
