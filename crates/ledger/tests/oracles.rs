//! Other people's implementations accept what ours makes, and ours accepts what theirs make.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Folder, ORIGIN, entry, head, key, leaves, name, root_of, signer};
use ct_merkle::{ConsistencyProof, InclusionProof, RootHash, mem_backed_tree::MemoryBackedTree};
use lychgate_ledger::note::SignatureKind;
use lychgate_ledger::tiles::TileKind;
use lychgate_ledger::tree::{Leaves, consistency_proof, inclusion_proof, root_at};
use lychgate_ledger::{
    Checkpoint, Hash, Note, SignedCheckpoint, Tile, TileReader, VerifierKey, verify_consistency,
    verify_inclusion,
};
use sha2::Sha256;
use signed_note::{StandardSigner, StandardVerifier, VerifierList};
use tlog_tiles::{HashReader as _, TileReader as _};

fn theirs(hash: Hash) -> tlog_tiles::Hash {
    tlog_tiles::Hash(hash)
}

fn chunks(bytes: &[u8]) -> Vec<Hash> {
    bytes.as_chunks().0.to_vec()
}

#[test]
fn ct_merkle_agrees_on_roots_and_every_proof() {
    let mut tree = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    let all = leaves(75);
    for size in 1..=75u64 {
        tree.push(entry(size - 1));
        let root = root_of(&all[..size as usize]);
        assert_eq!(tree.root().as_bytes().as_slice(), root);
        let their_root = RootHash::<Sha256>::new(root.into(), size);
        for index in 0..size {
            let ours = inclusion_proof(index, size, &Leaves(&all)).unwrap();
            let proof = InclusionProof::<Sha256>::try_from_bytes(ours.concat()).unwrap();
            their_root
                .verify_inclusion(&entry(index), index, &proof)
                .unwrap();
            let made = chunks(tree.prove_inclusion(index as usize).as_bytes());
            assert_eq!(made, ours);
            verify_inclusion(&all[index as usize], index, size, &made, &root).unwrap();
        }
        for old in 1..=size {
            let ours = consistency_proof(old, size, &Leaves(&all)).unwrap();
            let before = root_of(&all[..old as usize]);
            let old_root = RootHash::<Sha256>::new(before.into(), old);
            let proof = ConsistencyProof::<Sha256>::try_from_bytes(ours.concat()).unwrap();
            their_root.verify_consistency(&old_root, &proof).unwrap();
            let made = chunks(tree.prove_consistency((size - old) as usize).as_bytes());
            verify_consistency(old, &before, size, &root, &made).unwrap();
        }
    }
}

/// A tile of theirs and ours at the same place.
fn ours(tile: &tlog_tiles::Tile) -> Tile {
    let kind = TileKind::Hashes(tile.level());
    Tile::new(kind, tile.level_index(), tile.width() as u16).unwrap()
}

struct Served<'a>(&'a Folder);

impl tlog_tiles::TileReader for Served<'_> {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[tlog_tiles::Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        let folder = self.0.0.borrow();
        Ok(tiles
            .iter()
            .map(|tile| folder[&ours(tile).to_string()].clone())
            .collect())
    }

    fn save_tiles(&self, _: &[tlog_tiles::Tile], _: &[Vec<u8>]) {}
}

struct Stored(Vec<tlog_tiles::Hash>);

impl tlog_tiles::HashReader for Stored {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog_tiles::Hash>, tlog_tiles::Error> {
        Ok(indexes.iter().map(|at| self.0[*at as usize]).collect())
    }
}

impl Stored {
    fn of(size: u64) -> Self {
        let mut stored = Self(Vec::new());
        for at in 0..size {
            let more = tlog_tiles::stored_hashes(at, &entry(at), &stored).unwrap();
            stored.0.extend(more);
        }
        stored
    }
}

#[test]
fn tlog_tiles_authenticates_our_tiles_and_our_proofs() {
    for size in [1, 2, 255, 256, 257, 1000, 70_000] {
        let (folder, builder) = Folder::grown(&[size]);
        let root = builder.frontier().root();
        let served = Served(&folder);
        // Their reader checks every tile it loads against the root.
        let reader = tlog_tiles::TileHashReader::new(size, theirs(root), &served);
        assert_eq!(served.height(), 8);
        assert_eq!(tlog_tiles::tree_hash(size, &reader).unwrap(), theirs(root));
        let leaves = leaves(size);
        let tree = TileReader::new(&folder, size);
        for index in (0..size).step_by(1 + size as usize / 60).chain([size - 1]) {
            let made = tlog_tiles::prove_record(size, index, &reader).unwrap();
            let proof = inclusion_proof(index, size, &tree).unwrap();
            assert_eq!(made, proof.iter().copied().map(theirs).collect::<Vec<_>>());
            let leaf = leaves[index as usize];
            tlog_tiles::check_record(&made, size, theirs(root), index, theirs(leaf.0)).unwrap();
            let made: Vec<Hash> = made.iter().map(|hash| hash.0).collect();
            verify_inclusion(&leaf, index, size, &made, &root).unwrap();

            let old = index + 1;
            let before = root_at(old, &Leaves(&leaves)).unwrap();
            let made = tlog_tiles::prove_tree(size, old, &reader).unwrap();
            let proof = consistency_proof(old, size, &tree).unwrap();
            let proof: Vec<_> = proof.into_iter().map(theirs).collect();
            tlog_tiles::check_tree(&proof, size, theirs(root), old, theirs(before)).unwrap();
            let made: Vec<Hash> = made.iter().map(|hash| hash.0).collect();
            verify_consistency(old, &before, size, &root, &made).unwrap();
        }
    }
}

#[test]
fn tlog_tiles_writes_the_same_tiles_for_any_growth() {
    let stored = Stored::of(1100);
    assert_eq!(stored.read_hashes(&[0]).unwrap().len(), 1);
    for (old, new) in [
        (0, 1),
        (0, 256),
        (255, 257),
        (256, 256),
        (300, 1000),
        (511, 512),
        (1, 1100),
    ] {
        let tiles = tlog_tiles::Tile::new_tiles(8, old, new);
        let mine: Vec<Tile> = Tile::growth(old, new)
            .filter(|tile| tile.kind() != TileKind::Entries)
            .collect();
        assert_eq!(
            tiles.iter().map(ours).collect::<Vec<_>>(),
            mine,
            "{old} {new}"
        );
        let (folder, _) = Folder::grown(&[old, new]);
        for tile in &tiles {
            let bytes = tile.read_data(&stored).unwrap();
            assert_eq!(folder.0.borrow()[&ours(tile).to_string()], bytes);
            // Their path begins with the tile's height, as the Go checksum database has it.
            assert_eq!(
                tile.path().replacen("tile/8/", "tile/", 1),
                ours(tile).to_string()
            );
        }
    }
}

#[test]
fn tlog_tiles_reads_our_checkpoints_and_ours_reads_theirs() {
    for (size, root) in [(0, root_of(&[])), (7, [1; 32]), (u64::MAX >> 1, [255; 32])] {
        let ours = Checkpoint::new(ORIGIN, size, root).unwrap();
        let read = tlog_tiles::Checkpoint::from_bytes(ours.to_string().as_bytes()).unwrap();
        assert_eq!(
            (read.origin(), read.size(), read.hash().0),
            (ORIGIN, size, root)
        );
        let made =
            tlog_tiles::Checkpoint::new(ORIGIN, size, theirs(root), "an extension\n").unwrap();
        let text = String::from_utf8(made.to_bytes()).unwrap();
        let again: Checkpoint = text.parse().unwrap();
        assert_eq!(
            (again.size(), again.root(), again.extensions().len()),
            (size, &root, 1)
        );
        assert_eq!(again.to_string(), text);
    }
}

fn verifiers(key: &VerifierKey) -> VerifierList {
    let verifier = StandardVerifier::new(&key.to_string()).unwrap();
    VerifierList::new(vec![Box::new(verifier)])
}

#[test]
fn signed_note_verifies_our_notes() {
    let key = key(ORIGIN, SignatureKind::Ed25519, 1);
    let mut checkpoint = head(5, [3; 32], 1);
    checkpoint
        .cosign(&name("wit.example"), 1_700_000_000, &signer(2))
        .unwrap();
    let text = checkpoint.to_string();
    let read = signed_note::Note::from_bytes(text.as_bytes()).unwrap();
    assert_eq!(read.to_bytes(), text.as_bytes());
    // The cosignature is of a kind it does not know, and it is carried along.
    let (verified, unverified) = read.verify(&verifiers(&key)).unwrap();
    assert_eq!((verified.len(), unverified.len()), (1, 1));
    assert_eq!(verified[0].id(), key.id());
    let other = text.replacen("\n5\n", "\n6\n", 1);
    assert!(
        signed_note::Note::from_bytes(other.as_bytes())
            .unwrap()
            .verify(&verifiers(&key))
            .is_err()
    );
}

/// A secret key in their spelling.
fn secret(seed: u8) -> String {
    let public = [&[1], &signer(seed).public()[..]].concat();
    let id = signed_note::key_id(ORIGIN, &public);
    let encoded = STANDARD.encode([&[1], &[seed; 32][..]].concat());
    format!("PRIVATE+KEY+{ORIGIN}+{id:08x}+{encoded}")
}

#[test]
fn ours_verifies_signed_note_s_notes() {
    for seed in 0..20 {
        let key = key(ORIGIN, SignatureKind::Ed25519, seed);
        let text = Checkpoint::new(ORIGIN, 9, [seed; 32]).unwrap().to_string();
        let mut made = signed_note::Note::new(text.as_bytes(), &[]).unwrap();
        made.add_sigs(&[&StandardSigner::new(&secret(seed)).unwrap()])
            .unwrap();
        let bytes = made.to_bytes();
        assert_eq!(
            Note::parse(&bytes)
                .unwrap()
                .verify(std::slice::from_ref(&key))
                .unwrap()
                .len(),
            1
        );
        let read = SignedCheckpoint::parse(&bytes).unwrap();
        assert_eq!(read.verify(&[key], &[]).unwrap().checkpoint().size(), 9);
    }
}
