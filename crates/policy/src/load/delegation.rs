//! The `[agent.budget]` table, the envelopes of functions, and limits like them.

use lychgate_core::amount::Amount;
use lychgate_core::delegation::{Budget, Name, Rate, Spend, Window};

use super::read::{Reader, Section};
use crate::delegation::AgentBudget;
use crate::envelope::EnvelopeLimits;

pub(super) fn budget(reader: &mut Reader<'_>, agent: &Section<'_, '_>) -> Option<AgentBudget> {
    let keys = ["every", "acts", "high_risk_acts", "rate", "spend"];
    let section = reader.table(agent, "budget", &keys)?;
    if !section.has("every") {
        let message = "`budget` has no `every`: say when it begins anew, such as `every = \"24h\"`";
        reader.at_key(&section, "every", message);
    }
    Some(AgentBudget {
        every: reader.duration(&section, "every").unwrap_or(DAY),
        budget: Budget {
            acts: reader.whole(&section, "acts"),
            high_risk_acts: reader.whole(&section, "high_risk_acts"),
            rate: rate(reader, &section),
            spend: spend(reader, &section),
        },
    })
}

/// `envelope = { acts = 100, lasts = "10m" }`
pub(super) fn envelope(reader: &mut Reader<'_>, tool: &Section<'_, '_>) -> Option<EnvelopeLimits> {
    let section = reader.table(tool, "envelope", &["acts", "lasts", "rate", "spend"])?;
    for key in ["acts", "lasts"] {
        if !section.has(key) {
            reader.at_key(&section, key, format!("`envelope` has no `{key}`"));
        }
    }
    Some(EnvelopeLimits {
        acts: reader.whole(&section, "acts").unwrap_or(1),
        lasts: reader.duration(&section, "lasts").unwrap_or(1_000),
        rate: rate(reader, &section),
        spend: spend(reader, &section),
    })
}

/// `rate = { acts = 30, window = "1m" }`
pub(super) fn rate(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> Option<Rate> {
    let rate = reader.table(section, "rate", &["acts", "window"])?;
    for key in ["acts", "window"] {
        if !rate.has(key) {
            reader.at_key(&rate, key, format!("`rate` has no `{key}`"));
        }
    }
    let acts = reader.whole(&rate, "acts")?;
    let millis = reader.duration(&rate, "window")?;
    match Window::try_from(millis) {
        Ok(window_ms) => Some(Rate { acts, window_ms }),
        Err(why) => {
            reader.at_key(&rate, "window", why);
            None
        }
    }
}

/// `spend = { EUR = "500", USD = "120.50" }`
pub(super) fn spend(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> Option<Vec<Spend>> {
    let table = reader.open(section, "spend")?;
    let mut spends = Vec::new();
    for key in table.keys().collect::<Vec<_>>() {
        let Some(text) = reader.text(&table, key) else {
            continue;
        };
        match (Name::try_from(key.to_owned()), Amount::read(&text)) {
            (Ok(unit), Ok(amount)) => spends.push(Spend { unit, amount }),
            (Err(why), _) => reader.at_key(&table, key, why),
            (_, Err(why)) => reader.at_key(&table, key, why.to_string()),
        }
    }
    spends.sort();
    Some(spends)
}

/// The users that may speak as the agent itself.
pub(super) fn uids(reader: &mut Reader<'_>, agent: &Section<'_, '_>) -> Option<Vec<u32>> {
    let texts = reader.list(agent, "uids")?;
    let mut uids = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match text.parse() {
            Ok(uid) => uids.push(uid),
            Err(_) => {
                let message = "`uids` is a list of user numbers as texts, such as `[\"1000\"]`";
                reader.at(
                    &["agent".to_owned(), "uids".to_owned(), index.to_string()],
                    message,
                );
            }
        }
    }
    uids.sort_unstable();
    uids.dedup();
    Some(uids)
}

const DAY: u64 = 86_400_000;
