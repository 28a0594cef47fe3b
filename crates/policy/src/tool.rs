//! One catalogue entry, compiled.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lychgate_core::act::ActType;
use lychgate_core::json::Value;
use lychgate_core::{ConsequenceClass, Digest};

use crate::definition::definition_digest;
use crate::envelope::EnvelopeLimits;
use crate::model::{ErrorMeaning, Idempotency, Role, Rule, ServerModel, ToolModel};
use crate::read_back::ReadBack;
use crate::schema::{self, SchemaFault};

/// What the catalogue says of one function or method.
pub struct ToolEntry {
    /// The function's exact name on its server, or a method's name.
    pub function: String,
    /// The pinned definition's digest; for a method, of its name.
    pub definition: Digest,
    /// The pinned definition, whole; none for a method.
    pub definition_value: Option<Value>,
    /// What kind of consequence it has.
    pub class: ConsequenceClass,
    /// The act's type.
    pub act_type: ActType,
    /// The purposes it serves; empty means every one.
    pub purposes: Vec<String>,
    /// It asks even inside a recoverable root.
    pub irreversible: bool,
    /// It reaches into what lies beneath a path it names: searching, walking, moving or replacing a folder.
    pub recursive: bool,
    /// What its own error results mean.
    pub errors: ErrorMeaning,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Whether the gate sends an idempotency key.
    pub idempotency: Idempotency,
    /// How an act whose answer was lost is looked up.
    pub read_back: Option<ReadBack>,
    /// Whether argument keys may differ in case alone.
    pub case_variants: bool,
    /// False: withheld from the client.
    pub enabled: bool,
    /// False: nobody wrote an entry, so it is OTHER (PROFILE §8).
    pub catalogued: bool,
    /// Other exact names for it.
    pub aliases: Vec<String>,
    pub(crate) roles: BTreeMap<String, Role>,
    pub(crate) unit: Option<String>,
    /// How far one decision on it goes.
    pub envelope: Option<EnvelopeLimits>,
    pub(crate) destination: Option<Rule>,
    pub(crate) recipient: Option<Rule>,
    validator: Option<jsonschema::Validator>,
}

impl ToolEntry {
    /// Compiles an entry; the fault is the schema's, in words.
    pub(crate) fn compile(
        function: &str,
        model: &ToolModel,
        server: &ServerModel,
        catalogued: bool,
    ) -> Result<Self, String> {
        let definition_value = server.definitions.get(function).cloned();
        let validator = definition_value
            .as_ref()
            .and_then(|definition| definition.get("inputSchema"))
            .map(schema::compile)
            .transpose()?;
        let definition = definition_value
            .as_ref()
            .map_or_else(|| method_digest(function), definition_digest);
        Ok(Self {
            function: function.to_owned(),
            definition,
            definition_value,
            class: model.class,
            act_type: model.act_type,
            purposes: model.purposes.clone(),
            irreversible: model.irreversible,
            recursive: model.recursive,
            errors: model.errors.unwrap_or(server.errors),
            timeout: Duration::from_millis(model.timeout.unwrap_or(server.timeout)),
            idempotency: model.idempotency,
            read_back: model.read_back.clone(),
            case_variants: model.case_variants,
            enabled: model.enabled,
            catalogued,
            aliases: model.aliases.clone(),
            roles: model.roles.clone(),
            unit: model.unit.clone(),
            envelope: model.envelope.clone(),
            destination: model.destination.clone(),
            recipient: model.recipient.clone(),
            validator,
        })
    }

    /// Checks arguments against the pinned input schema; a method's arguments need only be an object.
    ///
    /// # Errors
    /// The first place that breaks it (EF-012).
    pub fn validate(&self, args: &Value) -> Result<(), SchemaFault> {
        if args.as_object().is_none() {
            return Err(SchemaFault {
                pointer: String::new(),
            });
        }
        self.validator
            .as_ref()
            .map_or(Ok(()), |validator| schema::check(validator, args))
    }

    /// Which roles these arguments fill.
    #[must_use]
    pub fn roles(&self, args: &Value) -> Roles {
        let filled =
            |pointer: &str| schema::tokens(pointer).is_some_and(|tokens| present(args, &tokens));
        let pointers = self.roles.iter().filter(|(pointer, _)| filled(pointer));
        Roles {
            filled: pointers
                .map(|(pointer, role)| (pointer.clone(), *role))
                .collect(),
        }
    }

    /// Whether the function serves a purpose (EF-013 otherwise).
    #[must_use]
    pub fn serves(&self, purpose: &str) -> bool {
        self.purposes.is_empty() || self.purposes.iter().any(|one| one == purpose)
    }
}

impl fmt::Debug for ToolEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ToolEntry")
            .field("function", &self.function)
            .field("class", &self.class)
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}

/// The roles that a call's arguments fill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Pointer of the rule, and its role.
    pub filled: Vec<(String, Role)>,
}

impl Roles {
    /// Whether some argument fills the role.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.filled.iter().any(|(_, filled)| *filled == role)
    }

    //= PROFILE §8: an argument that is itself a program escalates at best
    /// Whether an argument is itself a program; a command is one.
    #[must_use]
    pub fn has_program(&self) -> bool {
        self.has(Role::Program) || self.has(Role::Command)
    }
}

/// What stands for a method's definition: methods have none of their own.
pub(crate) fn method_digest(method: &str) -> Digest {
    Digest::sha256(format!("lychgate method {method}").as_bytes())
}

fn present(here: &Value, tokens: &[String]) -> bool {
    match (here, tokens.split_first()) {
        (Value::Null, _) => false,
        (Value::Array(items), _) => items.iter().any(|item| present(item, tokens)),
        (_, None) => true,
        (Value::Object(members), Some((token, rest))) => members
            .get(token)
            .is_some_and(|member| present(member, rest)),
        _ => false,
    }
}
