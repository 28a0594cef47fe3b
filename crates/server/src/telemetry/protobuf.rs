//! Writing protobuf: as much of it as OTLP takes. Fields that have their default value are left out, as proto3 does.

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A message's bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// `string`.
    pub(super) fn text(mut self, field: u32, text: &str) -> Self {
        if !text.is_empty() {
            self.delimited(field, text.as_bytes());
        }
        self
    }

    /// `bytes`.
    pub(super) fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.delimited(field, bytes);
        self
    }

    /// A message inside.
    pub(super) fn message(mut self, field: u32, inner: &Self) -> Self {
        self.delimited(field, &inner.0);
        self
    }

    /// Messages inside, repeated.
    pub(super) fn messages(mut self, field: u32, inner: impl IntoIterator<Item = Self>) -> Self {
        for one in inner {
            self.delimited(field, &one.0);
        }
        self
    }

    /// `enum`, `bool`, `uint64`.
    pub(super) fn varint(mut self, field: u32, value: u64) -> Self {
        if value != 0 {
            self.tag(field, VARINT);
            self.number(value);
        }
        self
    }

    /// `fixed64`, also inside a `oneof`, where zero counts.
    pub(super) fn fixed(mut self, field: u32, value: u64) -> Self {
        self.tag(field, EIGHT_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// `double`, also inside a `oneof`.
    pub(super) fn double(self, field: u32, value: f64) -> Self {
        self.fixed(field, value.to_bits())
    }

    /// `repeated fixed64` or `repeated double`, packed; of a double its bits.
    pub(super) fn packed(mut self, field: u32, values: impl IntoIterator<Item = u64>) -> Self {
        let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
        self.delimited(field, &bytes);
        self
    }

    fn delimited(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, LENGTH);
        self.number(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(bytes);
    }

    fn tag(&mut self, field: u32, kind: u32) {
        self.number(u64::from(field << 3 | kind));
    }

    fn number(&mut self, mut value: u64) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            if value == 0 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
        }
    }
}

const VARINT: u32 = 0;
const EIGHT_BYTES: u32 = 1;
const LENGTH: u32 = 2;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// The examples of the protobuf encoding guide, and one of each kind.
    #[test]
    fn bytes_are_as_the_encoding_says() {
        let bytes = |message: Message| message.into_bytes();
        assert_eq!(bytes(Message::default().varint(1, 150)), [0x08, 0x96, 0x01]);
        let text = bytes(Message::default().text(2, "testing"));
        assert_eq!(text, [&[0x12, 0x07][..], b"testing"].concat());
        let inner = Message::default().varint(1, 150);
        assert_eq!(
            bytes(Message::default().message(3, &inner)),
            [0x1a, 0x03, 0x08, 0x96, 0x01]
        );
        assert_eq!(
            bytes(Message::default().fixed(7, 1)),
            [0x39, 1, 0, 0, 0, 0, 0, 0, 0]
        );
        let packed = bytes(Message::default().packed(6, [1, 2]));
        assert_eq!(packed.get(..3), Some(&[0x32, 16, 1][..]));
        assert_eq!(packed.len(), 18);
        assert!(bytes(Message::default().varint(16, 0).text(1, "")).is_empty());
    }
}
