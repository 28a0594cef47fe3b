//! A value as a part of typed objects: how it reads and writes itself through serde.

use std::fmt::{self, Formatter};

use serde::de::{self, Deserialize, Visitor};
use serde::ser::{self, Serialize, SerializeMap as _, SerializeSeq as _};

use super::pointer;
use super::value::{Number, Object, Value};

impl Serialize for Number {
    fn serialize<S: ser::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Some(whole) = self.as_i64() {
            to.serialize_i64(whole)
        } else {
            to.serialize_f64(self.get())
        }
    }
}

impl Serialize for Object {
    fn serialize<S: ser::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut members = to.serialize_map(Some(self.len()))?;
        for (key, value) in self.iter() {
            members.serialize_entry(key, value)?;
        }
        members.end()
    }
}

impl Serialize for Value {
    fn serialize<S: ser::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(truth) => to.serialize_bool(*truth),
            Self::Number(number) => number.serialize(to),
            Self::String(text) => to.serialize_str(text),
            Self::Array(items) => {
                let mut array = to.serialize_seq(Some(items.len()))?;
                items
                    .iter()
                    .try_for_each(|item| array.serialize_element(item))?;
                array.end()
            }
            Self::Object(object) => object.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: de::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Tree)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: de::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Object(object) => Ok(object),
            other => Err(de::Error::custom(format_args!(
                "must be an object, not {}",
                other.kind()
            ))),
        }
    }
}

/// Builds a value from whatever serde brings.
struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Value;

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("any json value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: de::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        Value::deserialize(from)
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Value, E> {
        Number::from_u64(whole)
            .map(Value::Number)
            .ok_or_else(|| E::custom("whole number is beyond 2^53"))
    }

    fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Value, E> {
        Number::from_i64(whole)
            .map(Value::Number)
            .ok_or_else(|| E::custom("whole number is beyond 2^53"))
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Value, E> {
        Number::from_f64(float)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry()? {
            members.push(member);
        }
        let object = Object::from_members(members).map_err(|key| {
            de::Error::custom(format_args!(
                "member `{}` occurs twice",
                pointer::quoted(&key)
            ))
        })?;
        Ok(Value::Object(object))
    }
}
