//! The record is made to tell less: only with the approver's yes to exactly these lines and this archive, once.

use lychgate_core::Digest;
use lychgate_core::receipt::ReceiptKind;
use lychgate_gate::ledger::{AnchorNote, Archived};
use lychgate_keys::verdict::{BundleEdge, PruneVerdict};
use lychgate_store::Store as _;

use crate::kit::Kit;

fn edge(line: u64) -> BundleEdge {
    line.try_into().unwrap()
}

fn bare(kit: &Kit, below: u64) -> usize {
    let rows = kit.store.inner().record(0, usize::MAX).unwrap();
    let rows = rows.iter().filter(|row| row.index < below);
    rows.filter(|row| row.bytes.is_none()).count()
}

fn yes(kit: &Kit, what: Archived) -> PruneVerdict {
    let mut yes = PruneVerdict {
        version: Default::default(),
        object_type: Default::default(),
        first: what.first,
        below: what.below,
        archive: what.archive,
        at: kit.gate.now(),
        challenge: kit.gate.challenge().unwrap(),
        mark: kit.mark(),
    };
    kit.approver.sign(&mut yes).unwrap();
    yes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_dropped_with_the_approvers_yes_to_them_alone() {
    let kit = Kit::new().await;
    while kit.store.inner().record_len().unwrap() < 600 {
        kit.gate.note_anchor(AnchorNote::Silent).await.unwrap();
    }
    let what = Archived {
        first: edge(0),
        below: edge(512),
        archive: Digest::sha256(b"archive"),
    };
    assert!(kit.gate.prune(what, None).await.is_err());
    let other = Archived {
        below: edge(256),
        ..what
    };
    let elsewhere = Archived {
        archive: Digest::sha256(b"another archive"),
        ..what
    };
    for signed in [other, elsewhere] {
        let yes = yes(&kit, signed);
        assert!(kit.gate.prune(what, Some(&yes)).await.is_err());
    }
    let mut forged = yes(&kit, what);
    forged.at = forged.at.after(std::time::Duration::from_millis(1));
    assert!(kit.gate.prune(what, Some(&forged)).await.is_err());
    let beyond = Archived {
        below: edge(1024),
        ..what
    };
    let beyond_yes = yes(&kit, beyond);
    assert!(kit.gate.prune(beyond, Some(&beyond_yes)).await.is_err());
    assert_eq!(bare(&kit, 600), 0);

    let captured = yes(&kit, what);
    kit.gate.prune(what, Some(&captured)).await.unwrap();
    assert_eq!((bare(&kit, 512), bare(&kit, 600)), (512, 512));
    assert!(
        kit.gate.prune(what, Some(&captured)).await.is_err(),
        "a yes counts once"
    );
    let rows = kit.store.inner().record(512, usize::MAX).unwrap();
    let told = rows.iter().filter_map(|row| row.bytes.as_deref());
    let told: Vec<lychgate_core::receipt::Receipt> = told
        .map(|bytes| lychgate_core::json::from_value(&crate::kit::value_of(bytes)).unwrap())
        .filter(|one: &lychgate_core::receipt::Receipt| one.kind == ReceiptKind::Pruned)
        .collect();
    let [told] = told.as_slice() else {
        panic!("{told:?}");
    };
    let archive = what.archive.to_base64url();
    assert_eq!(
        told.detail.as_deref(),
        Some(format!("lines:0-511 archive:{archive}").as_str())
    );
    assert_eq!(told.approver_key.as_ref(), Some(kit.approver.key_id()));
}
