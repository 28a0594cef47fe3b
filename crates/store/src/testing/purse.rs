//! What was drawn on an account, as the model counts it: every act with its moment.

use std::collections::BTreeMap;

use lychgate_core::Timestamp;
use lychgate_core::amount::Amount;

use crate::budget::{Charge, Drawn, Over, Recent, Refund};

#[derive(Clone, Debug)]
pub(super) struct Purse {
    began: Timestamp,
    acts: u64,
    high_risk: u64,
    spent: BTreeMap<String, Amount>,
    /// When each act under a rate was.
    times: Vec<u64>,
    slot_ms: u64,
}

impl Purse {
    pub(super) fn new(at: Timestamp) -> Self {
        Self {
            began: at,
            acts: 0,
            high_risk: 0,
            spent: BTreeMap::new(),
            times: Vec::new(),
            slot_ms: 0,
        }
    }

    pub(super) fn draw(&mut self, charge: &Charge, at: Timestamp) -> Result<(), Over> {
        let age = at.as_millis() - self.began.as_millis();
        if charge.every.is_some_and(|every| age >= every) {
            (self.began, self.acts, self.high_risk) = (at, 0, 0);
            self.spent.clear();
        }
        let limits = &charge.limits;
        self.acts += 1;
        if limits.acts.is_some_and(|most| self.acts > most) {
            return Err(Over::Acts);
        }
        self.high_risk += u64::from(charge.high_risk);
        if limits
            .high_risk_acts
            .is_some_and(|most| charge.high_risk && self.high_risk > most)
        {
            return Err(Over::HighRisk);
        }
        if let Some(rate) = limits.rate {
            self.slot_ms = rate.window_ms.millis().div_ceil(8);
            let now = at.as_millis() / self.slot_ms;
            let lately = self
                .times
                .iter()
                .filter(|time| now - **time / self.slot_ms <= 8);
            if lately.count() as u64 >= rate.acts {
                return Err(Over::Rate);
            }
            self.times.push(at.as_millis());
        }
        if let Some((unit, amount)) = &charge.spend {
            let spent = self.spent.entry(unit.clone()).or_default();
            *spent = spent.plus(*amount).ok_or(Over::Spend)?;
            if limits.of_unit(unit).is_some_and(|most| *spent > most) {
                return Err(Over::Spend);
            }
        }
        Ok(())
    }

    pub(super) fn give_back(&mut self, refund: &Refund) {
        if refund.drawn_at < self.began {
            return;
        }
        self.acts = self.acts.saturating_sub(1);
        if refund.charge.high_risk {
            self.high_risk = self.high_risk.saturating_sub(1);
        }
        if let Some((unit, amount)) = &refund.charge.spend
            && let Some(spent) = self.spent.get_mut(unit)
        {
            *spent = spent.less(*amount);
        }
    }

    pub(super) fn drawn(&self) -> Drawn {
        let mut recent = Recent::default();
        if let Some(last) = self.times.last() {
            (recent.slot_ms, recent.slot) = (self.slot_ms, last / self.slot_ms);
            for time in &self.times {
                let back = (recent.slot - time / self.slot_ms) as usize;
                if let Some(count) = recent.counts.get_mut(back) {
                    *count += 1;
                }
            }
        }
        Drawn {
            began: self.began,
            acts: self.acts,
            high_risk: self.high_risk,
            recent,
            spent: self.spent.clone(),
        }
    }
}
