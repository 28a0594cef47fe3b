//! What would be started: the program's absolute path, the folders it is given, and what to warn of (PROFILE §8).

use std::path::{Path, PathBuf};
use std::time::Duration;

use lychgate_core::display::escape;
use lychgate_policy::{Library, Root};
use lychgate_sinks::mcp::{Launch, entry_file};

use crate::args::Add;
use crate::commands::init::split_root;
use crate::configuration::{root_name, roots};
use crate::outcome::{Outcome, Stop};
use crate::places::{Places, absolute, program, shown};

/// What would be started.
pub(crate) struct Planned {
    pub(crate) launch: Launch,
    pub(crate) roots: Vec<Given>,
    pub(crate) warnings: Vec<String>,
}

/// A folder the server is given.
pub(crate) struct Given {
    pub(crate) root: Root,
    /// Not in the configuration yet.
    pub(crate) new: bool,
}

impl Given {
    pub(crate) fn path_text(&self) -> String {
        self.root.path.to_string_lossy().into_owned()
    }
}

/// Resolves everything that a name could stand for differently tomorrow.
pub(crate) fn plan(args: &Add, text: &str, places: &Places) -> Outcome<Planned> {
    if !is_server_name(&args.name) {
        let name = escape(&args.name);
        return Err(Stop::usage(format!(
            "server name `{name}` is refused: small letters, digits, `-` and `_`"
        )));
    }
    let (first, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| Stop::usage("there is no command after `--`"))?;
    let path = program(first)?;
    let path = path
        .to_str()
        .ok_or_else(|| Stop::usage("the program's path is not UTF-8"))?;
    let mut command = vec![path.to_owned()];
    command.extend(arguments.iter().cloned());
    let given = given(args, arguments, text)?;
    let cwd = args.cwd.as_deref().map(absolute).transpose()?;
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(Stop::usage(format!(
            "--cwd: `{}` is not a folder",
            escape(&cwd.to_string_lossy())
        )));
    }
    let mut warnings = runner(&command).into_iter().collect::<Vec<_>>();
    warnings.extend(unpinned(&command));
    warnings.extend(
        given
            .iter()
            .filter_map(|given| too_wide(&given.root.path, places)),
    );
    if cwd.is_none() {
        warnings.extend(arguments.iter().filter_map(|argument| relative(argument)));
    }
    let reviewed = Library::embedded().environment(&command);
    let launch = Launch {
        command,
        cwd,
        // What a person says wins over what the reviewed entries rely on; the table then shows it.
        env: reviewed
            .into_iter()
            .chain(args.env.iter().cloned())
            .collect(),
        pass_env: args.pass_env.clone(),
        roots: given.iter().map(|given| given.root.clone()).collect(),
        timeout: Duration::from_secs(args.timeout),
    };
    Ok(Planned {
        launch,
        roots: given,
        warnings,
    })
}

/// The folders: those named with `--root`, and every absolute folder among the arguments.
fn given(args: &Add, arguments: &[String], text: &str) -> Outcome<Vec<Given>> {
    let known = roots(text)?;
    let mut given: Vec<Given> = Vec::new();
    let named = args.root.iter().map(|text| {
        let (path, recoverable) = split_root(text);
        Ok((absolute(Path::new(path))?, recoverable))
    });
    let found = arguments
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && path.is_dir());
    for one in named.chain(found.map(|path| Ok((path, false)))) {
        let (path, said): (PathBuf, bool) = one?;
        if !path.is_dir() {
            return Err(Stop::usage(format!(
                "--root: `{}` is not a folder",
                escape(&path.to_string_lossy())
            )));
        }
        if given.iter().any(|given| given.root.path == path) {
            continue;
        }
        let declared = known
            .iter()
            .find(|(_, known)| Path::new(known.as_str()) == path);
        let taken = |name: &str| {
            known.contains_key(name) || given.iter().any(|given| given.root.name == name)
        };
        let name = declared.map_or_else(|| root_name(&path, taken), |(name, _)| name.clone());
        let recoverable = said || path.join(".git").exists();
        given.push(Given {
            root: Root {
                name,
                path,
                recoverable,
            },
            new: declared.is_none(),
        });
    }
    Ok(given)
}

/// A package runner without an exact version starts whatever is newest that day.
fn runner(command: &[String]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    let words = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let packages = match (name, words.as_slice()) {
        ("npx" | "bunx" | "uvx" | "pipx", all) => all,
        ("pnpm" | "yarn", ["dlx" | "exec", rest @ ..]) => rest,
        ("npm", ["exec" | "x", rest @ ..]) => rest,
        ("bun", ["x", rest @ ..]) => rest,
        ("uv", ["tool", "run", rest @ ..] | ["run", rest @ ..]) => rest,
        _ => return None,
    };
    let package = packages
        .iter()
        .find(|word| !word.starts_with('-') && !matches!(**word, "run"))?;
    if is_exact(package) {
        return None;
    }
    let package = escape(package);
    Some(format!(
        "`{package}` has no exact version: {name} may start other code tomorrow (write `{package}@1.2.3`, or `==1.2.3` with uvx)"
    ))
}

/// `name@1.2.3`, `@scope/name@1.2.3`, `name==1.2.3`.
fn is_exact(package: &str) -> bool {
    let version = package.split_once("==").or_else(|| {
        let at = package.rfind('@').filter(|at| *at > 0)?;
        package
            .split_at_checked(at)
            .map(|(name, version)| (name, version.trim_start_matches('@')))
    });
    version.is_some_and(|(_, version)| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.contains('.')
            && version
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_'))
    })
}

/// What runs is part of what was looked at only where its file is known.
fn unpinned(command: &[String]) -> Option<String> {
    pinned_file(command).is_none().then(|| {
        "no file of the program could be found to pin: other code under the same command would not be noticed, only \
         other tools (start a script by its path, as in `node /path/index.js`, to have it pinned)"
            .to_owned()
    })
}

/// A folder that holds the gate's own files is not a folder to give away whole.
fn too_wide(root: &Path, places: &Places) -> Option<String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root_is = real(root);
    let held = [Some(places.state.as_path()), places.config.parent()];
    let held = held
        .into_iter()
        .flatten()
        .find(|own| real(own).starts_with(&root_is))?;
    Some(format!(
        "`{}` holds the gate's own files (`{}`): calls that search, list or change it as a whole are denied there; give \
         a narrower folder",
        shown(root),
        shown(held)
    ))
}

/// Servers do not start in the folder this command was started in.
fn relative(argument: &str) -> Option<String> {
    let path = Path::new(argument);
    let there = path.is_relative()
        && !argument.starts_with('-')
        && argument.contains(['/', '.'])
        && path.exists();
    there.then(|| {
        format!(
            "`{}` is relative, and servers start in `/`: write the whole path",
            escape(argument)
        )
    })
}

/// What the endpoint's identity rests on beside the command's words, for the table.
pub(crate) fn pinned_file(command: &[String]) -> Option<PathBuf> {
    entry_file(command)
}

fn is_server_name(name: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    !name.is_empty() && name.len() <= 64 && name.bytes().all(plain) && !name.starts_with(['-', '_'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_runners_without_an_exact_version_are_warned_of() {
        let warned = |words: &[&str]| {
            runner(
                &words
                    .iter()
                    .map(|&word| word.to_owned())
                    .collect::<Vec<_>>(),
            )
            .is_some()
        };
        for words in [
            &[
                "/usr/bin/npx",
                "-y",
                "@modelcontextprotocol/server-filesystem",
                "/srv",
            ][..],
            &[
                "/usr/bin/npx",
                "-y",
                "@modelcontextprotocol/server-filesystem@latest",
            ],
            &["/usr/bin/npx", "server@^1.2"],
            &["/usr/bin/uvx", "mcp-server-git"],
            &["/usr/bin/pnpm", "dlx", "thing"],
            &["/usr/bin/bunx", "thing@1"],
        ] {
            assert!(warned(words), "{words:?}");
        }
        for words in [
            &[
                "/usr/bin/npx",
                "-y",
                "@modelcontextprotocol/server-filesystem@2026.8.31",
                "/srv",
            ][..],
            &["/usr/bin/uvx", "mcp-server-git==2026.10.19"],
            &["/usr/bin/node", "/opt/x/index.js"],
        ] {
            assert!(!warned(words), "{words:?}");
        }
    }

    #[test]
    fn a_folder_that_holds_the_gates_own_files_is_warned_of() {
        let places = Places {
            config: "/home/a/.config/lychgate/lychgate.toml".into(),
            state: "/home/a/.local/state/lychgate".into(),
        };
        let warned = |root: &str| too_wide(Path::new(root), &places);
        assert!(warned("/home/a").is_some_and(|why| why.contains("/home/a/.local/state/lychgate")));
        assert!(warned("/home/a/.config").is_some());
        assert!(warned("/home/a/.config/lychgate").is_some());
        for root in ["/home/a/src", "/home/a/.config/other", "/home/b"] {
            assert_eq!(warned(root), None);
        }
    }

    #[test]
    fn a_command_without_a_file_to_pin_is_warned_of() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        assert!(unpinned(&words(&["/usr/bin/python3", "-m", "server"])).is_some());
        assert!(unpinned(&words(&["/usr/bin/npx", "server@1.2.3"])).is_some());
        assert_eq!(unpinned(&words(&["/bin/cat"])), None);
    }

    #[test]
    fn server_names_are_those_the_configuration_takes() {
        for name in ["fs", "my-files_2"] {
            assert!(is_server_name(name));
        }
        for name in ["", "Fs", "-x", "a/b", "f\u{200b}s", "fs "] {
            assert!(!is_server_name(name), "{name}");
        }
    }
}
