//! Which dependencies may come in, from where and under which licence, as `deny.toml` says: the part of `cargo deny`
//! that we rely on, so that it is checked on every machine. Advisories need a database from the network; `cargo deny`
//! reads it where it is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cargo_metadata::Package;
use toml::{Table, Value};

use crate::steps::{Failure, metadata_with_dependencies};

/// What `deny.toml` says.
struct Rules {
    targets: Vec<String>,
    licences: BTreeSet<String>,
    banned: BTreeSet<String>,
}

impl Rules {
    fn read(text: &str) -> Result<Self, Failure> {
        let table: Table = text
            .parse()
            .map_err(|error| Failure::new(format!("`deny.toml` is not TOML: {error}")))?;
        let list = |section: &str, key: &str| -> Result<Vec<String>, Failure> {
            let found = table.get(section).and_then(|section| section.get(key));
            let found = found.and_then(Value::as_array).ok_or_else(|| {
                Failure::new(format!("`deny.toml` has no list `{key}` in `[{section}]`"))
            })?;
            // A ban is a table with the crate's name and the reason.
            let name = |item: &Value| {
                let name = item.get("crate").unwrap_or(item);
                name.as_str().map(ToOwned::to_owned)
            };
            found
                .iter()
                .map(name)
                .collect::<Option<_>>()
                .ok_or_else(|| {
                    Failure::new(format!("`{key}` in `deny.toml` holds no list of names"))
                })
        };
        Ok(Self {
            targets: list("graph", "targets")?,
            licences: list("licenses", "allow")?.into_iter().collect(),
            banned: list("bans", "deny")?.into_iter().collect(),
        })
    }

    fn faults(&self, package: &Package, faults: &mut BTreeSet<String>) {
        let name = package.name.as_str();
        let version = &package.version;
        if self.banned.contains(name) {
            faults.insert(format!("`{name}` is banned"));
        }
        let Some(source) = &package.source else {
            return;
        };
        if source.repr != REGISTRY && source.repr != SPARSE_REGISTRY {
            faults.insert(format!(
                "`{name}` {version} comes from `{source}`, not from crates.io"
            ));
        }
        match &package.license {
            None => {
                faults.insert(format!("`{name}` {version} names no licence"));
            }
            Some(expression) if !allowed(expression, &self.licences) => {
                faults.insert(format!(
                    "`{name}` {version} is under `{expression}`, which is not allowed"
                ));
            }
            Some(_) => {}
        }
    }
}

/// Checks every package of every target; every fault is printed, not only the first.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let rules = Rules::read(&fs::read_to_string(root.join("deny.toml"))?)?;
    let mut faults = BTreeSet::new();
    let mut packages = BTreeSet::new();
    for target in &rules.targets {
        let metadata = metadata_with_dependencies(root, target)?;
        // The list of packages is of every platform; what the graph reaches is of this target.
        let nodes = metadata.resolve.iter().flat_map(|graph| &graph.nodes);
        let reached = nodes.map(|node| &node.id).collect::<BTreeSet<_>>();
        for package in metadata
            .packages
            .iter()
            .filter(|package| reached.contains(&package.id))
        {
            packages.insert(package.id.repr.clone());
            let ours = metadata.workspace_members.contains(&package.id);
            if package.source.is_none() && !ours {
                faults.insert(format!(
                    "`{}` is a path outside the workspace",
                    package.name
                ));
            }
            rules.faults(package, &mut faults);
        }
    }
    if packages.len() < 2 {
        faults.insert("nothing was looked at: the check itself is broken".to_owned());
    }
    if faults.is_empty() {
        println!(
            "supply: {} packages, licences, bans and sources in order",
            packages.len()
        );
        return Ok(());
    }
    for fault in &faults {
        eprintln!("supply: {fault}");
    }
    Err(Failure::new(format!(
        "{} faults in the dependencies",
        faults.len()
    )))
}

/// Whether an SPDX expression leaves a choice that is allowed. `/` between names is the old way to write OR.
fn allowed(expression: &str, licences: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words = spaced.split_whitespace().collect::<Vec<_>>();
    let mut reader = Expression { words: &words };
    let result = reader.either(licences);
    // What cannot be read whole is not allowed.
    result == Some(true) && reader.words.is_empty()
}

struct Expression<'a> {
    words: &'a [&'a str],
}

impl Expression<'_> {
    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn either(&mut self, licences: &BTreeSet<String>) -> Option<bool> {
        let mut any = self.both(licences)?;
        while self.take("OR") {
            any |= self.both(licences)?;
        }
        Some(any)
    }

    fn both(&mut self, licences: &BTreeSet<String>) -> Option<bool> {
        let mut all = self.one(licences)?;
        while self.take("AND") {
            all &= self.one(licences)?;
        }
        Some(all)
    }

    fn one(&mut self, licences: &BTreeSet<String>) -> Option<bool> {
        if self.take("(") {
            let inner = self.either(licences)?;
            return self.take(")").then_some(inner);
        }
        let (licence, rest) = self.words.split_first()?;
        self.words = rest;
        let whole = match self.words.split_first() {
            Some((&"WITH", rest)) => {
                let (exception, rest) = rest.split_first()?;
                self.words = rest;
                format!("{licence} WITH {exception}")
            }
            _ => (*licence).to_owned(),
        };
        let word = !matches!(*licence, "AND" | "OR" | "WITH" | ")");
        word.then(|| licences.contains(&whole))
    }
}

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
const SPARSE_REGISTRY: &str = "sparse+https://index.crates.io/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_needs_one_choice_that_is_allowed_as_a_whole() {
        let licences = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"]
            .map(ToOwned::to_owned)
            .into();
        for expression in [
            "MIT",
            "GPL-3.0-only OR MIT",
            "MIT/GPL-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(allowed(expression, &licences), "{expression}");
        }
        for expression in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR Apache-2.0) AND GPL-3.0-only",
            "Apache-2.0",
            "MIT WITH LLVM-exception",
            "MIT OR",
            "(MIT",
            "MIT Unicode-3.0",
            "OR MIT",
        ] {
            assert!(!allowed(expression, &licences), "{expression}");
        }
    }

    #[test]
    fn the_rules_are_those_of_cargo_deny() {
        let root = crate::workspace_root();
        let text = fs::read_to_string(root.join("deny.toml")).unwrap();
        let rules = Rules::read(&text).unwrap();
        assert!(rules.banned.contains("ring"));
        assert!(rules.licences.contains("MIT"));
        assert!(!rules.targets.is_empty());
        assert!(Rules::read("[graph]\ntargets = []").is_err());
    }
}
