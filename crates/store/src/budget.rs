//! Budgets: what acts draw on beside their authority, each in the transaction that consumes it.
//!
//! An account counts; the limits come with every draw, from a verified chain or the applied configuration, and are not kept.

use std::collections::BTreeMap;

use lychgate_core::Timestamp;
use lychgate_core::amount::Amount;
use lychgate_core::delegation::{Budget, Rate};
use lychgate_core::id::DelegationId;

/// Whose counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The principal's own agent's, and everyone's below it.
    Agent,
    /// One link's, and everyone's below it.
    Delegation(DelegationId),
}

impl Account {
    /// The sixteen bytes the store keeps: no delegation has the agent's.
    pub fn to_bytes(self) -> [u8; 16] {
        match self {
            Self::Agent => [0; 16],
            Self::Delegation(id) => *id.as_bytes(),
        }
    }
}

/// What one act draws on one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The account.
    pub account: Account,
    /// What may be drawn at most.
    pub limits: Budget,
    /// Milliseconds after which all but the rate begins anew; never where absent.
    pub every: Option<u64>,
    /// The act's class is any but INFORMATIONAL.
    pub high_risk: bool,
    /// What the act spends.
    pub spend: Option<(String, Amount)>,
}

/// A draw that is given back, for the act certainly had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    /// What was drawn.
    pub charge: Charge,
    /// When.
    pub drawn_at: Timestamp,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Over {
    /// Acts.
    Acts,
    /// Acts of any class but INFORMATIONAL.
    HighRisk,
    /// Acts in a stretch of time.
    Rate,
    /// Value, or value of a unit that may not be spent.
    Spend,
}

impl std::fmt::Display for Over {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Acts => "acts",
            Self::HighRisk => "high-risk acts",
            Self::Rate => "rate",
            Self::Spend => "spend",
        })
    }
}

/// What was drawn on an account so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Since when acts and value are counted.
    pub began: Timestamp,
    /// Acts.
    pub acts: u64,
    /// Of these, those of any class but INFORMATIONAL.
    pub high_risk: u64,
    /// The latest acts.
    pub recent: Recent,
    /// Value, by unit.
    pub spent: BTreeMap<String, Amount>,
}

/// How many acts there were lately: a window is cut into eight slots, and the slot at hand and eight before it are kept.
/// These nine always cover a whole window, so in no stretch of its length are there more acts than the rate says; near
/// its limit there may be an eighth fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// How long a slot is, in milliseconds.
    pub slot_ms: u64,
    /// The number of the slot at hand, counted from the epoch.
    pub slot: u64,
    /// Acts in the slot at hand, then in each before it.
    pub counts: [u32; SLOTS],
}

/// Slots kept.
pub const SLOTS: usize = 9;

impl Recent {
    fn moved_to(mut self, rate: Rate, now: Timestamp) -> Self {
        let slot_ms = rate.window_ms.millis().div_ceil(8);
        let slot = now.as_millis() / slot_ms;
        if self.slot_ms != slot_ms {
            // Another window than before: what was counted counts as of this moment, so nothing is forgotten.
            let all = self.total();
            self.counts = [0; SLOTS];
            if let Some(newest) = self.counts.first_mut() {
                *newest = u32::try_from(all).unwrap_or(u32::MAX);
            }
            (self.slot_ms, self.slot) = (slot_ms, slot);
        }
        let by = usize::try_from(slot.saturating_sub(self.slot)).unwrap_or(SLOTS);
        if by > 0 {
            self.counts.rotate_right(by.min(SLOTS));
            self.counts.iter_mut().take(by).for_each(|count| *count = 0);
            self.slot = slot;
        }
        self
    }

    fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }
}

impl Drawn {
    /// Nothing yet.
    pub fn nothing(at: Timestamp) -> Self {
        Self {
            began: at,
            acts: 0,
            high_risk: 0,
            recent: Recent::default(),
            spent: BTreeMap::new(),
        }
    }

    /// What stands after one more draw.
    ///
    /// # Errors
    /// The first limit that it would pass, in the order of [`Over`]. Whatever cannot be counted is over.
    pub fn with(&self, charge: &Charge, now: Timestamp) -> Result<Self, Over> {
        let mut next = self.clone();
        let anew = |every: u64| now.as_millis().saturating_sub(self.began.as_millis()) >= every;
        if charge.every.is_some_and(anew) {
            next = Self {
                recent: self.recent,
                ..Self::nothing(now)
            };
        }
        let limits = &charge.limits;
        next.acts = counted(next.acts, limits.acts).ok_or(Over::Acts)?;
        if charge.high_risk {
            next.high_risk =
                counted(next.high_risk, limits.high_risk_acts).ok_or(Over::HighRisk)?;
        }
        if let Some(rate) = limits.rate {
            next.recent = next.recent.moved_to(rate, now);
            if next.recent.total() >= rate.acts {
                return Err(Over::Rate);
            }
            if let Some(newest) = next.recent.counts.first_mut() {
                *newest = newest.checked_add(1).ok_or(Over::Rate)?;
            }
        }
        if let Some((unit, amount)) = &charge.spend {
            let spent = next.spent.get(unit).copied().unwrap_or_default();
            let sum = spent.plus(*amount).ok_or(Over::Spend)?;
            if limits.of_unit(unit).is_some_and(|most| sum > most) {
                return Err(Over::Spend);
            }
            next.spent.insert(unit.clone(), sum);
        }
        Ok(next)
    }

    /// What stands after a draw is given back. The call was made all the same, so the rate keeps it.
    #[must_use]
    pub fn without(&self, refund: &Refund) -> Self {
        let mut next = self.clone();
        if refund.drawn_at < self.began {
            return next;
        }
        next.acts = next.acts.saturating_sub(1);
        if refund.charge.high_risk {
            next.high_risk = next.high_risk.saturating_sub(1);
        }
        if let Some((unit, amount)) = &refund.charge.spend
            && let Some(spent) = next.spent.get_mut(unit)
        {
            *spent = spent.less(*amount);
        }
        next
    }
}

/// One more; `None` over the limit, and where counting ends.
fn counted(so_far: u64, most: Option<u64>) -> Option<u64> {
    let next = so_far.checked_add(1)?;
    let most = most.unwrap_or(i64::MAX.unsigned_abs());
    (next <= most).then_some(next)
}
