//! Reviewed catalogue entries for common servers, matched by package name and definition digest. The files stand in
//! `crates/policy/library/` and are part of the build.

use std::collections::BTreeMap;

use crate::load::{LibraryFile, library_file};
use crate::model::ToolModel;

/// The reviewed entries this build carries.
#[derive(Clone, Debug)]
pub struct Library {
    packages: Vec<LibraryFile>,
}

impl Library {
    /// The entries embedded in this build. A file that cannot be read is left out; a test keeps them all readable.
    #[must_use]
    pub fn embedded() -> Self {
        Self {
            packages: FILES
                .iter()
                .filter_map(|(_, text)| library_file(text).ok())
                .collect(),
        }
    }

    /// The variables a server must run with for its reviewed classes to hold; empty for one that is not known.
    #[must_use]
    pub fn environment(&self, command: &[String]) -> BTreeMap<String, String> {
        self.package(command)
            .map(|file| file.env.clone())
            .unwrap_or_default()
    }

    /// The package that a command starts, as far as its words show: a package name, alone, with a version, or as
    /// folders of a path. It is a hint; what decides is the definition's digest and the person.
    pub(crate) fn package(&self, command: &[String]) -> Option<&LibraryFile> {
        self.packages.iter().find(|file| {
            file.packages
                .iter()
                .any(|package| command.iter().any(|word| starts(word, package)))
        })
    }
}

impl LibraryFile {
    /// The reviewed entry of a function.
    pub(crate) fn entry(&self, function: &str) -> Option<&ToolModel> {
        self.tools.get(function)
    }

    /// The absolute path in the variable that names the server's own file.
    pub(crate) fn own_file(&self, env: &BTreeMap<String, String>) -> Option<String> {
        let path = env.get(self.file_env.as_ref()?)?;
        path.starts_with('/').then(|| path.clone())
    }
}

/// Whether a word of a command names a package.
fn starts(word: &str, package: &str) -> bool {
    let bare = |text: &str| {
        text == package
            || text
                .strip_prefix(package)
                .is_some_and(|rest| rest.starts_with(['@', '=']))
    };
    if bare(word) {
        return true;
    }
    let word = format!("/{word}/");
    word.contains(&format!("/{package}/"))
}

const FILES: [(&str, &str); 6] = [
    ("everything", include_str!("../library/everything.toml")),
    ("fetch", include_str!("../library/fetch.toml")),
    ("filesystem", include_str!("../library/filesystem.toml")),
    ("git", include_str!("../library/git.toml")),
    ("memory", include_str!("../library/memory.toml")),
    ("time", include_str!("../library/time.toml")),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_file_of_the_library_is_readable() {
        for (name, text) in FILES {
            if let Err(problems) = library_file(text) {
                panic!("{name}: {problems}");
            }
        }
        assert_eq!(Library::embedded().packages.len(), FILES.len());
    }

    #[test]
    fn a_package_is_found_in_the_usual_ways_of_starting_it() {
        let library = Library::embedded();
        let found = |words: &[&str]| {
            let command = words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>();
            library
                .package(&command)
                .map(|file| file.packages[0].clone())
        };
        let filesystem = Some("@modelcontextprotocol/server-filesystem".to_owned());
        assert_eq!(
            found(&[
                "/usr/bin/npx",
                "-y",
                "@modelcontextprotocol/server-filesystem",
                "/srv"
            ]),
            filesystem
        );
        assert_eq!(
            found(&[
                "/usr/bin/npx",
                "-y",
                "@modelcontextprotocol/server-filesystem@2026.8.31"
            ]),
            filesystem
        );
        assert_eq!(
            found(&[
                "/usr/bin/node",
                "/opt/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
            ]),
            filesystem
        );
        assert_eq!(
            found(&["/opt/venv/bin/python", "-m", "mcp_server_time"]).unwrap(),
            "mcp-server-time"
        );
        assert_eq!(
            found(&["/usr/bin/uvx", "mcp-server-git==2026.10.19"]).unwrap(),
            "mcp-server-git"
        );
        assert_eq!(
            found(&["/usr/bin/node", "/opt/evil-server-filesystem/index.js"]),
            None
        );
        assert_eq!(
            found(&[
                "/usr/bin/npx",
                "@modelcontextprotocol/server-filesystem-plus"
            ]),
            None
        );
    }
}
