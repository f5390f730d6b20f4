//! Merkle trees of which only a small part is ever computed.

use std::collections::BTreeMap;

use filecoin_hashers::Hasher;
use rand_core::RngCore;
use rayon::prelude::*;

use super::random_node;
use crate::{
    error::Fault,
    wire::{MerkleProof, Node, PathElement, TreeShape, hash},
};

/// The proof of a leaf in a tree given by a function of level and index.
fn open(shape: &TreeShape, leaf: u64, node: impl Fn(usize, u64) -> Node) -> MerkleProof {
    let mut path = Vec::new();
    let mut index = leaf;
    for (level, arity) in shape.arities().enumerate() {
        let position = index % arity as u64;
        let first = index - position;
        let siblings = (0..arity as u64).filter(|i| *i != position);
        path.push(PathElement { hashes: siblings.map(|i| node(level, first + i)).collect(), index: position });
        index /= arity as u64;
    }
    let root = node(path.len(), index);
    MerkleProof::new(shape, node(0, leaf), root, path)
}

/// A tree that is known along the paths of some of its leaves; all their other siblings are random.
pub(super) struct SparseTree {
    shape: TreeShape,
    /// Known nodes by index, from the leaves to the root.
    levels: Vec<BTreeMap<u64, Node>>,
}

impl SparseTree {
    pub(super) fn new<H: Hasher>(
        shape: TreeShape,
        leaves: BTreeMap<u64, Node>,
        rng: &mut impl RngCore,
    ) -> Result<Self, Fault> {
        let mut levels = vec![leaves];
        for (level, arity) in shape.arities().enumerate() {
            let arity = arity as u64;
            let known = &mut levels[level];
            let mut parents: Vec<u64> = known.keys().map(|index| index / arity).collect();
            parents.dedup();
            for child in parents.iter().flat_map(|parent| parent * arity..(parent + 1) * arity) {
                known.entry(child).or_insert_with(|| random_node(rng));
            }
            let known = &levels[level];
            let hashed = parents
                .into_par_iter()
                .map(|parent| {
                    let children: Vec<Node> =
                        known.range(parent * arity..(parent + 1) * arity).map(|(_, node)| *node).collect();
                    Ok((parent, hash::<H>(&children)?))
                })
                .collect::<Result<BTreeMap<u64, Node>, Fault>>()?;
            levels.push(hashed);
        }
        Ok(Self { shape, levels })
    }

    /// The proof of one of the leaves that the tree was made of.
    pub(super) fn open(&self, leaf: u64) -> MerkleProof {
        open(&self.shape, leaf, |level, index| self.levels[level][&index])
    }

    pub(super) fn root(&self) -> Node {
        self.levels[self.shape.arities().count()][&0]
    }
}

/// A tree whose leaves are regions of equal size, each one block of leaves again and again.
///
/// Within a region each level repeats too, so it is known from a few nodes; levels above the
/// regions are known in full.
pub(super) struct PeriodicTree {
    shape: TreeShape,
    /// Leaves below a node of each level.
    weights: Vec<u64>,
    region_leaves: u64,
    /// By region, by level: the nodes that repeat.
    regions: Vec<Vec<Vec<Node>>>,
    /// The levels above.
    upper: Vec<Vec<Node>>,
}

impl PeriodicTree {
    /// A tree of one block for each region. Sizes of blocks are 1 or multiples of the arities that
    /// they are hashed by until one node is left.
    pub(super) fn new<H: Hasher>(shape: TreeShape, blocks: Vec<Vec<Node>>) -> Result<Self, Fault> {
        let mut weights = vec![1];
        for arity in shape.arities() {
            weights.push(weights[weights.len() - 1] * arity as u64);
        }
        let region_leaves = weights[weights.len() - 1] / blocks.len() as u64;
        let arities: Vec<usize> = shape.arities().collect();
        let inside = weights.iter().filter(|weight| **weight <= region_leaves).count() - 1;
        let regions = blocks
            .into_par_iter()
            .map(|block| {
                let mut levels = vec![block];
                for arity in &arities[..inside] {
                    let below = &levels[levels.len() - 1];
                    let parents = if let [child] = below[..] {
                        vec![hash::<H>(&vec![child; *arity])?]
                    } else {
                        below.chunks(*arity).map(hash::<H>).collect::<Result<_, Fault>>()?
                    };
                    levels.push(parents);
                }
                Ok(levels)
            })
            .collect::<Result<Vec<_>, Fault>>()?;
        let mut tree = Self { shape, weights, region_leaves, regions, upper: Vec::new() };
        let total = tree.weights[arities.len()];
        let mut below: Vec<Node> = (0..total / tree.weights[inside]).map(|i| tree.node(inside, i)).collect();
        for arity in &arities[inside..] {
            below = below.par_chunks(*arity).map(hash::<H>).collect::<Result<_, Fault>>()?;
            tree.upper.push(below.clone());
        }
        Ok(tree)
    }

    /// The `index`-th node of a level; the leaves are level 0.
    pub(super) fn node(&self, level: usize, index: u64) -> Node {
        let inside = self.weights.len() - 1 - self.upper.len();
        match level.checked_sub(inside + 1) {
            Some(above) => self.upper[above][index as usize],
            None => {
                let region = index * self.weights[level] / self.region_leaves;
                let nodes = &self.regions[region as usize][level];
                nodes[(index % nodes.len() as u64) as usize]
            }
        }
    }

    pub(super) fn open(&self, leaf: u64) -> MerkleProof {
        open(&self.shape, leaf, |level, index| self.node(level, index))
    }

    pub(super) fn root(&self) -> Node {
        self.node(self.weights.len() - 1, 0)
    }
}
