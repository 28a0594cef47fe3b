//! RFC 8785's own vectors, byte for byte, and its number sequence by checksum.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::path::Path;

use lychgate_core::jcs;
use lychgate_core::json::{Limits, Number, Value, parse};
use sha2::Digest as _;

fn data(path: &str) -> Vec<u8> {
    let full = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(path);
    std::fs::read(&full).unwrap_or_else(|fault| panic!("`{path}`: {fault}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn written(double: f64) -> String {
    let number = Number::from_f64(double).expect("finite");
    String::from_utf8(jcs::to_bytes(&Value::Number(number))).unwrap()
}

#[test]
fn every_file_of_the_rfc_comes_out_byte_for_byte() {
    for name in [
        "arrays",
        "french",
        "structures",
        "unicode",
        "values",
        "weird",
    ] {
        let input = data(&format!("rfc8785/input/{name}.json"));
        let value = parse(&input, &Limits::CANON).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let bytes = jcs::to_bytes(&value);
        assert_eq!(
            bytes,
            data(&format!("rfc8785/output/{name}.json")),
            "{name}"
        );
        let listed = String::from_utf8(data(&format!("rfc8785/outhex/{name}.txt"))).unwrap();
        let listed = listed.split_ascii_whitespace().collect::<String>();
        assert_eq!(hex(&bytes), listed.to_ascii_lowercase(), "{name}");
    }
}

/// RFC 8785 Appendix B: IEEE bits and what ECMAScript writes for them.
const SAMPLES: [(u64, &str); 24] = [
    (0x0000_0000_0000_0000, "0"),
    (0x8000_0000_0000_0000, "0"),
    (0x0000_0000_0000_0001, "5e-324"),
    (0x8000_0000_0000_0001, "-5e-324"),
    (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
    (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
    (0x4340_0000_0000_0000, "9007199254740992"),
    (0xc340_0000_0000_0000, "-9007199254740992"),
    (0x4430_0000_0000_0000, "295147905179352830000"),
    (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
    (0x44b5_2d02_c7e1_4af6, "1e+23"),
    (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
    (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
    (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
    (0x444b_1ae4_d6e2_ef50, "1e+21"),
    (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
    (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
    (0x41b3_de43_5555_5553, "333333333.3333332"),
    (0x41b3_de43_5555_5554, "333333333.33333325"),
    (0x41b3_de43_5555_5555, "333333333.3333333"),
    (0x41b3_de43_5555_5556, "333333333.3333334"),
    (0x41b3_de43_5555_5557, "333333333.33333343"),
    (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
];

#[test]
fn appendix_b_samples_are_written_and_read_back() {
    for (bits, text) in SAMPLES {
        let double = f64::from_bits(bits);
        assert_eq!(written(double), text);
        let read = parse(text.as_bytes(), &Limits::ARGUMENTS).unwrap();
        assert_eq!(
            read,
            Value::Number(Number::from_f64(double).unwrap()),
            "{text}"
        );
    }
    for bits in [
        0x7fff_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
    ] {
        assert_eq!(Number::from_f64(f64::from_bits(bits)), None);
    }
}

/// The published sequence: listed doubles, then 2000 consecutive ones from the smallest normal, then doubles cut from
/// a chain of SHA-256 digests that starts with 32 zero bytes; zeros, NaN and infinities in the chain are passed over.
fn sequence() -> impl Iterator<Item = f64> {
    let text = String::from_utf8(data("es6_doubles.txt")).unwrap();
    let list = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect::<Vec<_>>()
        .join(" ");
    let (mirrored, plain) = list.split_once('=').unwrap();
    let bits = |part: &str| -> Vec<u64> {
        part.split_ascii_whitespace()
            .map(|word| u64::from_str_radix(word, 16).unwrap())
            .collect()
    };
    let mirrored = bits(mirrored);
    let sign = 1_u64 << 63;
    let opening = [0, sign, 1, sign | 1]
        .into_iter()
        .chain(mirrored.clone().into_iter().map(move |bits| bits | sign))
        .chain(mirrored)
        .chain(bits(plain))
        .chain((0..2000).map(|step| 0x0010_0000_0000_0000 + step))
        .map(f64::from_bits);
    let blocks = std::iter::successors(Some([0_u8; 32]), |block| {
        Some(sha2::Sha256::digest(block).into())
    });
    let chained = blocks.skip(1).flat_map(|block| {
        let (words, _) = block.as_chunks::<8>();
        words
            .iter()
            .map(|word| f64::from_bits(u64::from_le_bytes(*word)))
            .collect::<Vec<_>>()
    });
    opening.chain(chained.filter(|double| *double != 0.0 && double.is_finite()))
}

/// Published SHA-256 checksums of the first lines of the sequence.
const CHECKSUMS: [(usize, &str); 4] = [
    (
        1_000,
        "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687",
    ),
    (
        10_000,
        "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892",
    ),
    (
        100_000,
        "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7",
    ),
    (
        1_000_000,
        "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16",
    ),
];

#[test]
#[allow(clippy::disallowed_methods, reason = "a test's own switch")]
fn number_sequence_has_the_published_checksums_and_reads_back() {
    let most = if std::env::var_os("LYCHGATE_LONG").is_some() {
        1_000_000
    } else {
        10_000
    };
    let mut hash = sha2::Sha256::new();
    for (index, double) in sequence().take(most).enumerate() {
        let text = written(double);
        hash.update(format!("{:x},{text}\n", double.to_bits()));
        let read = parse(text.as_bytes(), &Limits::ARGUMENTS)
            .unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert_eq!(
            read,
            Value::Number(Number::from_f64(double).unwrap()),
            "{text}"
        );
        if let Some((lines, sum)) = CHECKSUMS.iter().find(|(lines, _)| *lines == index + 1) {
            assert_eq!(hex(&hash.clone().finalize()), *sum, "after {lines} lines");
        }
    }
}
