//! Where an act would take effect and who would receive it, resolved from the arguments by the catalogue's rule
//! (PROFILE §11). What cannot be resolved exactly is refused, never guessed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lychgate_core::act::Destination;
use lychgate_core::digest::b64;
use lychgate_core::json::Value;
use lychgate_core::{Code, ConsequenceClass, Digest, jcs};

use crate::canonical;
use crate::model::{Kind, Rule};
use crate::schema;
use crate::server::{Root, Server};
use crate::tool::ToolEntry;

/// How the gate turns a text into the real path of this machine. The crate itself performs no I/O.
pub trait Paths {
    /// The canonical absolute path: links resolved as far as the path exists, the rest appended unchanged and free
    /// of `.` and `..`. A relative path is read against `base`.
    ///
    /// # Errors
    /// When the path cannot be made canonical.
    fn resolve(&self, path: &str, base: Option<&Path>) -> Result<PathBuf, PathRefused>;

    /// Whether a canonical path is, or lies beneath, a file or folder of the gate or of a client's configuration.
    fn forbidden(&self, path: &Path) -> bool;

    /// Whether a forbidden file or folder lies, or by its name would lie, beneath a canonical path, so that moving or
    /// replacing the path would reach it.
    fn holds_forbidden(&self, path: &Path) -> bool;

    /// Whether the gate's own files, or the user's clients', lie beneath a canonical path, so that even searching or
    /// walking the path would reach them. Where nothing else is known, whatever is forbidden.
    fn holds_private(&self, path: &Path) -> bool {
        self.holds_forbidden(path)
    }
}

/// A path has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path has no canonical form: {0}")]
pub struct PathRefused(pub &'static str);

/// Where an act would take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// For the act: one id, or `set:` and the digest of the sorted set.
    pub destination: Destination,
    /// Each target, sorted and unique.
    pub targets: Vec<Target>,
    /// Each recipient in canonical form, sorted and unique.
    pub recipients: Vec<String>,
}

/// One thing an act would touch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Its canonical name.
    pub canonical: String,
    /// Where it lies.
    pub scope: Scope,
}

/// Where a target lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In a root that the server was given; the innermost one.
    InRoot {
        /// The root's name.
        root: String,
        /// Version control or snapshots stand behind it.
        recoverable: bool,
    },
    /// On this machine, in none of the server's roots.
    OutsideRoots,
    /// The gate's own files, or a client's configuration (PROFILE §10).
    Forbidden,
    /// Outside this machine.
    External {
        /// The host, domain or institution, in canonical form; empty when the text does not name one.
        host: String,
        /// A cloud's metadata address.
        metadata: bool,
    },
    /// A constant of the catalogue.
    Fixed,
    /// A thing inside the server that is no path and no address.
    LocalOther,
}

/// A destination, recipient or jurisdiction could not be resolved as policy needs it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unresolved {
    /// EF-022, or EF-021 for a jurisdiction that is not allowed.
    pub code: Code,
    /// For the receipt; free of argument values.
    pub why: &'static str,
}

impl Unresolved {
    pub(crate) const fn new(why: &'static str) -> Self {
        Self {
            code: Code::DestinationUnresolved,
            why,
        }
    }
}

impl ToolEntry {
    /// Resolves the targets and recipients of a call. `args` must have passed [`ToolEntry::validate`].
    ///
    /// # Errors
    /// EF-022 when a destination, a needed recipient or jurisdiction cannot be resolved; EF-021 when a jurisdiction
    /// is not allowed.
    pub fn destinations(
        &self,
        args: &Value,
        paths: &dyn Paths,
        server: &Server,
    ) -> Result<Reach, Unresolved> {
        let rule = self
            .destination
            .as_ref()
            .ok_or(Unresolved::new("the catalogue entry has no destination"))?;
        let mut targets = Vec::new();
        if let Some(fixed) = &rule.fixed {
            targets.push(Target {
                canonical: fixed.clone(),
                scope: Scope::Fixed,
            });
        }
        let finder = Finder {
            paths,
            server,
            reads: self.class == ConsequenceClass::Informational,
            recursive: self.recursive,
        };
        if let Some(file) = &rule.file {
            targets.push(finder.target(Kind::Path, file)?);
        }
        for (kind, text) in texts(rule, args)? {
            targets.push(finder.target(kind, text)?);
        }
        targets.sort();
        targets.dedup();
        let recipients = self.recipients(args)?;
        if self.class.needs_recipient() && recipients.is_empty() {
            return Err(Unresolved::new(
                "an act of this class must name who receives",
            ));
        }
        let jurisdiction = server.jurisdiction(&targets)?;
        let destination = Destination {
            destination_id: name_of(targets.iter().map(|target| target.canonical.as_str())),
            endpoint: Some(server.endpoint().to_owned()),
            jurisdiction,
            recipient_id: name_of(recipients.iter().map(String::as_str)),
        };
        if destination.destination_id.is_none() {
            return Err(Unresolved::new("no argument names the destination"));
        }
        Ok(Reach {
            destination,
            targets,
            recipients,
        })
    }

    fn recipients(&self, args: &Value) -> Result<Vec<String>, Unresolved> {
        let Some(rule) = &self.recipient else {
            return Ok(Vec::new());
        };
        let mut found = rule.fixed.iter().cloned().collect::<Vec<_>>();
        for (kind, text) in any_texts(rule, args)? {
            found.push(canonical::name(kind, text)?.id);
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

//= PROFILE §11: several targets: the field holds the digest of the sorted set
/// One name as it is, several as `set:` and the SHA-256 over JCS of the sorted list; none for none.
fn name_of<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut names = names.collect::<Vec<_>>();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => {
            let list = Value::Array(several.iter().map(|&name| Value::from(name)).collect());
            Some(format!(
                "set:{}",
                b64::encode(Digest::sha256(&jcs::to_bytes(&list)).bytes())
            ))
        }
    }
}

/// The texts a destination rule names. Every pointer must name at least one; only mail recipients may be left out, as
/// long as one is there.
fn texts<'a>(rule: &Rule, args: &'a Value) -> Result<Vec<(Kind, &'a str)>, Unresolved> {
    for (_, pointer) in pointers(rule).filter(|(kind, _)| *kind != Kind::Email) {
        if gather(args, pointer)?.is_empty() {
            return Err(Unresolved::new(
                "an argument that names the destination is absent",
            ));
        }
    }
    any_texts(rule, args)
}

fn any_texts<'a>(rule: &Rule, args: &'a Value) -> Result<Vec<(Kind, &'a str)>, Unresolved> {
    let mut found = Vec::new();
    for (kind, pointer) in pointers(rule) {
        found.extend(gather(args, pointer)?.into_iter().map(|text| (kind, text)));
    }
    Ok(found)
}

fn pointers(rule: &Rule) -> impl Iterator<Item = (Kind, &str)> {
    rule.pointers
        .iter()
        .flat_map(|(kind, pointers)| pointers.iter().map(|pointer| (*kind, pointer.as_str())))
}

/// The texts at a pointer. An array on the way, or at the end, means each of its elements; null counts as absent.
fn gather<'a>(args: &'a Value, pointer: &str) -> Result<Vec<&'a str>, Unresolved> {
    let tokens = schema::tokens(pointer)
        .ok_or(Unresolved::new("a pointer of the catalogue is malformed"))?;
    let mut found = Vec::new();
    walk(args, &tokens, &mut found)?;
    Ok(found)
}

fn walk<'a>(
    here: &'a Value,
    tokens: &[String],
    found: &mut Vec<&'a str>,
) -> Result<(), Unresolved> {
    match (here, tokens.split_first()) {
        (Value::Null, _) => Ok(()),
        (Value::String(text), None) => {
            found.push(text);
            Ok(())
        }
        (Value::Array(items), _) => items.iter().try_for_each(|item| walk(item, tokens, found)),
        (Value::Object(members), Some((token, rest))) => members
            .get(token)
            .map_or(Ok(()), |member| walk(member, rest, found)),
        _ => Err(Unresolved::new(
            "an argument that names the destination is not a text",
        )),
    }
}

/// What stands behind a root cannot bring itself back, and it holds what later runs (hooks, drivers, filters): the
/// folders of version control are never recoverable.
fn unrecoverable(name: &OsStr) -> bool {
    VERSION_CONTROL
        .iter()
        .any(|folder| name.eq_ignore_ascii_case(folder))
}

const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

struct Finder<'a> {
    paths: &'a dyn Paths,
    server: &'a Server,
    reads: bool,
    recursive: bool,
}

impl Finder<'_> {
    fn target(&self, kind: Kind, text: &str) -> Result<Target, Unresolved> {
        if kind == Kind::Path {
            return self.path(text);
        }
        let name = canonical::name(kind, text)?;
        let scope = match name.host {
            Some(host) => Scope::External {
                host,
                metadata: name.metadata,
            },
            None => Scope::LocalOther,
        };
        Ok(Target {
            canonical: name.id,
            scope,
        })
    }

    fn path(&self, text: &str) -> Result<Target, Unresolved> {
        canonical::path::check(text)?;
        let unresolved = |_| Unresolved::new("a path has no canonical form");
        let path = self
            .paths
            .resolve(text, self.server.cwd.as_deref())
            .map_err(unresolved)?;
        let canonical = path
            .to_str()
            .ok_or(Unresolved::new("a path is not UTF-8"))?
            .to_owned();
        Ok(Target {
            canonical,
            scope: self.scope(&path),
        })
    }

    fn scope(&self, path: &Path) -> Scope {
        //= PROFILE §10: the gate's and the clients' files are no target, neither by name nor beneath a folder
        // A change of a folder may always concern what is in it; a project's own client files only where it really does.
        let reached = self.paths.forbidden(path)
            || ((self.recursive || !self.reads) && self.paths.holds_private(path))
            || (self.recursive && !self.reads && self.paths.holds_forbidden(path));
        if reached {
            return Scope::Forbidden;
        }
        // `starts_with` compares whole components, so `/srv/work2` is not in `/srv/work`.
        let inside = |root: &&(PathBuf, &Root)| path.starts_with(&root.0);
        let roots = self.roots();
        let innermost = roots.iter().filter(inside).max_by_key(|(place, root)| {
            // Of two names for one place the one that promises less counts.
            (place.components().count(), !root.recoverable)
        });
        innermost.map_or(Scope::OutsideRoots, |(_, root)| Scope::InRoot {
            root: root.name.clone(),
            recoverable: root.recoverable
                && !path
                    .components()
                    .any(|part| unrecoverable(part.as_os_str())),
        })
    }

    /// The server's roots as they are on this machine now; one that is not there holds nothing.
    fn roots(&self) -> Vec<(PathBuf, &Root)> {
        let real = |root| Some((self.paths.resolve(Root::path_text(root)?, None).ok()?, root));
        self.server.roots.iter().filter_map(real).collect()
    }
}
