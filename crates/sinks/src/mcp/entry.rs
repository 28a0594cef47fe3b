//! The file behind a command, whose digest belongs to the endpoint (PROFILE §8).

use std::path::{Path, PathBuf};

use lychgate_core::Digest;

//= PROFILE §8: endpoint = resolved command, arguments, digest of the entry file where one can be found
/// The file that a command really runs: the script an interpreter is given, or the program itself.
///
/// `None` when it cannot be told for certain (a module name, a package runner, an option that is not known here): then
/// nothing is pinned, and whoever adds the server should be told.
pub fn entry_file(command: &[String]) -> Option<PathBuf> {
    let (program, arguments) = command.split_first()?;
    let program = Path::new(program);
    let name = program.file_name()?.to_str()?;
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match word {
        "node" | "nodejs" => script(arguments, &NODE),
        "python" | "pypy" => script(arguments, &PYTHON),
        "env" => entry_file(after_variables(arguments)?),
        _ if SCRIPTS.contains(&word) => script(arguments, &NO_OPTIONS),
        _ if RUNNERS.contains(&word) => None,
        _ => file(program),
    }
}

/// SHA-256 of the entry file's bytes.
pub fn entry_digest(command: &[String]) -> Option<Digest> {
    let bytes = std::fs::read(entry_file(command)?).ok()?;
    Some(Digest::sha256(&bytes))
}

fn file(path: &Path) -> Option<PathBuf> {
    (path.is_absolute() && path.is_file()).then(|| path.to_path_buf())
}

/// What an interpreter takes before its script. Anything else there makes the script uncertain.
struct Options {
    /// Letters without a value, which may stand together after one `-`.
    letters: &'static str,
    /// Letters with a value: the rest of the word, or the next word.
    valued_letters: &'static str,
    /// Words without a value.
    words: &'static [&'static str],
    /// Words with a value: after `=`, or the next word.
    valued_words: &'static [&'static str],
    /// Whether an unknown word with `=` is an option with its value.
    takes_equals: bool,
}

fn script(arguments: &[String], options: &Options) -> Option<PathBuf> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            return file(Path::new(arguments.next()?));
        }
        let Some(option) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            return file(Path::new(argument));
        };
        let takes_next = match option.strip_prefix('-') {
            Some(word) => options.word_takes_next(word)?,
            None => options.letters_take_next(option)?,
        };
        if takes_next {
            arguments.next()?;
        }
    }
    None
}

impl Options {
    /// Whether the next argument is this option's value; `None` when the option is not known.
    fn word_takes_next(&self, word: &str) -> Option<bool> {
        match word.split_once('=') {
            Some((name, _)) => {
                (self.takes_equals || self.valued_words.contains(&name)).then_some(false)
            }
            None if self.words.contains(&word) => Some(false),
            None => self.valued_words.contains(&word).then_some(true),
        }
    }

    fn letters_take_next(&self, letters: &str) -> Option<bool> {
        for (at, letter) in letters.char_indices() {
            if self.valued_letters.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.letters.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

/// What `env` runs. Its options change what the rest means, so with any of them it cannot be told.
fn after_variables(arguments: &[String]) -> Option<&[String]> {
    let start = arguments
        .iter()
        .position(|argument| !argument.contains('='))?;
    arguments
        .get(start..)
        .filter(|rest| rest.first().is_some_and(|first| !first.starts_with('-')))
}

/// `-e`, `-p` and `-i` run something else than a file.
const NODE: Options = Options {
    letters: "",
    valued_letters: "rC",
    words: &[
        "enable-source-maps",
        "no-deprecation",
        "no-warnings",
        "trace-warnings",
        "trace-deprecation",
        "throw-deprecation",
        "experimental-strip-types",
        "experimental-vm-modules",
        "preserve-symlinks",
        "preserve-symlinks-main",
        "use-system-ca",
        "use-openssl-ca",
        "use-bundled-ca",
        "expose-gc",
        "inspect",
    ],
    valued_words: &[
        "require",
        "import",
        "loader",
        "experimental-loader",
        "conditions",
        "env-file",
        "env-file-if-exists",
        "title",
    ],
    takes_equals: true,
};
/// `-c` and `-m` run something else than a file.
const PYTHON: Options = Options {
    letters: "bBdEIOPqsSuvx",
    valued_letters: "WX",
    words: &[],
    valued_words: &["check-hash-based-pycs"],
    takes_equals: false,
};
const NO_OPTIONS: Options = Options {
    letters: "",
    valued_letters: "",
    words: &[],
    valued_words: &[],
    takes_equals: false,
};
/// Interpreters whose script stands first, or is not looked for.
const SCRIPTS: [&str; 8] = ["ruby", "perl", "bun", "sh", "bash", "dash", "zsh", "ksh"];
/// What runs is elsewhere.
const RUNNERS: [&str; 14] = [
    "deno", "npx", "npm", "pnpm", "yarn", "corepack", "bunx", "uv", "uvx", "pipx", "docker",
    "podman", "nix", "sudo",
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_script_is_found_behind_its_interpreters_options_and_never_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (script, other, program) = (path("server.js"), path("other.js"), path("program"));
        let found = |words: &[&str]| {
            let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            entry_file(&command).map(|path| path.to_str().unwrap().to_owned())
        };
        let (s, o) = (script.as_str(), other.as_str());
        for told in [
            vec!["/usr/bin/node", s],
            vec!["node22", "--no-warnings", "--env-file=x", s, o],
            vec!["/usr/bin/node", "--require", o, s],
            vec!["/usr/bin/node", "-r", o, "--max-old-space-size=9", s],
            vec!["/usr/bin/node", "--", s],
            vec!["/usr/bin/python3.12", "-u", s],
            vec!["python3", "-BuW", "ignore", "-Xdev", s, o],
            vec!["/usr/bin/env", "A=1", "node", s],
            vec!["/bin/sh", s],
            vec![s],
        ] {
            assert_eq!(found(&told).as_deref(), Some(s), "{told:?}");
        }
        for untold in [
            vec!["python3", "-m", "server", o],
            vec!["python3", "-um", "server", o],
            vec!["python3", "-c", "pass", o],
            vec!["node", "-e", "1", o],
            vec!["node", "--eval", o],
            vec!["node", "--unknown", o],
            vec!["node", "relative.js", o],
            vec!["node"],
            vec!["/bin/bash", "-c", o],
            vec!["deno", "run", o],
            vec!["uv", "run", "--script", o],
            vec!["/usr/bin/env", "-S", o],
            vec!["program"],
        ] {
            assert_eq!(found(&untold), None, "{untold:?}");
        }
        assert_eq!(found(&[&program, o]), Some(program.clone()));
        let runner = path("docker");
        assert_eq!(found(&[&runner, "run", o]), None);
    }
}
