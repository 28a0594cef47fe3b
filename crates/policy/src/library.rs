//! Reviewed catalogue entries for common servers, matched by package and definition digest.

/// The reviewed entries this build carries.
#[derive(Debug, Default)]
pub struct Library {}

impl Library {
    /// The entries embedded in this build.
    #[must_use]
    pub fn embedded() -> Self {
        Self::default()
    }
}
