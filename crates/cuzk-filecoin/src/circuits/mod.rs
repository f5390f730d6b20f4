//! The published circuits, generic over the tree shape.
//!
//! Everything else in this crate is free of type parameters. These functions are for callers that
//! hand a circuit to another proving system, such as bellperson; each such use instantiates the
//! circuit once more.

mod porep;
mod post;
mod update;

use filecoin_proofs::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_update::constants::TreeRHasher;

pub use porep::{blank_porep, porep};
pub use post::{blank_post, post};
pub use update::{blank_update, update};

pub(crate) use porep::{
    params as porep_params, public_inputs as porep_public_inputs, published_inputs as porep_published_inputs,
};
pub(crate) use post::{challenges as post_challenges, params as post_params, public_inputs as post_public_inputs};
pub(crate) use update::{
    params as update_params, public_inputs as update_public_inputs, published_inputs as update_published_inputs,
};

use crate::{CircuitId, FilecoinError, SectorSize, wire::TreeShape};

mod sealed {
    pub trait Sealed {}
}

/// The three tree shapes of the registered sector sizes: trees C and R of octrees
/// ([`SectorShapeBase`]: 2 KiB, 8 MiB, 512 MiB), of eight octrees ([`SectorShapeSub8`]: 32 GiB) and
/// of twice eight ([`SectorShapeTop2`]: 64 GiB), all over Poseidon.
pub trait Shape: MerkleTreeTrait<Hasher = TreeRHasher> + sealed::Sealed + 'static {
    /// Arities: base tree, subtrees, top; 0 where there is none.
    const ARITIES: (usize, usize, usize);
}

macro_rules! shapes {
    ($($tree:ty => $arities:expr),*) => {
        $(
            impl sealed::Sealed for $tree {}
            impl Shape for $tree {
                const ARITIES: (usize, usize, usize) = $arities;
            }
        )*
    };
}
shapes!(SectorShapeBase => (8, 0, 0), SectorShapeSub8 => (8, 8, 0), SectorShapeTop2 => (8, 8, 2));

/// Evaluates an expression with a type alias for the tree shape of a sector size.
macro_rules! with_shape {
    ($size:expr, $tree:ident => $body:expr) => {
        match $size {
            $crate::SectorSize::KiB2 | $crate::SectorSize::MiB8 | $crate::SectorSize::MiB512 => {
                type $tree = filecoin_proofs::SectorShapeBase;
                $body
            }
            $crate::SectorSize::GiB32 => {
                type $tree = filecoin_proofs::SectorShapeSub8;
                $body
            }
            $crate::SectorSize::GiB64 => {
                type $tree = filecoin_proofs::SectorShapeTop2;
                $body
            }
        }
    };
}
pub(crate) use with_shape;

/// Refuses a type parameter that is not the shape of the circuit's sector size.
fn check_shape<Tree: Shape>(circuit: CircuitId) -> Result<(), FilecoinError> {
    let TreeShape { base, sub, top, .. } = TreeShape::replica(circuit.sector_size);
    if Tree::ARITIES == (base, sub, top) {
        return Ok(());
    }
    Err(FilecoinError::WrongShape { circuit, expected: (base, sub, top), found: Tree::ARITIES })
}

/// Number of nodes as the published interfaces take it: below 2³².
const fn nodes(size: SectorSize) -> usize {
    size.nodes() as usize
}
