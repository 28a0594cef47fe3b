//! From a value to a typed object, with the place of what does not fit.

use std::fmt::{self, Display, Formatter, Write as _};

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_path_to_error::{Path, Segment};

use super::value::Value;
use super::{ShapeFault, pointer};

/// Reads a typed object out of a value. Whole numbers within ±2^53 fit integer fields that hold them; everything else
/// is taken as it is, without coercion. `null` fits an optional field.
///
/// # Errors
/// The first place that does not fit. The reason never repeats a value found, unless a type's own check does so.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, ShapeFault> {
    serde_path_to_error::deserialize(Reader(value)).map_err(|fault| {
        let pointer = to_pointer(fault.path());
        ShapeFault {
            pointer,
            reason: fault.into_inner().0,
        }
    })
}

/// Reads an optional member that may be absent but is never `null`, so that one object has one text. For
/// `#[serde(default, deserialize_with = "json::present")]`; without `default` the member is required.
///
/// # Errors
/// When the member does not fit its type.
pub fn present<'de, D: de::Deserializer<'de>, T: de::Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn to_pointer(path: &Path) -> String {
    let mut text = String::new();
    let segments = path.iter().collect::<Vec<_>>();
    for segment in segments.into_iter().rev() {
        match segment {
            Segment::Seq { index } => pointer::prepend(&mut text, &index.to_string()),
            Segment::Map { key } => pointer::prepend(&mut text, key),
            Segment::Enum { variant } => pointer::prepend(&mut text, variant),
            Segment::Unknown => {}
        }
    }
    text
}

/// What does not fit, without the value found and without names of types.
#[derive(Debug)]
struct Mismatch(String);

impl Display for Mismatch {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: Display>(reason: T) -> Self {
        Self(reason.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(format!("must be {}, not {}", plain(expected), kind(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(format!(
            "must be {}, not this value of {}",
            plain(expected),
            kind(found)
        ))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self(format!("must be {}, not {length} long", plain(expected)))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(format!("must be one of {}", list(expected)))
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self(format!(
            "member `{}` is not known here",
            pointer::quoted(field)
        ))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("member `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self(format!("member `{field}` occurs twice"))
    }
}

fn list(words: &[&str]) -> String {
    words
        .iter()
        .enumerate()
        .fold(String::new(), |mut list, (index, word)| {
            let comma = if index > 0 { ", " } else { "" };
            // Writing to a string does not fail.
            let _ = write!(list, "{comma}`{word}`");
            list
        })
}

/// What was expected, said without the names of our types.
fn plain(expected: &dyn Expected) -> String {
    let said = expected.to_string();
    match said.split(' ').next().unwrap_or_default() {
        "struct" | "map" => "an object".to_owned(),
        "tuple" => "an array".to_owned(),
        "enum" | "variant" | "unit" | "internally" | "adjacently" => {
            "a known word or variant".to_owned()
        }
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => {
            "a whole number from 0 in range".to_owned()
        }
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number in range".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        _ => said,
    }
}

fn kind(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
        Unexpected::Float(_) => "a number with a fraction or beyond 2^53",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "an array",
        Unexpected::Map => "an object",
        _ => "another kind",
    }
}

/// A value as serde reads it.
#[derive(Clone, Copy)]
struct Reader<'de>(&'de Value);

impl<'de> Reader<'de> {
    fn refuse<T>(self, expected: &str) -> Result<T, Mismatch> {
        Err(Mismatch(format!(
            "must be {expected}, not {}",
            self.0.kind()
        )))
    }
}

impl<'de> IntoDeserializer<'de, Mismatch> for Reader<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for Reader<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(whole), _) => visitor.visit_u64(whole),
                (None, Some(whole)) => visitor.visit_i64(whole),
                (None, None) => visitor.visit_f64(number.get()),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.iter().map(Reader));
                let read = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(read)
            }
            Value::Object(object) => {
                let mut members = MapDeserializer::new(
                    object.iter().map(|(key, value)| (Key(key), Reader(value))),
                );
                let read = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(read)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if matches!(self.0, Value::Null) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(Variant {
                name,
                content: None,
            }),
            Value::Object(object) => match (object.iter().next(), object.len()) {
                (Some((name, content)), 1) => visitor.visit_enum(Variant {
                    name,
                    content: Some(content),
                }),
                _ => Err(Mismatch(
                    "must be an object with exactly one member".to_owned(),
                )),
            },
            _ => self.refuse("a string or an object with one member"),
        }
    }

    /// An array of the members' values is no object, though serde's derived code would take it for one.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        if matches!(self.0, Value::Array(_)) {
            self.refuse("an object")
        } else {
            self.deserialize_any(visitor)
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Mismatch> {
        self.refuse("bytes, which have no form of their own here")
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple tuple_struct
        map identifier
    }
}

/// The name of a member; it may fill a newtype or name a unit variant.
#[derive(Clone, Copy)]
struct Key<'de>(&'de str);

impl<'de> IntoDeserializer<'de, Mismatch> for Key<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for Key<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_enum(Variant {
            name: self.0,
            content: None,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant: its name, and what it carries when written as an object.
struct Variant<'de> {
    name: &'de str,
    content: Option<&'de Value>,
}

impl<'de> Variant<'de> {
    fn content(self) -> Result<Reader<'de>, Mismatch> {
        self.content
            .map(Reader)
            .ok_or_else(|| Mismatch("must be an object with one member here".to_owned()))
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Mismatch> {
        Ok((seed.deserialize(Key(self.name))?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'de> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        if self.content.is_none() {
            Ok(())
        } else {
            Err(Mismatch("must be a string here".to_owned()))
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Mismatch> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        let content = self.content()?;
        if matches!(content.0, Value::Array(_)) {
            de::Deserializer::deserialize_any(content, visitor)
        } else {
            content.refuse("an array")
        }
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let content = self.content()?;
        if matches!(content.0, Value::Object(_)) {
            de::Deserializer::deserialize_any(content, visitor)
        } else {
            content.refuse("an object")
        }
    }
}
