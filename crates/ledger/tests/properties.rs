//! Laws: every proof verifies, no proof with one bit changed does, and tiles do not depend on how the log grew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Folder, leaves, root_of};
use lychgate_ledger::tiles::{Checked, ReadFault, TileFinding, TileKind, check_tiles};
use lychgate_ledger::tree::{Leaves, ProofFault, consistency_proof, inclusion_proof, root_at};
use lychgate_ledger::{
    Hash, HashReader, Node, TileBuilder, TileReader, verify_consistency, verify_inclusion,
};
use proptest::prelude::*;

#[test]
fn every_proof_of_every_small_tree_verifies_and_only_for_its_sizes() {
    let all = leaves(34);
    let tree = Leaves(&all);
    let roots: Vec<Hash> = (0..=34).map(|size| root_of(&all[..size])).collect();
    for size in 1..=34u64 {
        let root = &roots[size as usize];
        for index in 0..size {
            let proof = inclusion_proof(index, size, &tree).unwrap();
            for other in 0..size + 2 {
                let verdict = verify_inclusion(&all[index as usize], other, size, &proof, root);
                assert_eq!(verdict.is_ok(), other == index, "{index} {other} {size}");
            }
        }
        for old in 0..=size {
            let proof = consistency_proof(old, size, &tree).unwrap();
            for other in 1..=size {
                let before = &roots[other as usize];
                let verdict = verify_consistency(other, before, size, root, &proof);
                // From 0 and to itself the proof is empty.
                let empty = proof.is_empty() && other == size;
                assert_eq!(
                    verdict.is_ok(),
                    other == old || empty,
                    "{old} {other} {size}"
                );
            }
        }
    }
}

#[test]
fn the_edges_have_their_own_answers() {
    let (empty, one) = (root_of(&[]), root_of(&leaves(1)));
    assert_eq!(verify_consistency(0, &empty, 0, &empty, &[]), Ok(()));
    assert_eq!(verify_consistency(0, &empty, 1, &one, &[]), Ok(()));
    assert_eq!(
        verify_consistency(0, &one, 1, &one, &[]),
        Err(ProofFault::OldRoot)
    );
    assert_eq!(
        verify_consistency(0, &empty, 0, &one, &[]),
        Err(ProofFault::Root)
    );
    assert_eq!(
        verify_consistency(1, &one, 1, &empty, &[]),
        Err(ProofFault::Root)
    );
    let order = ProofFault::Order { old: 2, new: 1 };
    assert_eq!(verify_consistency(2, &one, 1, &one, &[]), Err(order));
    let length = ProofFault::Length {
        expected: 0,
        found: 1,
    };
    assert_eq!(verify_consistency(0, &empty, 1, &one, &[one]), Err(length));
    let index = ProofFault::Index { index: 0, size: 0 };
    assert_eq!(
        verify_inclusion(&leaves(1)[0], 0, 0, &[], &empty),
        Err(index)
    );
    // The largest sizes there are: refused for their hashes, in bounded time.
    let far = verify_inclusion(&leaves(1)[0], u64::MAX - 1, u64::MAX, &[], &one);
    assert_eq!(
        far,
        Err(ProofFault::Length {
            expected: 63,
            found: 0
        })
    );
    assert!(verify_consistency(u64::MAX - 1, &one, u64::MAX, &one, &[]).is_err());
}

fn flipped(hashes: &[Hash], bit: usize) -> Vec<Hash> {
    let mut flipped = hashes.to_vec();
    flipped[bit / 256][bit % 256 / 8] ^= 1 << (bit % 8);
    flipped
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_bit_of_an_inclusion_proof_may_change(size in 1u64..600, at: prop::sample::Index) {
        let all = leaves(size);
        let index = at.index(size as usize) as u64;
        let (leaf, root) = (all[index as usize], root_of(&all));
        let proof = inclusion_proof(index, size, &Leaves(&all)).unwrap();
        prop_assert_eq!(verify_inclusion(&leaf, index, size, &proof, &root), Ok(()));
        for bit in 0..256 * proof.len() {
            prop_assert!(verify_inclusion(&leaf, index, size, &flipped(&proof, bit), &root).is_err());
        }
        for bit in 0..256 {
            let mut other = leaf;
            other.0[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(verify_inclusion(&other, index, size, &proof, &root).is_err());
            prop_assert!(verify_inclusion(&leaf, index, size, &proof, &flipped(&[root], bit)[0]).is_err());
        }
        for bit in 0..64 {
            prop_assert!(verify_inclusion(&leaf, index ^ 1 << bit, size, &proof, &root).is_err());
        }
        let longer = [&proof[..], &[root]].concat();
        prop_assert!(verify_inclusion(&leaf, index, size, &longer, &root).is_err());
        if let Some((_, shorter)) = proof.split_last() {
            prop_assert!(verify_inclusion(&leaf, index, size, shorter, &root).is_err());
        }
    }

    #[test]
    fn no_bit_of_a_consistency_proof_may_change(size in 2u64..600, at: prop::sample::Index) {
        let all = leaves(size);
        let old = 1 + at.index(size as usize - 1) as u64;
        let (before, after) = (root_of(&all[..old as usize]), root_of(&all));
        let proof = consistency_proof(old, size, &Leaves(&all)).unwrap();
        let verify = |old, before: &Hash, proof: &[Hash], after: &Hash| {
            verify_consistency(old, before, size, after, proof)
        };
        prop_assert_eq!(verify(old, &before, &proof, &after), Ok(()));
        for bit in 0..256 * proof.len() {
            prop_assert!(verify(old, &before, &flipped(&proof, bit), &after).is_err());
        }
        for bit in 0..256 {
            prop_assert!(verify(old, &flipped(&[before], bit)[0], &proof, &after).is_err());
            prop_assert!(verify(old, &before, &proof, &flipped(&[after], bit)[0]).is_err());
        }
        for bit in 0..64 {
            prop_assert!(verify(old ^ 1 << bit, &before, &proof, &after).is_err() || old ^ 1 << bit == 0);
        }
    }

    #[test]
    fn tiles_do_not_depend_on_how_the_log_grew(mut sizes in prop::collection::vec(0u64..1500, 1..5)) {
        sizes.sort_unstable();
        let last = *sizes.last().unwrap();
        let (stepped, one) = (Folder::grown(&sizes).0, Folder::grown(&[last]).0);
        // Partial tiles of the sizes between stay behind; every tile of the last size is the same.
        stepped.keep(|tile| one.0.borrow().contains_key(&tile.to_string()));
        prop_assert_eq!(stepped, one);
    }

    #[test]
    fn building_goes_on_from_what_was_kept(first in 0u64..1500, more in 0u64..600) {
        let (folder, builder) = Folder::grown(&[first]);
        let kept = builder.frontier().clone();
        let mut resumed = TileBuilder::resume(kept, &&folder).unwrap();
        prop_assert_eq!(&resumed, &builder);
        folder.grow(&mut resumed, first + more);
        prop_assert_eq!(resumed.frontier().root(), root_of(&leaves(first + more)));
        // Not from tiles of another tree.
        if first % 256 > 0 {
            let mut other = leaves(first);
            other.last_mut().unwrap().0[0] ^= 1;
            prop_assert!(TileBuilder::resume(other.into_iter().collect(), &&folder).is_err());
        }
    }

    #[test]
    fn tiles_give_every_node_and_proof(size in 1u64..1500, at: prop::sample::Index, older: prop::sample::Index) {
        let all = leaves(size);
        let (folder, _) = Folder::grown(&[size]);
        let tree = TileReader::new(&folder, size);
        for level in 0..=size.ilog2() as u8 {
            let nodes: Vec<Node> = (0..size >> level).filter_map(|index| Node::new(level, index)).collect();
            prop_assert_eq!(tree.hashes(&nodes).unwrap(), Leaves(&all).hashes(&nodes).unwrap());
        }
        let beyond = Node::leaf(size);
        prop_assert!(tree.hashes(&[beyond]).is_err());
        let (index, old) = (at.index(size as usize) as u64, older.index(size as usize) as u64);
        prop_assert_eq!(inclusion_proof(index, size, &tree).unwrap(), inclusion_proof(index, size, &Leaves(&all)).unwrap());
        prop_assert_eq!(consistency_proof(old, size, &tree).unwrap(), consistency_proof(old, size, &Leaves(&all)).unwrap());
        // An older tree, whose partial tiles are gone, is read from the wider ones where these are full.
        let (grown, _) = Folder::grown(&[size, (size / 256 + 1) * 256]);
        grown.keep(|tile| tile.is_full() || tile.level() > 0);
        let older = TileReader::new(&grown, size);
        prop_assert_eq!(root_at(size, &older).unwrap(), root_of(&all));
    }
}

#[test]
fn no_bit_of_any_tile_or_bundle_may_change() {
    let size = 700;
    let root = root_of(&leaves(size));
    let (folder, _) = Folder::grown(&[size]);
    let check = |folder: &Folder| check_tiles(size, &root, &folder);
    assert_eq!(
        check(&folder),
        Ok(Checked {
            size,
            without_bytes: 0
        })
    );
    let paths: Vec<String> = folder.0.borrow().keys().cloned().collect();
    for path in paths {
        let bytes = folder.0.borrow()[&path].clone();
        for bit in (0..8 * bytes.len()).step_by(61) {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            folder.0.borrow_mut().insert(path.clone(), other);
            assert!(check(&folder).is_err(), "{path} {bit}");
        }
        folder.0.borrow_mut().remove(&path);
        match check(&folder) {
            // A bundle that was pruned is stood in for.
            Ok(checked) => assert!(checked.without_bytes > 0 && path.starts_with("tile/entries")),
            Err(fault) => {
                let missing = TileFinding::Read(ReadFault::Missing(path.parse().unwrap()));
                assert_eq!(fault, missing);
            }
        }
        folder.0.borrow_mut().insert(path, bytes);
    }
    let wrong = check_tiles(size, &[0; 32], &&folder);
    assert_eq!(wrong, Err(TileFinding::Root));
}

/// tlog-tiles "Pruning": what remains is enough for everything at or after the minimum index.
#[test]
fn pruned_tiles_are_not_missed() {
    let size = 70_000;
    let all = leaves(size);
    for minimum in [256, 300, 65_535, 65_536, 66_000, 69_999] {
        let (folder, _) = Folder::grown(&[size]);
        let before = folder.0.borrow().len();
        folder.keep(|tile| !tile.may_be_pruned(minimum));
        assert!(folder.0.borrow().len() < before);
        let tree = TileReader::new(&folder, size);
        let sizes = (minimum..size)
            .step_by(977)
            .chain([minimum, minimum + 1, size]);
        for old in sizes {
            let before = TileReader::new(&folder, old);
            // Roots of trees whose own partial tiles were kept are read from wider tiles; only full ones stand in.
            if old == size || old % 256 == 0 {
                assert_eq!(
                    root_at(old, &before).unwrap(),
                    root_of(&all[..old as usize])
                );
            }
            assert!(
                consistency_proof(old, size, &tree).is_ok(),
                "{old} {minimum}"
            );
            if old < size {
                assert!(inclusion_proof(old, size, &tree).is_ok(), "{old} {minimum}");
            }
        }
    }
    // Without any full bundle, every proof about every entry is still there.
    let (folder, _) = Folder::grown(&[size]);
    folder.keep(|tile| tile.kind() != TileKind::Entries || !tile.is_full());
    let tree = TileReader::new(&folder, size);
    assert!(
        (0..size)
            .step_by(499)
            .all(|index| inclusion_proof(index, size, &tree).is_ok())
    );
}
