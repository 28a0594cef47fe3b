//! From a typed object to a value, without a text between.

use std::fmt::Display;

use serde::ser::{self, Serialize};

use super::value::{Number, Object, Value};
use super::{ShapeFault, pointer};

/// The value of a typed object, as serde sees it: structs and maps are objects, unit variants are strings, other
/// variants are objects with one member. An absent member must be skipped by its owner; `None` becomes `null`.
///
/// # Errors
/// When a whole number is beyond ±2^53, a float is not finite, a key is not a string or occurs twice, or there are
/// byte strings.
pub fn to_value<T: Serialize>(object: &T) -> Result<Value, ShapeFault> {
    object.serialize(Writer { depth: DEEPEST })
}

impl ShapeFault {
    pub(super) fn here(reason: impl Into<String>) -> Self {
        Self {
            pointer: String::new(),
            reason: reason.into(),
        }
    }

    fn under(mut self, token: &str) -> Self {
        pointer::prepend(&mut self.pointer, token);
        self
    }
}

impl ser::Error for ShapeFault {
    fn custom<T: Display>(reason: T) -> Self {
        Self::here(reason.to_string())
    }
}

#[derive(Clone, Copy)]
struct Writer {
    /// How many more containers may open.
    depth: usize,
}

impl Writer {
    fn inside(self) -> Result<Self, ShapeFault> {
        let depth = self
            .depth
            .checked_sub(1)
            .ok_or_else(|| ShapeFault::here("nested deeper than allowed"))?;
        Ok(Self { depth })
    }

    fn items(self, length: usize) -> Result<Items, ShapeFault> {
        Ok(Items {
            inside: self.inside()?,
            items: Vec::with_capacity(length.min(PREPARED)),
            variant: None,
        })
    }

    fn members(self, length: usize) -> Result<Members, ShapeFault> {
        let members = Vec::with_capacity(length.min(PREPARED));
        Ok(Members {
            inside: self.inside()?,
            members,
            key: None,
            variant: None,
        })
    }
}

/// An integer method: within ±2^53 or a fault.
macro_rules! whole {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, whole: $type) -> Result<Value, ShapeFault> {
            let number = i64::try_from(whole).ok().and_then(Number::from_i64);
            number.map(Value::Number).ok_or_else(|| ShapeFault::here("whole number is beyond 2^53"))
        }
    )*};
}

impl ser::Serializer for Writer {
    type Ok = Value;
    type Error = ShapeFault;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    whole!(
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128
    );

    fn serialize_bool(self, truth: bool) -> Result<Value, ShapeFault> {
        Ok(Value::Bool(truth))
    }

    fn serialize_f32(self, float: f32) -> Result<Value, ShapeFault> {
        self.serialize_f64(f64::from(float))
    }

    fn serialize_f64(self, float: f64) -> Result<Value, ShapeFault> {
        Number::from_f64(float)
            .map(Value::Number)
            .ok_or_else(|| ShapeFault::here("number is not finite"))
    }

    fn serialize_char(self, letter: char) -> Result<Value, ShapeFault> {
        Ok(Value::String(letter.to_string()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, ShapeFault> {
        Ok(Value::String(text.to_owned()))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Value, ShapeFault> {
        Err(ShapeFault::here("bytes must be written as text"))
    }

    fn serialize_none(self) -> Result<Value, ShapeFault> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, ShapeFault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, ShapeFault> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, ShapeFault> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, ShapeFault> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, ShapeFault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, ShapeFault> {
        value
            .serialize(self.inside()?)
            .map(|value| tagged(variant, value))
            .map_err(|fault| fault.under(variant))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items, ShapeFault> {
        self.items(length.unwrap_or(0))
    }

    fn serialize_tuple(self, length: usize) -> Result<Items, ShapeFault> {
        self.items(length)
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Items, ShapeFault> {
        self.items(length)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items, ShapeFault> {
        Ok(Items {
            variant: Some(variant),
            ..self.inside()?.items(length)?
        })
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Members, ShapeFault> {
        self.members(length.unwrap_or(0))
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Members, ShapeFault> {
        self.members(length)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Members, ShapeFault> {
        Ok(Members {
            variant: Some(variant),
            ..self.inside()?.members(length)?
        })
    }
}

/// An array on its way.
struct Items {
    inside: Writer,
    items: Vec<Value>,
    variant: Option<&'static str>,
}

impl ser::SerializeSeq for Items {
    type Ok = Value;
    type Error = ShapeFault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ShapeFault> {
        let item = item
            .serialize(self.inside)
            .map_err(|fault| fault.under(&self.items.len().to_string()));
        let item = item.map_err(|fault| in_variant(fault, self.variant))?;
        self.items.push(item);
        Ok(())
    }

    fn end(self) -> Result<Value, ShapeFault> {
        let array = Value::Array(self.items);
        Ok(if let Some(variant) = self.variant {
            tagged(variant, array)
        } else {
            array
        })
    }
}

/// The traits that differ from `SerializeSeq` only in a method's name.
macro_rules! like_seq {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Items {
            type Ok = Value;
            type Error = ShapeFault;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ShapeFault> {
                ser::SerializeSeq::serialize_element(self, item)
            }

            fn end(self) -> Result<Value, ShapeFault> {
                ser::SerializeSeq::end(self)
            }
        }
    )*};
}

like_seq!(SerializeTuple serialize_element, SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

/// An object on its way.
struct Members {
    inside: Writer,
    members: Vec<(String, Value)>,
    key: Option<String>,
    variant: Option<&'static str>,
}

impl Members {
    fn member<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), ShapeFault> {
        match value.serialize(self.inside) {
            Ok(value) => {
                self.members.push((key, value));
                Ok(())
            }
            Err(fault) => Err(in_variant(fault.under(&key), self.variant)),
        }
    }

    fn finish(self) -> Result<Value, ShapeFault> {
        let object = Object::from_members(self.members).map_err(|key| {
            in_variant(
                ShapeFault::here("member occurs twice").under(&key),
                self.variant,
            )
        })?;
        let object = Value::Object(object);
        Ok(if let Some(variant) = self.variant {
            tagged(variant, object)
        } else {
            object
        })
    }
}

impl ser::SerializeMap for Members {
    type Ok = Value;
    type Error = ShapeFault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ShapeFault> {
        match key.serialize(self.inside)? {
            Value::String(key) => {
                self.key = Some(key);
                Ok(())
            }
            _ => Err(ShapeFault::here("member name must be a string")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ShapeFault> {
        let key = self
            .key
            .take()
            .ok_or_else(|| ShapeFault::here("member has no name"))?;
        self.member(key, value)
    }

    fn end(self) -> Result<Value, ShapeFault> {
        self.finish()
    }
}

/// The two traits for structs.
macro_rules! like_struct {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Members {
            type Ok = Value;
            type Error = ShapeFault;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), ShapeFault> {
                self.member(key.to_owned(), value)
            }

            fn end(self) -> Result<Value, ShapeFault> {
                self.finish()
            }
        }
    )*};
}

like_struct!(SerializeStruct, SerializeStructVariant);

fn tagged(variant: &str, value: Value) -> Value {
    let mut object = Object::new();
    object.insert(variant.to_owned(), value);
    Value::Object(object)
}

fn in_variant(fault: ShapeFault, variant: Option<&str>) -> ShapeFault {
    if let Some(variant) = variant {
        fault.under(variant)
    } else {
        fault
    }
}

/// The deepest nesting written: what any thread's stack holds.
const DEEPEST: usize = 128;

/// The most room made ahead on a length someone claims.
const PREPARED: usize = 64;
