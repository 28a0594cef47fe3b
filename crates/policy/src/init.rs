//! The commented configuration that `init` writes.

/// A root to begin with.
#[derive(Clone, Debug)]
pub struct InitRoot {
    /// Its name.
    pub name: String,
    /// Absolute path.
    pub path: String,
    /// Whether it is recoverable.
    pub recoverable: bool,
}

/// The text of a first `lychgate.toml`.
#[must_use]
pub fn template(principal: &str, roots: &[InitRoot]) -> String {
    let _ = (principal, roots);
    String::new()
}
