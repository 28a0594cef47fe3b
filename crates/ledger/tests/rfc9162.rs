//! The examples of RFC 9162 §2.1.5 and the known hashes of Certificate Transparency's reference tree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use lychgate_ledger::tree::{Leaves, consistency_proof, inclusion_proof, root_at};
use lychgate_ledger::{Hash, LeafHash, leaf_hash, node_hash, verify_consistency, verify_inclusion};

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn hash(text: &str) -> Hash {
    unhex(text).try_into().unwrap()
}

/// The tree of seven leaves, its nodes named as the RFC names them.
#[test]
fn the_seven_leaves_have_the_proofs_that_the_rfc_lists() {
    let leaves: Vec<LeafHash> = (0..7u8).map(|at| leaf_hash(&[at])).collect();
    let [a, b, c, d, e, f, j] = [0, 1, 2, 3, 4, 5, 6].map(|at: usize| leaves[at].0);
    let (g, h, i) = (node_hash(&a, &b), node_hash(&c, &d), node_hash(&e, &f));
    let (k, l) = (node_hash(&g, &h), node_hash(&i, &j));
    let tree = Leaves(&leaves);
    let root = node_hash(&k, &l);
    assert_eq!(root_at(7, &tree), Ok(root));

    let path = |index| inclusion_proof(index, 7, &tree).unwrap();
    assert_eq!(path(0), [b, h, l]);
    assert_eq!(path(3), [c, g, l]);
    assert_eq!(path(4), [f, j, k]);
    assert_eq!(path(6), [i, k]);

    let proof = |old| consistency_proof(old, 7, &tree).unwrap();
    assert_eq!(root_at(3, &tree), Ok(node_hash(&g, &c)));
    assert_eq!(proof(3), [c, d, g, l]);
    assert_eq!(root_at(4, &tree), Ok(k));
    assert_eq!(proof(4), [l]);
    assert_eq!(root_at(6, &tree), Ok(node_hash(&k, &i)));
    assert_eq!(proof(6), [i, j, k]);
    assert!(proof(7).is_empty() && proof(0).is_empty());
}

const LEAVES: [&str; 8] = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
];
const ROOT_1: &str = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
const ROOT_2: &str = "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125";
const ROOT_4: &str = "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7";
const LEAF_1: &str = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
const NODE_2_3: &str = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
const NODE_4_7: &str = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";
const LEAF_4: &str = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
const NODE_6_7: &str = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
const NODE_4_5: &str = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";

#[test]
fn the_reference_tree_has_its_known_proofs() {
    let leaves: Vec<LeafHash> = LEAVES.iter().map(|leaf| leaf_hash(&unhex(leaf))).collect();
    let tree = Leaves(&leaves);
    let inclusions: [(u64, u64, &[&str]); 5] = [
        (0, 1, &[]),
        (0, 8, &[LEAF_1, NODE_2_3, NODE_4_7]),
        (5, 8, &[LEAF_4, NODE_6_7, ROOT_4]),
        (2, 3, &[ROOT_2]),
        (1, 5, &[ROOT_1, NODE_2_3, LEAF_4]),
    ];
    for (index, size, known) in inclusions {
        let known: Vec<Hash> = known.iter().map(|text| hash(text)).collect();
        assert_eq!(inclusion_proof(index, size, &tree), Ok(known.clone()));
        let (leaf, root) = (&leaves[index as usize], root_at(size, &tree).unwrap());
        assert_eq!(verify_inclusion(leaf, index, size, &known, &root), Ok(()));
    }
    let consistencies: [(u64, u64, &[&str]); 4] = [
        (1, 1, &[]),
        (1, 8, &[LEAF_1, NODE_2_3, NODE_4_7]),
        (6, 8, &[NODE_4_5, NODE_6_7, ROOT_4]),
        (2, 5, &[NODE_2_3, LEAF_4]),
    ];
    for (old, new, known) in consistencies {
        let known: Vec<Hash> = known.iter().map(|text| hash(text)).collect();
        assert_eq!(consistency_proof(old, new, &tree), Ok(known.clone()));
        let (before, after) = (root_at(old, &tree).unwrap(), root_at(new, &tree).unwrap());
        assert_eq!(
            verify_consistency(old, &before, new, &after, &known),
            Ok(())
        );
    }
}
