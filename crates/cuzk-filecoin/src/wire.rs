//! Vanilla proofs as they travel: the serde shape of the published types, with nothing hidden.
//!
//! The published types keep their paths and columns private and panic on values that only a
//! malformed file can hold. These mirror their serialization field by field (JSON and bincode), so
//! that everything can be checked before a published type is made of it. They know no tree shape:
//! one set of parsers serves all sector sizes.

use blstrs::Scalar as Fr;
use ff::PrimeField;
use filecoin_hashers::{Domain, Hasher, PoseidonArity};
use merkletree::hash::Algorithm;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use storage_proofs_core::merkle;

use crate::{
    SectorSize,
    error::{Fault, Hex},
    seal::fr_safe,
};

/// A tree's node: a scalar, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node(pub(crate) [u8; 32]);

impl Node {
    pub(crate) fn scalar(&self, what: &'static str) -> Result<Fr, Fault> {
        Fr::from_repr_vartime(self.0).ok_or(Fault::NotCanonical { what, bytes: Hex(self.0) })
    }

    pub(crate) fn domain<D: Domain>(&self, what: &'static str) -> Result<D, Fault> {
        self.scalar(what).map(D::from)
    }

    /// `self == expected`, as a check.
    pub(crate) fn expect(&self, what: &'static str, expected: &Node) -> Result<(), Fault> {
        if self == expected {
            return Ok(());
        }
        Err(Fault::Mismatch { what, expected: Hex(expected.0), found: Hex(self.0) })
    }
}

impl From<Fr> for Node {
    fn from(scalar: Fr) -> Self {
        Self(scalar.to_repr())
    }
}

/// The siblings of one level, without the path's own node, and where that one stands among them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PathElement {
    pub(crate) hashes: Vec<Node>,
    pub(crate) index: u64,
}

/// Levels of one part of a tree, from below.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InclusionPath {
    pub(crate) path: Vec<PathElement>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SingleProof {
    pub(crate) root: Node,
    pub(crate) leaf: Node,
    pub(crate) path: InclusionPath,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SubProof {
    pub(crate) base_proof: InclusionPath,
    pub(crate) sub_proof: InclusionPath,
    pub(crate) root: Node,
    pub(crate) leaf: Node,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TopProof {
    pub(crate) base_proof: InclusionPath,
    pub(crate) sub_proof: InclusionPath,
    pub(crate) top_proof: InclusionPath,
    pub(crate) root: Node,
    pub(crate) leaf: Node,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ProofData {
    Single(SingleProof),
    Sub(SubProof),
    Top(TopProof),
}

/// A Merkle proof in a tree of any shape.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MerkleProof {
    pub(crate) data: ProofData,
}

/// Labels of one node on all layers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) index: u32,
    pub(crate) rows: Vec<Node>,
    /// The published type's hasher marker, which it does serialize: `null`, or no byte at all.
    pub(crate) _h: (),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ColumnProof {
    pub(crate) column: Column,
    pub(crate) inclusion_proof: MerkleProof,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReplicaColumnProof {
    pub(crate) c_x: ColumnProof,
    pub(crate) drg_parents: Vec<ColumnProof>,
    pub(crate) exp_parents: Vec<ColumnProof>,
}

/// A label's preimage; the encoding proof has the same fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LabelingProof {
    pub(crate) parents: Vec<Node>,
    pub(crate) layer_index: u32,
    pub(crate) node: u64,
}

/// All openings of one PoRep challenge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SealProof {
    pub(crate) comm_d_proofs: MerkleProof,
    pub(crate) comm_r_last_proof: MerkleProof,
    pub(crate) replica_column_proofs: ReplicaColumnProof,
    pub(crate) labeling_proofs: Vec<LabelingProof>,
    pub(crate) encoding_proof: LabelingProof,
}

/// All openings of one sector of a proof of spacetime.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SectorProof {
    pub(crate) inclusion_proofs: Vec<MerkleProof>,
    pub(crate) comm_c: Node,
    pub(crate) comm_r_last: Node,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PostProof {
    pub(crate) sectors: Vec<SectorProof>,
}

/// `FallbackPoStSectorProof`: one vanilla proof of Winning- or WindowPoSt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PostSectorProof {
    pub(crate) sector_id: u64,
    pub(crate) comm_r: Node,
    pub(crate) vanilla_proof: PostProof,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UpdateChallengeProof {
    pub(crate) proof_r_old: MerkleProof,
    pub(crate) proof_d_new: MerkleProof,
    pub(crate) proof_r_new: MerkleProof,
}

/// `PartitionProof`: one vanilla proof of an update.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UpdatePartitionProof {
    pub(crate) comm_c: Node,
    pub(crate) apex_leafs: Vec<Node>,
    pub(crate) challenge_proofs: Vec<UpdateChallengeProof>,
}

/// Arities and heights of a tree: `base_levels` of arity `base`, then one level of `sub` and one of
/// `top` children where these are not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeShape {
    pub(crate) base: usize,
    pub(crate) sub: usize,
    pub(crate) top: usize,
    pub(crate) base_levels: usize,
}

impl TreeShape {
    /// Tree D: binary, over the nodes of a sector.
    pub(crate) const fn data(size: SectorSize) -> Self {
        Self { base: 2, sub: 0, top: 0, base_levels: size.nodes().ilog2() as usize }
    }

    /// Trees C and R.
    pub(crate) const fn replica(size: SectorSize) -> Self {
        let (sub, top, above) = match size {
            SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => (0, 0, 0),
            SectorSize::GiB32 => (8, 0, 3),
            SectorSize::GiB64 => (8, 2, 4),
        };
        Self { base: 8, sub, top, base_levels: (size.nodes().ilog2() as usize - above) / 3 }
    }

    const fn form(&self) -> &'static str {
        match (self.sub, self.top) {
            (0, _) => "single",
            (_, 0) => "sub",
            _ => "top",
        }
    }

    /// Arity of every level, from the leaves.
    pub(crate) fn arities(&self) -> impl Iterator<Item = usize> {
        std::iter::repeat_n(self.base, self.base_levels).chain([self.sub, self.top]).filter(|arity| *arity > 0)
    }
}

impl MerkleProof {
    /// A proof of the form that `shape` has.
    ///
    /// `path` goes from the leaves and has one entry for each of `shape.arities()`.
    pub(crate) fn new(shape: &TreeShape, leaf: Node, root: Node, mut path: Vec<PathElement>) -> Self {
        let upper = path.split_off(shape.base_levels.min(path.len()));
        let base_proof = InclusionPath { path };
        let mut upper = upper.into_iter().map(|e| InclusionPath { path: vec![e] });
        let data = match (upper.next(), upper.next()) {
            (None, _) => ProofData::Single(SingleProof { root, leaf, path: base_proof }),
            (Some(sub_proof), None) => ProofData::Sub(SubProof { base_proof, sub_proof, root, leaf }),
            (Some(sub_proof), Some(top_proof)) => {
                ProofData::Top(TopProof { base_proof, sub_proof, top_proof, root, leaf })
            }
        };
        Self { data }
    }

    pub(crate) fn leaf(&self) -> &Node {
        match &self.data {
            ProofData::Single(p) => &p.leaf,
            ProofData::Sub(p) => &p.leaf,
            ProofData::Top(p) => &p.leaf,
        }
    }

    pub(crate) fn root(&self) -> &Node {
        match &self.data {
            ProofData::Single(p) => &p.root,
            ProofData::Sub(p) => &p.root,
            ProofData::Top(p) => &p.root,
        }
    }

    const fn form(&self) -> &'static str {
        match self.data {
            ProofData::Single(_) => "single",
            ProofData::Sub(_) => "sub",
            ProofData::Top(_) => "top",
        }
    }

    fn parts(&self) -> [&[PathElement]; 3] {
        match &self.data {
            ProofData::Single(p) => [&p.path.path, &[], &[]],
            ProofData::Sub(p) => [&p.base_proof.path, &p.sub_proof.path, &[]],
            ProofData::Top(p) => [&p.base_proof.path, &p.sub_proof.path, &p.top_proof.path],
        }
    }

    /// Levels from the leaves up.
    pub(crate) fn path(&self) -> impl Iterator<Item = &PathElement> {
        self.parts().into_iter().flatten()
    }

    /// Checks form, heights, arities and canonical elements, and that the path leads to leaf number
    /// `node`. Does not hash: [`check_hashes`](Self::check_hashes) does, and the circuit.
    pub(crate) fn check(&self, shape: &TreeShape, node: u64) -> Result<(), Fault> {
        if self.form() != shape.form() {
            return Err(Fault::Form { expected: shape.form(), found: self.form() });
        }
        let heights = [
            ("base levels", shape.base_levels),
            ("subtree levels", usize::from(shape.sub > 0)),
            ("top levels", usize::from(shape.top > 0)),
        ];
        for (part, (what, expected)) in self.parts().into_iter().zip(heights) {
            count(what, expected, part.len())?;
        }
        self.leaf().scalar("leaf")?;
        self.root().scalar("root")?;
        let mut weight = 1;
        let mut leads_to = 0;
        for (level, (element, arity)) in self.path().zip(shape.arities()).enumerate() {
            count("siblings", arity - 1, element.hashes.len())?;
            if element.index >= arity as u64 {
                return Err(Fault::Position { level, arity, found: element.index });
            }
            for sibling in &element.hashes {
                sibling.scalar("sibling")?;
            }
            leads_to += element.index * weight;
            weight *= arity as u64;
        }
        number("path to leaf", node, leads_to)
    }

    /// Checks that the path leads from the leaf to the root. The form was checked before.
    pub(crate) fn check_hashes<H: Hasher>(&self) -> Result<(), Fault> {
        let mut node = *self.leaf();
        for element in self.path() {
            let (before, after) = element.hashes.split_at((element.index as usize).min(element.hashes.len()));
            node = hash::<H>(&[before, &[node], after].concat())?;
        }
        self.root().expect("root", &node)
    }

    /// As the published type.
    pub(crate) fn publish<H, U, V, W>(&self) -> Result<merkle::MerkleProof<H, U, V, W>, Fault>
    where
        H: Hasher,
        U: 'static + PoseidonArity,
        V: 'static + PoseidonArity,
        W: 'static + PoseidonArity,
    {
        let path = self
            .path()
            .map(|element| {
                let siblings = nodes("sibling", &element.hashes)?;
                Ok((siblings, element.index as usize))
            })
            .collect::<Result<Vec<_>, Fault>>()?;
        Ok(merkle::MerkleProof::from_parts(self.leaf().domain("leaf")?, self.root().domain("root")?, path))
    }
}

/// Hash of a parent's children in order.
pub(crate) fn hash<H: Hasher>(children: &[Node]) -> Result<Node, Fault> {
    let children: Vec<H::Domain> = nodes("child", children)?;
    // Neither of the two tree hashers depends on the level.
    let digest: H::Domain = H::Function::default().multi_node(&children, 0);
    Ok(Node::from(digest.into()))
}

/// SHA-256 of replica_id ‖ layer (32 bits, big-endian) ‖ node (64 bits, big-endian) ‖ 20 zero bytes ‖
/// parents, cut to 254 bits.
pub(crate) fn label(replica_id: &Node, layer: u32, node: u64, parents: &[Node]) -> Node {
    let mut hasher = Sha256::new();
    hasher.update(replica_id.0);
    hasher.update(layer.to_be_bytes());
    hasher.update(node.to_be_bytes());
    hasher.update([0; 20]);
    for parent in parents {
        hasher.update(parent.0);
    }
    Node(fr_safe(hasher.finalize().into()))
}

pub(crate) fn nodes<D: Domain>(what: &'static str, nodes: &[Node]) -> Result<Vec<D>, Fault> {
    nodes.iter().map(|node| node.domain(what)).collect()
}

pub(crate) fn count(what: &'static str, expected: usize, found: usize) -> Result<(), Fault> {
    if expected == found {
        return Ok(());
    }
    Err(Fault::Count { what, expected, found })
}

pub(crate) fn number(what: &'static str, expected: u64, found: u64) -> Result<(), Fault> {
    if expected == found {
        return Ok(());
    }
    Err(Fault::Number { what, expected, found })
}
