//! The three hashes of RFC 9162's Merkle tree (RFC 6962 gave them first): leaf, node, root.

pub use lychgate_core::merkle::{Hash, LeafHash, leaf_hash, node_hash};
use sha2::{Digest as _, Sha256};

use crate::tree::Frontier;

/// The root of the tree without leaves: SHA-256 of nothing (RFC 9162 §2.1.1).
#[must_use]
pub fn empty_root() -> Hash {
    Sha256::digest([]).into()
}

/// The root over leaves in their order: the Merkle Tree Hash of RFC 9162 §2.1.1. SHA-256 of nothing when there are
/// none.
///
/// One pass, and as many hashes in memory as the number of leaves has binary digits.
#[must_use]
pub fn root(leaves: impl IntoIterator<Item = LeafHash>) -> [u8; 32] {
    let mut frontier = Frontier::new();
    frontier.extend(leaves);
    frontier.root()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    }

    /// The definition of RFC 9162 §2.1.1, word for word.
    fn defined(leaves: &[Vec<u8>]) -> [u8; 32] {
        match leaves {
            [] => Sha256::digest([]).into(),
            [one] => leaf_hash(one).0,
            many => {
                // The largest power of two smaller than their number.
                let k = many.len().next_power_of_two() / 2;
                node_hash(&defined(&many[..k]), &defined(&many[k..]))
            }
        }
    }

    #[test]
    fn the_roots_are_certificate_transparency_s_known_ones() {
        let leaves = [
            "",
            "00",
            "10",
            "2021",
            "3031",
            "40414243",
            "5051525354555657",
            "606162636465666768696a6b6c6d6e6f",
        ];
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        for (count, known) in roots.into_iter().enumerate() {
            let hashes = leaves[..count].iter().map(|leaf| leaf_hash(&unhex(leaf)));
            assert_eq!(hex(&root(hashes)), known, "{count} leaves");
        }
    }

    #[test]
    fn a_leaf_is_never_a_node() {
        let (left, right) = ([1; 32], [2; 32]);
        let both = [left, right].concat();
        assert_ne!(leaf_hash(&both).0, node_hash(&left, &right));
        assert_ne!(node_hash(&left, &right), node_hash(&right, &left));
    }

    proptest! {
        #[test]
        fn one_pass_gives_what_the_definition_gives(leaves in prop::collection::vec(any::<Vec<u8>>(), 0..70)) {
            prop_assert_eq!(root(leaves.iter().map(|leaf| leaf_hash(leaf))), defined(&leaves));
        }

        #[test]
        fn order_and_every_bit_count(leaves in prop::collection::vec(any::<[u8; 4]>(), 2..40), at: prop::sample::Index) {
            let hashes: Vec<_> = leaves.iter().map(|leaf| leaf_hash(leaf)).collect();
            let mut other = hashes.clone();
            other[at.index(hashes.len())].0[0] ^= 1;
            prop_assert_ne!(root(hashes.clone()), root(other));
            prop_assert_ne!(root(hashes.clone()), root(hashes[1..].to_vec()));
        }
    }
}
