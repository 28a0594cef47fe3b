//! What a look-up needs from an act, sealed at dispatch and deleted at settlement (PROFILE §5).

use lychgate_core::id::ActId;
use lychgate_core::json::{self, CaseRule, Limits};
use lychgate_core::{Code, ConsequenceClass, Digest};
use lychgate_policy::{Planned, Server, ToolEntry};
use lychgate_store::ActRow;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::current::Current;
use crate::gate::Gate;
use crate::log;
use crate::sink::LiveInvocation;

/// The look-up of one act, and what its destination was when the act went out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// What was connected.
    pub(super) endpoint: String,
    /// The definition of the function that acted.
    pub(super) acted: Digest,
    /// The definition of the function that is called.
    pub(super) called: Digest,
    pub(super) read_back: Planned,
}

impl Gate {
    /// The sealed plan of an act about to be dispatched. `None` when the catalogue has no rule for its function, or
    /// the act lacks what the rule asks for: then only a late answer or a person tells what became of it.
    pub(crate) fn sealed_plan(
        &self,
        act: ActId,
        live: &LiveInvocation<'_>,
        key: Option<&str>,
        current: &Current,
    ) -> Result<Option<Vec<u8>>, Code> {
        let Some(plan) = plan_of(live, key, current) else {
            return Ok(None);
        };
        let plain = Zeroizing::new(json::to_canonical(&plan).map_err(|_| Code::FailClosed)?);
        let sealed = self.sealer().seal(&label(act), &plain);
        sealed.map(Some).map_err(|_| Code::FailClosed)
    }

    pub(super) fn plan_of_row(&self, row: &ActRow) -> Option<Plan> {
        let opened = self.sealer().open(&label(row.id), row.read_back.as_ref()?);
        let plain = match opened {
            Ok(plain) => plain,
            Err(_) => {
                log::error(
                    "what a look-up needs cannot be opened",
                    &[("act", row.id.into())],
                );
                return None;
            }
        };
        let value = json::parse(&plain, &bounds(plain.len())).ok()?;
        json::from_value(&value).ok()
    }
}

impl Plan {
    //= PROFILE §5: reconciliation asks the same destination
    /// The server and both functions of now, when they are still those of the dispatch and the one that is called has no
    /// effect.
    pub(super) fn same<'c>(
        &self,
        row: &ActRow,
        current: &'c Current,
    ) -> Option<(&'c Server, &'c ToolEntry)> {
        let server = current.applied.server(row.tool.as_deref()?)?;
        let acted = server.tool(row.function.as_deref()?)?;
        let called = server.tool(&self.read_back.tool)?;
        let same = server.endpoint() == self.endpoint
            && acted.definition == self.acted
            && called.definition == self.called;
        let harmless = called.enabled && called.class == ConsequenceClass::Informational;
        (same && harmless).then_some((server, acted))
    }
}

fn plan_of(live: &LiveInvocation<'_>, key: Option<&str>, current: &Current) -> Option<Plan> {
    let server = current.applied.server(live.tool_id)?;
    let acted = server.tool(live.function_id)?;
    let rule = acted.read_back.as_ref()?;
    let called = server.tool(&rule.tool)?;
    let arguments = json::parse(live.arguments, &bounds(live.arguments.len())).ok()?;
    Some(Plan {
        endpoint: live.endpoint.to_owned(),
        acted: live.definition,
        called: called.definition,
        read_back: rule.plan(&arguments, key)?,
    })
}

/// What the gate itself wrote is read back whatever its size.
fn bounds(max_bytes: usize) -> Limits {
    Limits {
        max_bytes,
        max_depth: 80,
        case: CaseRule::Allow,
    }
}

/// What a sealed plan is bound to.
fn label(act: ActId) -> Vec<u8> {
    format!("read-back:{act}").into_bytes()
}
