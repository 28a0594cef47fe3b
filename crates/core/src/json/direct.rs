//! From a typed object straight to its canonical bytes, for what an object of ours is nearly always made of. Anything
//! unusual ends in [`Odd`], and the long way over a [`Value`](super::Value) gives the bytes or the fault.
//!
//! Both ways give the same bytes: every object that is written in a test or a debug build is written both ways.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};
use std::io::Write as _;

use serde::ser::{self, Impossible, Serialize};

use super::value::{Number, utf16_cmp};
use crate::jcs;

/// The canonical bytes, unless there is something unusual about the object.
pub(super) fn write<T: Serialize>(object: &T) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(1024);
    let writer = Writer {
        out: &mut out,
        depth: DEEPEST,
    };
    object.serialize(writer).ok().map(|()| out)
}

/// Not for this way.
#[derive(Debug)]
struct Odd;

impl Display for Odd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not written directly")
    }
}

impl std::error::Error for Odd {}

impl ser::Error for Odd {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// How many more containers may open.
    depth: usize,
}

impl<'a> Writer<'a> {
    fn plain(self, text: &[u8]) -> Result<(), Odd> {
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn whole(self, number: i64) -> Result<(), Odd> {
        Number::from_i64(number).ok_or(Odd)?;
        write!(self.out, "{number}").map_err(|_| Odd)
    }

    fn open(self, bracket: u8) -> Result<Inside<'a>, Odd> {
        let depth = self.depth.checked_sub(1).ok_or(Odd)?;
        self.out.push(bracket);
        Ok(Inside {
            out: self.out,
            depth,
            members: Vec::with_capacity(if bracket == b'{' { USUAL } else { 0 }),
            key: None,
            sorted: true,
            items: 0,
        })
    }
}

macro_rules! whole {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, number: $type) -> Result<(), Odd> {
            self.whole(i64::try_from(number).map_err(|_| Odd)?)
        }
    )*};
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Odd;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Impossible<(), Odd>;
    type SerializeTupleVariant = Impossible<(), Odd>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Impossible<(), Odd>;

    whole!(
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64
    );

    fn serialize_bool(self, truth: bool) -> Result<(), Odd> {
        self.plain(if truth { b"true" } else { b"false" })
    }

    fn serialize_f32(self, _: f32) -> Result<(), Odd> {
        Err(Odd)
    }

    fn serialize_f64(self, float: f64) -> Result<(), Odd> {
        jcs::write_number(Number::from_f64(float).ok_or(Odd)?, self.out);
        Ok(())
    }

    fn serialize_char(self, _: char) -> Result<(), Odd> {
        Err(Odd)
    }

    fn serialize_str(self, text: &str) -> Result<(), Odd> {
        jcs::write_string(text, self.out);
        Ok(())
    }

    /// Ids and times are written so: without a text between.
    fn collect_str<T: Display + ?Sized>(self, shown: &T) -> Result<(), Odd> {
        self.out.push(b'"');
        write!(Escaping(self.out), "{shown}").map_err(|_| Odd)?;
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Odd> {
        Err(Odd)
    }

    fn serialize_none(self) -> Result<(), Odd> {
        self.plain(b"null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Odd> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Odd> {
        self.plain(b"null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Odd> {
        self.plain(b"null")
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Odd> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Odd> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Odd> {
        let mut inside = self.open(b'{')?;
        inside.member(Cow::Borrowed(name), value)?;
        inside.close_object()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, Odd> {
        self.open(b'[')
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, Odd> {
        self.open(b'[')
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Impossible<(), Odd>, Odd> {
        Err(Odd)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Odd>, Odd> {
        Err(Odd)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, Odd> {
        self.open(b'{')
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Odd> {
        self.open(b'{')
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Impossible<(), Odd>, Odd> {
        Err(Odd)
    }
}

/// A container on its way.
struct Inside<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
    /// Each member's key, and where it begins.
    members: Vec<(Cow<'static, str>, usize)>,
    key: Option<String>,
    sorted: bool,
    items: usize,
}

impl Inside<'_> {
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Odd> {
        value.serialize(Writer {
            out: &mut *self.out,
            depth: self.depth,
        })
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Odd> {
        if self.items > 0 {
            self.out.push(b',');
        }
        self.items += 1;
        self.value(value)
    }

    fn member<T: Serialize + ?Sized>(
        &mut self,
        key: Cow<'static, str>,
        value: &T,
    ) -> Result<(), Odd> {
        if let Some((last, _)) = self.members.last() {
            self.sorted &= utf16_cmp(last, &key).is_lt();
            self.out.push(b',');
        }
        let begin = self.out.len();
        jcs::write_string(&key, self.out);
        self.out.push(b':');
        self.members.push((key, begin));
        self.value(value)
    }

    fn close_object(mut self) -> Result<(), Odd> {
        if !self.sorted {
            self.sort()?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// RFC 8785 §3.2.3: the members change places; each keeps its bytes.
    fn sort(&mut self) -> Result<(), Odd> {
        let first = self.members.first().map(|(_, begin)| *begin).ok_or(Odd)?;
        let written = self.out.split_off(first);
        let ends = self.members.iter().skip(1).map(|(_, begin)| begin - 1);
        let ends = ends.chain([first + written.len()]);
        let mut spans = self
            .members
            .iter()
            .zip(ends)
            .map(|((key, begin), end)| (key.as_ref(), *begin, end));
        let mut spans = spans.by_ref().collect::<Vec<_>>();
        spans.sort_unstable_by(|(one, ..), (other, ..)| utf16_cmp(one, other));
        if spans
            .array_windows()
            .any(|[(one, ..), (other, ..)]| one == other)
        {
            return Err(Odd);
        }
        for (at, (_, begin, end)) in spans.into_iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            self.out
                .extend_from_slice(written.get(begin - first..end - first).ok_or(Odd)?);
        }
        Ok(())
    }
}

macro_rules! items {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Inside<'_> {
            type Ok = ();
            type Error = Odd;

            fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Odd> {
                self.item(item)
            }

            fn end(self) -> Result<(), Odd> {
                self.out.push(b']');
                Ok(())
            }
        }
    )*};
}

items!(SerializeSeq, SerializeTuple);

impl ser::SerializeStruct for Inside<'_> {
    type Ok = ();
    type Error = Odd;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Odd> {
        self.member(Cow::Borrowed(key), value)
    }

    fn end(self) -> Result<(), Odd> {
        self.close_object()
    }
}

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Odd;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Odd> {
        // The long way's own rule for what a key may be.
        match super::to_value(&key) {
            Ok(super::Value::String(key)) => {
                self.key = Some(key);
                Ok(())
            }
            _ => Err(Odd),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Odd> {
        let key = self.key.take().ok_or(Odd)?;
        self.member(Cow::Owned(key), value)
    }

    fn end(self) -> Result<(), Odd> {
        self.close_object()
    }
}

/// Text inside a string.
struct Escaping<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        jcs::write_text(text, self.0);
        Ok(())
    }
}

/// Members for which room is made ahead.
const USUAL: usize = 16;

/// As deep as the long way goes.
const DEEPEST: usize = 128;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Serialize)]
    struct Mixed {
        zeta: Vec<Option<f64>>,
        alpha: BTreeMap<String, Inner>,
        #[serde(flatten)]
        flat: Inner,
        unit: (),
        pair: (i8, u64),
        tagged: Tagged,
    }

    #[derive(serde::Serialize)]
    struct Inner {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        maybe: Option<bool>,
    }

    #[derive(serde::Serialize)]
    enum Tagged {
        With(u8),
    }

    fn long_way<T: Serialize>(object: &T) -> Vec<u8> {
        jcs::to_bytes(&super::super::to_value(object).unwrap())
    }

    #[test]
    fn both_ways_give_the_same_bytes() {
        let inner = |text: &str, maybe| Inner {
            text: text.to_owned(),
            maybe,
        };
        let keys = ["\u{fb33}", "\u{1f600}", "a", "€", "\r", "1", "\"\\", "~"];
        let alpha = keys.map(|key| (key.to_owned(), inner(&format!("\u{1}{key}\t"), Some(true))));
        let mixed = Mixed {
            zeta: vec![Some(1e21), None, Some(-0.0), Some(0.1), Some(5.0)],
            alpha: alpha.into(),
            flat: inner(
                "plain, and longer than one block of sixteen \"bytes\"",
                None,
            ),
            unit: (),
            pair: (-7, (1 << 53) - 1),
            tagged: Tagged::With(3),
        };
        assert_eq!(write(&mixed), Some(long_way(&mixed)));
    }

    #[test]
    fn what_the_long_way_refuses_is_not_written() {
        assert_eq!(write(&u64::MAX), None);
        assert_eq!(write(&f64::NAN), None);
        assert_eq!(write(&BTreeMap::from([(1, 2)])), None);
        let twice = Twice {
            text: 1,
            flat: BTreeMap::from([("text", 2)]),
        };
        assert_eq!(write(&twice), None);
    }

    #[derive(serde::Serialize)]
    struct Twice {
        text: u8,
        #[serde(flatten)]
        flat: BTreeMap<&'static str, u8>,
    }
}
