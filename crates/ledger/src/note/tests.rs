#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;

fn name(text: &str) -> KeyName {
    KeyName::new(text).unwrap()
}

fn signer(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn known(text: &str, kind: SignatureKind, seed: u8) -> VerifierKey {
    VerifierKey::new(name(text), kind, signer(seed).public()).unwrap()
}

fn signed() -> (Note, [VerifierKey; 2]) {
    let mut note = Note::new("log.example/one\n1\n\nends\n").unwrap();
    note.sign(&name("log.example/one"), &signer(1)).unwrap();
    note.cosign(&name("wit.example"), 1_700_000_000, &signer(2))
        .unwrap();
    let keys = [
        known("log.example/one", SignatureKind::Ed25519, 1),
        known("wit.example", SignatureKind::Cosignature, 2),
    ];
    (note, keys)
}

#[test]
fn a_note_reads_back_and_verifies() {
    let (note, keys) = signed();
    let read = Note::parse(note.to_string().as_bytes()).unwrap();
    assert_eq!(read, note);
    let verified = read.verify(&keys).unwrap();
    assert_eq!(verified.len(), 2);
    assert_eq!(
        verified[0],
        VerifiedSignature {
            key: &keys[0],
            time: None
        }
    );
    assert_eq!(verified[1].time, Some(1_700_000_000));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (note, keys) = signed();
    let bytes = note.to_string().into_bytes();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            // A changed name or id makes an unknown key of one signature; never do both still verify.
            let both = Note::parse(&other)
                .is_ok_and(|note| note.verify(&keys).is_ok_and(|all| all.len() == 2));
            assert!(!both, "byte {at} bit {bit}");
        }
    }
}

#[test]
fn a_known_key_s_bad_signature_rejects_the_note_and_an_unknown_key_s_is_ignored() {
    let (mut note, keys) = signed();
    note.sign(&name("stranger.example"), &signer(3)).unwrap();
    assert_eq!(note.verify(&keys).unwrap().len(), 2);
    assert_eq!(note.verify(&keys[1..]).unwrap().len(), 1);
    let strangers = [known("other.example", SignatureKind::Ed25519, 9)];
    assert_eq!(note.verify(&strangers), Err(NoteFault::NoKnownKey));
    note.text.push('\n');
    assert!(matches!(note.verify(&keys), Err(NoteFault::Signature(_))));
}

#[test]
fn one_key_s_two_kinds_are_never_taken_for_each_other() {
    let mut note = Note::new("text\n").unwrap();
    note.cosign(&name("a"), 5, &signer(1)).unwrap();
    let plain = [known("a", SignatureKind::Ed25519, 1)];
    assert_eq!(note.verify(&plain), Err(NoteFault::NoKnownKey));
    // Even under the plain kind's id.
    note.signatures[0].id = plain[0].id();
    assert!(matches!(note.verify(&plain), Err(NoteFault::Signature(_))));
}

#[test]
fn two_signatures_of_a_known_key_are_refused() {
    let (mut note, keys) = signed();
    note.signatures.push(note.signatures[0].clone());
    assert!(matches!(note.verify(&keys), Err(NoteFault::Twice(_))));
    let mut same = keys.to_vec();
    same.push(keys[1].clone());
    note.signatures.pop();
    assert_eq!(note.verify(&same).unwrap().len(), 2);
    // Signing again replaces.
    note.sign(keys[0].name(), &signer(1)).unwrap();
    assert_eq!(note.signatures().len(), 2);
}

#[test]
fn a_cosignature_s_time_is_signed_and_bounded() {
    let (mut note, keys) = signed();
    note.signatures[1].bytes[7] ^= 1;
    assert!(matches!(note.verify(&keys), Err(NoteFault::Signature(_))));
    let message = cosigned(1 << 63, &note.text);
    let late = signer(2).sign_raw(&message).unwrap();
    note.signatures[1].bytes = [&(1u64 << 63).to_be_bytes()[..], &late].concat();
    assert!(matches!(note.verify(&keys), Err(NoteFault::Signature(_))));
}

#[test]
fn malformed_notes_are_refused_with_the_reason() {
    let line = "— a AAAAAAE=\n";
    let parse = |text: &str| Note::parse(text.as_bytes()).map(|note| note.to_string());
    assert_eq!(parse(&format!("t\n\n{line}")), Ok(format!("t\n\n{line}")));
    for (text, fault) in [
        (String::new(), NoteFault::Unsigned),
        ("t\n".into(), NoteFault::Unsigned),
        ("t\n\n".into(), NoteFault::Unsigned),
        (format!("t\n{line}"), NoteFault::Unsigned),
        (format!("t\n\n{}", line.trim_end()), NoteFault::Unsigned),
        (format!("t\r\n\n{line}"), NoteFault::Control),
        (format!("t\t\n\n{line}"), NoteFault::Control),
        (format!("t\n\n{line}\n"), NoteFault::Unsigned),
        (format!("t\n\n{line}x\n"), NoteFault::Line),
        ("t\n\n- a AAAAAAE=\n".into(), NoteFault::Line),
        ("t\n\n—  AAAAAAE=\n".into(), NoteFault::Line),
        ("t\n\n— a+b AAAAAAE=\n".into(), NoteFault::Line),
        ("t\n\n— a\u{a0}b AAAAAAE=\n".into(), NoteFault::Line),
        ("t\n\n— a AAAAAAE\n".into(), NoteFault::Line),
        ("t\n\n— a AAAAAAF=\n".into(), NoteFault::Line),
        ("t\n\n— a AAAAAA==\n".into(), NoteFault::Line),
        ("t\n\n— a AAAAAAE= \n".into(), NoteFault::Line),
        (
            format!("t\n\n{}", line.repeat(101)),
            NoteFault::TooManySignatures,
        ),
        ("t".repeat(1_000_001), NoteFault::TooLong),
    ] {
        assert_eq!(parse(&text), Err(fault), "{text:?}");
    }
    assert_eq!(Note::parse(b"\xff\n\n"), Err(NoteFault::Utf8));
    assert!(Note::new("no newline").is_err());
}

#[test]
fn verifier_keys_read_in_one_spelling() {
    // The Go checksum database's, known to everybody.
    let text = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";
    let key: VerifierKey = text.parse().unwrap();
    assert_eq!(
        (key.kind(), key.id()),
        (SignatureKind::Ed25519, 0x033d_e0ae)
    );
    assert_eq!(key.to_string(), text);
    for (from, to) in [
        ("033d", "033D"),
        ("033d", "133d"),
        ("sum.", "sun."),
        ("+Ac4", "+Bc4"),
        ("OuAn8", "OuAn9"),
    ] {
        assert!(
            text.replacen(from, to, 1).parse::<VerifierKey>().is_err(),
            "{to}"
        );
    }
    let cosigner = known("wit.example", SignatureKind::Cosignature, 2);
    assert_eq!(cosigner.to_string().parse(), Ok(cosigner));
    let weak = [0; 32];
    let refused = VerifierKey::new(name("a"), SignatureKind::Ed25519, weak);
    assert_eq!(refused, Err(NotAVerifierKey::Unsound));
}
