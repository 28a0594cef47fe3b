//! One server of the catalogue, compiled: what is started, which functions it offers, by which names.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lychgate_core::digest::Algorithm;
use lychgate_core::json::{Object, Value};
use lychgate_core::name::is_name;
use lychgate_core::{Code, ConsequenceClass, Digest};

use crate::model::{Model, ServerModel, ToolModel};
use crate::reach::{Scope, Target, Unresolved};
use crate::tool::ToolEntry;

/// A declared part of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name in the configuration.
    pub name: String,
    /// Absolute, as written.
    pub path: PathBuf,
    /// Version control or snapshots stand behind it.
    pub recoverable: bool,
}

impl Root {
    pub(crate) fn path_text(root: &Self) -> Option<&str> {
        root.path.to_str()
    }
}

/// A server as the gate runs it.
pub struct Server {
    /// Its name: the act's `tool_id`.
    pub name: String,
    /// The program, absolute, and its arguments. Never empty.
    pub command: Vec<String>,
    /// Its working folder; none means the gate's choice of an empty one.
    pub cwd: Option<PathBuf>,
    /// Literal environment.
    pub env: BTreeMap<String, String>,
    /// Names copied from the gate's own environment.
    pub pass_env: Vec<String>,
    /// Digest of the entry file, when one was found (PROFILE §8).
    pub entry: Option<Digest>,
    /// What `roots/list` is answered with, and what path rules go by.
    pub roots: Vec<Root>,
    /// How long an answer may take where no entry says otherwise.
    pub timeout: Duration,
    /// Whether `sampling/createMessage` passes to the client.
    pub sampling: bool,
    /// Whether elicitation passes to the client.
    pub elicitation: bool,
    endpoint: String,
    tools: BTreeMap<String, ToolEntry>,
    methods: BTreeMap<String, ToolEntry>,
    aliases: BTreeMap<String, String>,
    registry: Arc<Registry>,
}

/// Where destinations lie, and where they may.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) destinations: BTreeMap<String, String>,
    pub(crate) allowed: Option<Vec<String>>,
}

/// What a name stands for at one server.
#[derive(Debug)]
pub enum Resolution<'a> {
    /// The function with exactly this name or alias.
    Exact(&'a ToolEntry),
    /// Nothing. Never widened to something near (PROFILE §8).
    Unknown,
    /// A function that the configuration withholds.
    Disabled,
}

/// A compiled schema or method is at fault: server, table (`tools` or `methods`), function, what is wrong.
pub(crate) struct CompileFault(
    pub(crate) &'static str,
    pub(crate) String,
    pub(crate) String,
);

impl Server {
    pub(crate) fn compile(
        name: &str,
        server: &ServerModel,
        model: &Model,
        registry: &Arc<Registry>,
    ) -> Result<Self, Vec<CompileFault>> {
        let mut faults = Vec::new();
        let tools = tools(name, server, &mut faults);
        let methods = methods(name, server, &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        let aliases = tools.values().flat_map(|entry| {
            let function = &entry.function;
            entry
                .aliases
                .iter()
                .map(|alias| (alias.clone(), function.clone()))
        });
        let aliases = aliases.collect();
        let roots = server.roots.iter().filter_map(|root| {
            let found = model.roots.get(root)?;
            Some(Root {
                name: root.clone(),
                path: PathBuf::from(&found.path),
                recoverable: found.recoverable,
            })
        });
        Ok(Self {
            name: name.to_owned(),
            command: server.command.clone(),
            cwd: server.cwd.as_ref().map(PathBuf::from),
            env: server.env.clone(),
            pass_env: server.pass_env.clone(),
            entry: server.entry,
            roots: roots.collect(),
            timeout: Duration::from_millis(server.timeout),
            sampling: server.sampling,
            elicitation: server.elicitation,
            endpoint: endpoint(&server.command, server.entry),
            tools,
            methods,
            aliases,
            registry: Arc::clone(registry),
        })
    }

    /// What is really connected, as one text: `stdio:PROGRAM#DIGEST` with the digest over command, arguments and
    /// entry file (PROFILE §8).
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What a tool name stands for here.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Resolution<'_> {
        if !is_name(name) {
            return Resolution::Unknown;
        }
        let function = self.aliases.get(name).map_or(name, String::as_str);
        match self.tools.get(function) {
            Some(entry) if entry.enabled => Resolution::Exact(entry),
            Some(_) => Resolution::Disabled,
            None => Resolution::Unknown,
        }
    }

    /// The entry of a function, by its own name, also when it is withheld.
    #[must_use]
    pub fn tool(&self, function: &str) -> Option<&ToolEntry> {
        self.tools.get(function)
    }

    /// Whether the catalogue names the function as one that reads back: the gate's own agent may call it.
    #[must_use]
    pub fn reads_back(&self, function: &str) -> bool {
        let rules = self
            .tools
            .values()
            .filter_map(|tool| tool.read_back.as_ref());
        rules.into_iter().any(|rule| rule.tool == function)
    }

    /// Every pinned function, by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &ToolEntry> {
        self.tools.values()
    }

    /// The entry of an effectful method (`resources/read`, `prompts/get`, `tasks/update`, `tasks/cancel`, or one the
    /// catalogue lists). `None`: the method is refused.
    #[must_use]
    pub fn method(&self, method: &str) -> Option<&ToolEntry> {
        self.methods.get(method).filter(|entry| entry.enabled)
    }

    /// A method's class: the catalogue's; else INFORMATIONAL for reading a resource that the server itself listed,
    /// and OTHER for all else.
    #[must_use]
    pub fn method_class(&self, method: &str, listed: bool) -> ConsequenceClass {
        match self.methods.get(method) {
            Some(entry) if entry.catalogued => entry.class,
            _ if listed && method == "resources/read" => ConsequenceClass::Informational,
            _ => ConsequenceClass::Other,
        }
    }

    /// The one jurisdiction of these targets, when they share one.
    pub(crate) fn jurisdiction(&self, targets: &[Target]) -> Result<Option<String>, Unresolved> {
        let mut found = Vec::new();
        for target in targets {
            let jurisdiction = self.registry.of(target);
            if let Some(allowed) = &self.registry.allowed {
                let jurisdiction = jurisdiction
                    .ok_or(Unresolved::new("a destination's jurisdiction is not known"))?;
                if !allowed.contains(jurisdiction) {
                    let why = "a destination's jurisdiction is not allowed";
                    return Err(Unresolved {
                        code: Code::JurisdictionMismatch,
                        why,
                    });
                }
            }
            found.push(jurisdiction);
        }
        found.dedup();
        Ok(match found.as_slice() {
            [Some(one)] => Some((*one).clone()),
            _ => None,
        })
    }
}

impl Registry {
    /// By the target's canonical name, then by its host, then by its root as `root:NAME`.
    fn of(&self, target: &Target) -> Option<&String> {
        let wider = match &target.scope {
            Scope::External { host, .. } => Some(host.clone()),
            Scope::InRoot { root, .. } => Some(format!("root:{root}")),
            Scope::OutsideRoots | Scope::Forbidden | Scope::Fixed | Scope::LocalOther => None,
        };
        let exact = self.destinations.get(&target.canonical);
        exact.or_else(|| wider.and_then(|wider| self.destinations.get(&wider)))
    }
}

impl fmt::Debug for Server {
    /// Without the environment, which may hold secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Server")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Every pinned function with its entry, written or not. One that is withheld may have a schema that cannot be used.
fn tools(
    name: &str,
    server: &ServerModel,
    faults: &mut Vec<CompileFault>,
) -> BTreeMap<String, ToolEntry> {
    let unlisted = ToolModel::unlisted(name, None);
    let mut tools = BTreeMap::new();
    for function in server.definitions.keys() {
        let written = server.tools.get(function);
        let model = written.unwrap_or(&unlisted);
        match ToolEntry::compile(function, model, server, written.is_some()) {
            Ok(entry) => drop(tools.insert(function.clone(), entry)),
            Err(_) if !model.enabled => {}
            Err(fault) => faults.push(CompileFault("tools", function.clone(), fault)),
        }
    }
    tools
}

/// The effectful methods: those everybody knows, and over them those the catalogue lists.
fn methods(
    name: &str,
    server: &ServerModel,
    faults: &mut Vec<CompileFault>,
) -> BTreeMap<String, ToolEntry> {
    let unlisted = ToolModel::unlisted(name, None);
    let known = METHODS.into_iter().map(|method| (method, &unlisted, false));
    let written = server
        .methods
        .iter()
        .map(|(method, entry)| (method.as_str(), entry, true));
    let mut methods = BTreeMap::new();
    for (method, model, catalogued) in known.chain(written) {
        match ToolEntry::compile(method, model, server, catalogued) {
            Ok(entry) => drop(methods.insert(method.to_owned(), entry)),
            Err(fault) => faults.push(CompileFault("methods", method.to_owned(), fault)),
        }
    }
    methods
}

fn endpoint(command: &[String], entry: Option<Digest>) -> String {
    let mut bound = Object::new();
    bound.insert(
        "command".to_owned(),
        Value::Array(
            command
                .iter()
                .map(|word| Value::from(word.as_str()))
                .collect(),
        ),
    );
    bound.insert(
        "entry".to_owned(),
        entry.map_or(Value::Null, |digest| Value::from(digest.to_string())),
    );
    let digest = Digest::of_value(Algorithm::Sha256, &Value::Object(bound));
    let program = command.first().map_or("", String::as_str);
    let program = Path::new(program)
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    format!("stdio:{program}#{}", digest.to_base64url())
}

/// The methods that are acts whether the catalogue lists them or not (MCP.md).
pub(crate) const METHODS: [&str; 4] = [
    "prompts/get",
    "resources/read",
    "tasks/cancel",
    "tasks/update",
];
