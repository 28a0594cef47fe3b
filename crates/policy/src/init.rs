//! The commented configuration that `init` writes.

use std::fmt::Write as _;

/// A root to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitRoot {
    /// Its name: small letters, digits, `-`, `_`.
    pub name: String,
    /// Absolute path.
    pub path: String,
    /// Whether version control or snapshots stand behind it.
    pub recoverable: bool,
}

/// The text of a first `lychgate.toml`. It allows nothing: `add` puts servers in.
#[must_use]
pub fn template(principal: &str, roots: &[InitRoot]) -> String {
    let mut text = HEAD.replace("PRINCIPAL", &quoted(principal));
    for root in roots {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n[roots.{}]\npath = {}\nrecoverable = {}\n",
            root.name,
            quoted(&root.path),
            root.recoverable
        );
    }
    if roots.is_empty() {
        text.push_str("#\n# [roots.work]\n# path = \"/home/you/src\"\n# recoverable = true\n");
    }
    text.push_str(TAIL);
    text
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

const HEAD: &str = r#"# Lychgate: this exact act, once, or not at all.
# A change here counts once `lychgate apply` has shown it to you. `lychgate check` finds mistakes.

version = 1

# "balanced": reads inside your roots pass, writes inside recoverable roots pass, the rest asks.
# "strict": it also asks for writes that nobody is known to have asked for, and denies reads outside your roots.
profile = "balanced"

# true: nobody is there to be asked, so what would ask is denied.
unattended = false

# On whose behalf the agent acts. It is written into every act.
[principal]
id = PRINCIPAL
type = "user"

# The agent. `allow` lists what it may call at all: a server ("fs") or one function ("fs/read_file").
[agent]
id = "local-agent"
max_depth = 0
allow = []

# What the agent is for.
[purpose]
id = "general"
declared = "What the user asks of this agent"

# Times; these are the defaults. `hold`: how long a call is held open while you decide. Most clients give up after 60 s,
# so it ends before. `ticket`: how long you may decide at all; a call approved after its hold goes through when an equal
# one comes.
# [limits]
# hold = "45s"
# ticket = "15m"

# An act whose answer was lost is looked up where its entry has a `read_back` (docs/ARCHITECTURE.md): first after `first`,
# then after twice the wait before, at most `most`; after `deadline` you must say (`lychgate reconcile`).
# [reconcile]
# first = "2s"
# most = "5m"
# deadline = "1h"

# Folders that servers may be given. `recoverable = true` says that you can get a lost file back
# (version control, snapshots): writes in there pass without asking.
"#;

const TAIL: &str = r#"
# Servers follow. `lychgate add NAME -- COMMAND ARG...` writes them.
"#;
