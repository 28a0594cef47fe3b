//! A server's own description of a tool, and the digest it is pinned by (PROFILE §8).

use lychgate_core::Digest;
use lychgate_core::digest::Algorithm;
use lychgate_core::json::{Object, Value};
use lychgate_core::name::is_name;

/// SHA-256 over the canonical form of the whole definition: description, schemas, annotations, everything.
#[must_use]
pub fn definition_digest(definition: &Value) -> Digest {
    Digest::of_value(Algorithm::Sha256, definition)
}

/// A server's definition of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The function's name.
    pub name: String,
    /// The whole definition, as the server gave it.
    pub value: Value,
    /// [`definition_digest`] of it.
    pub digest: Digest,
    /// `inputSchema`; an object schema without rules when the server gave none.
    pub input_schema: Value,
}

/// Why a definition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionFault {
    /// Not an object with a text `name`.
    #[error("tool definition has no `name`")]
    NoName,
    /// The name has characters that are refused.
    #[error("tool name `{}` is refused: only ASCII letters, digits and `_ - . /`", lychgate_core::display::escape_within(.0, 80))]
    Name(String),
    /// `inputSchema` is not an object.
    #[error("tool `{0}` has an `inputSchema` that is not an object")]
    Schema(String),
}

impl Definition {
    /// Reads one element of a `tools/list` result.
    ///
    /// # Errors
    /// When it has no usable name or schema; such a tool is withheld.
    pub fn parse(value: Value) -> Result<Self, DefinitionFault> {
        let name = value
            .get("name")
            .and_then(Value::as_str)
            .ok_or(DefinitionFault::NoName)?
            .to_owned();
        if !is_name(&name) {
            return Err(DefinitionFault::Name(name));
        }
        let input_schema = match value.get("inputSchema") {
            None => empty_schema(),
            Some(schema @ Value::Object(_)) => schema.clone(),
            Some(_) => return Err(DefinitionFault::Schema(name)),
        };
        let digest = definition_digest(&value);
        Ok(Self {
            name,
            value,
            digest,
            input_schema,
        })
    }

    /// A hint of the server, which only ever makes a proposal stricter.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.value.get("annotations")?.get(name)?.as_bool()
    }
}

fn empty_schema() -> Value {
    let mut schema = Object::new();
    schema.insert("type".to_owned(), Value::from("object"));
    Value::Object(schema)
}
