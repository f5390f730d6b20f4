//! Valid statements of any sector size without a sector.
//!
//! A proof opens a few thousand of the 2³⁰ nodes of a 32 GiB sector. Here only those are made: the
//! opened labels are hashed from random parents, and Merkle trees are known along the opened paths,
//! with random siblings everywhere else. What comes out satisfies the circuits and Filecoin's
//! verifiers like the statements of a real sector, takes seconds and a few megabytes, and stands
//! for no stored data: it is for benchmarks and tests.
//!
//! Synthetic and non-interactive PoRep are out of reach, since their challenges depend on the
//! commitment to the replica, and that on the opened nodes. An update's challenges do so as well;
//! its replicas are therefore periodic, so that every node is known before the challenges are.

mod post;
mod seal;
mod statement;
mod tree;
mod update;

use rand_core::RngCore;

pub use post::{window_vanilla, winning_vanilla};
pub use seal::{SealInput, c1};
pub use statement::statement;
pub use update::{SyntheticUpdate, update};

use crate::wire::Node;

/// A node below 2²⁵⁴.
fn random_node(rng: &mut impl RngCore) -> Node {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    Node(crate::seal::fr_safe(bytes))
}

/// Nodes of data that repeat throughout a synthetic sector: eight, one parent of the octrees.
const BLOCK: usize = 8;

fn random_block(rng: &mut impl RngCore) -> Vec<Node> {
    (0..BLOCK).map(|_| random_node(rng)).collect()
}
