//! What is wrong with a configuration, where, and what was probably meant.

use std::fmt;
use std::path::{Path, PathBuf};

/// One problem of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file at fault.
    pub file: PathBuf,
    /// Line from 1, when the problem has a place in the file.
    pub line: Option<usize>,
    /// Column in characters from 1; 1 when there is no line.
    pub column: usize,
    /// What is wrong, in lowercase, with backticks round what the user wrote.
    pub message: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// A problem without a place inside `file`.
    #[must_use]
    pub fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: 1,
            message: message.into(),
            suggestion: None,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.file_name().map_or_else(
            || self.file.to_string_lossy(),
            |name| name.to_string_lossy(),
        );
        out.write_str(&lychgate_core::display::escape(&name))?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        write!(out, ": {}", self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(out, " (did you mean `{suggestion}`?)")?;
        }
        Ok(())
    }
}

/// Every problem found, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub(crate) Vec<Diagnostic>);

impl Diagnostics {
    /// The problems.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Sorts by place and drops repetitions.
    pub(crate) fn sorted(mut found: Vec<Diagnostic>) -> Self {
        found.sort_by(|one, other| {
            (one.line.is_none(), one.line, one.column, &one.message).cmp(&(
                other.line.is_none(),
                other.line,
                other.column,
                &other.message,
            ))
        });
        found.dedup();
        Self(found)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str("\n\n")?;
            }
            write!(out, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// A problem of meaning, at a path of keys such as `servers`, `fs`, `tools`, `write_file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
    pub(crate) suggestion: Option<String>,
}

impl Problem {
    pub(crate) fn new(path: &[&str], message: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|&key| key.to_owned()).collect(),
            message: message.into(),
            suggestion: None,
        }
    }

    pub(crate) fn suggesting(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }
}

/// The known word nearest to what was written, when it is near enough to be a slip.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|word| {
            (
                strsim::damerau_levenshtein(&written.to_lowercase(), &word.to_lowercase()),
                word,
            )
        })
        .filter(|(distance, word)| {
            *distance < written.chars().count()
                && *distance <= (word.len().max(written.len()) / 3).max(1)
        })
        .min_by_key(|(distance, word)| (*distance, *word))
        .map(|(_, word)| word.to_owned())
}

/// What the user wrote, as it may stand in a message.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", lychgate_core::display::escape_within(text, 120))
}
