#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use lychgate_keys::SigningKey;

fn signer(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn key(name: &str, kind: SignatureKind, seed: u8) -> VerifierKey {
    VerifierKey::new(KeyName::new(name).unwrap(), kind, signer(seed).public()).unwrap()
}

fn signed(size: u64) -> SignedCheckpoint {
    let head = Checkpoint::new("log.example/one", size, [7; 32]).unwrap();
    SignedCheckpoint::sign(head, &signer(1)).unwrap()
}

#[test]
fn texts_read_back_or_are_refused_with_the_reason() {
    let root = STANDARD.encode([7; 32]);
    let good = format!("log.example/one\n12\n{root}\n");
    assert_eq!(signed(12).checkpoint().to_string(), good);
    for text in [
        good.clone(),
        format!("{good}ext one\nétendu\n"),
        format!("Any Origin + all\n0\n{}\n", STANDARD.encode(empty_root())),
    ] {
        let read: Checkpoint = text.parse().unwrap();
        assert_eq!(read.to_string(), text);
    }
    for (text, fault) in [
        (String::new(), CheckpointFault::Lines),
        ("a\n1\n".into(), CheckpointFault::Lines),
        (good.trim_end().into(), CheckpointFault::Lines),
        (format!("\n12\n{root}\n"), CheckpointFault::Origin),
        (format!("a\n012\n{root}\n"), CheckpointFault::Size),
        (format!("a\n+12\n{root}\n"), CheckpointFault::Size),
        (format!("a\n\n{root}\n"), CheckpointFault::Size),
        (
            format!("a\n18446744073709551616\n{root}\n"),
            CheckpointFault::Size,
        ),
        (
            format!("a\n12\n{}\n", root.trim_end_matches('=')),
            CheckpointFault::Root,
        ),
        ("a\n12\nAAAA\n".into(), CheckpointFault::Root),
        (format!("a\n0\n{root}\n"), CheckpointFault::EmptyRoot),
        (format!("{good}\n"), CheckpointFault::Extension),
        (format!("{good}x\n\ny\n"), CheckpointFault::Extension),
        (format!("{good}x\ry\n"), CheckpointFault::Extension),
    ] {
        assert_eq!(text.parse::<Checkpoint>(), Err(fault), "{text:?}");
    }
}

#[test]
fn the_log_must_have_signed_and_witnesses_count_once_a_key() {
    let log = [key("log.example/one", SignatureKind::Ed25519, 1)];
    let mut head = signed(12);
    let one = KeyName::new("one.example").unwrap();
    let two = KeyName::new("two.example").unwrap();
    head.cosign(&one, 10, &signer(2)).unwrap();
    head.cosign(&two, 11, &signer(2)).unwrap();
    head.cosign(&KeyName::new("self.example").unwrap(), 11, &signer(1))
        .unwrap();
    let witnesses = [
        key("one.example", SignatureKind::Cosignature, 2),
        key("two.example", SignatureKind::Cosignature, 2),
        key("self.example", SignatureKind::Cosignature, 1),
    ];
    let read = SignedCheckpoint::parse(head.to_string().as_bytes()).unwrap();
    let verified = read.verify(&log, &witnesses).unwrap();
    assert_eq!(verified.cosignatures().len(), 3);
    assert_eq!(verified.quorum(), 1);
    assert_eq!(read.verify(&log, &[]).unwrap().quorum(), 0);
    assert_eq!(
        read.verify(&[], &witnesses),
        Err(CheckpointFault::NotTheLog)
    );
    // A witness' key never stands in for the log's, nor the other way round.
    assert!(read.verify(&witnesses, &[]).is_err());
    assert_eq!(read.verify(&log, &log).unwrap().quorum(), 0);
}

#[test]
fn a_witness_answer_is_taken_whole_or_not_at_all() {
    let witness = [key("one.example", SignatureKind::Cosignature, 2)];
    let name = KeyName::new("one.example").unwrap();
    let answer = |size| signed(size).cosign(&name, 10, &signer(2)).unwrap();
    let mut head = signed(12);
    assert_eq!(head.add_cosignatures(&answer(12), &witness), Ok(1));
    assert_eq!(head.add_cosignatures(&answer(12), &witness), Ok(1));
    assert_eq!(head.note().signatures().len(), 2);
    let before = head.clone();
    assert!(head.add_cosignatures(&answer(13), &witness).is_err());
    assert!(head.add_cosignatures("", &witness).is_err());
    let stranger = KeyName::new("who.example").unwrap();
    let strange = signed(12).cosign(&stranger, 10, &signer(3)).unwrap();
    assert_eq!(head.add_cosignatures(&strange, &witness), Ok(0));
    assert_eq!(head, before);
}
