//! What tests of this crate and of those above it need: a conformance suite that every backend passes, the same rules a
//! second time in memory ([`MemoryStore`]), and a store that fails on request ([`FaultyStore`]).
//!
//! A backend runs the suite with one line, [`crate::conformance!`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

pub mod answers;
pub mod budgets;
pub mod escalation;
mod faulty;
pub mod heads;
pub mod lasting;
pub mod make;
mod memory;
pub mod model;
pub mod once;
mod purse;
pub mod steps;
pub mod verdicts;
mod world;

pub use faulty::{Fault, FaultyStore};
pub use memory::MemoryStore;

use crate::Store;

/// A place where one store lives: opening it again finds what the last one left.
pub trait Place {
    /// Opens the store; no other is open on this place.
    fn open(&self) -> Box<dyn Store>;
}

/// Runs every case of the suite as a test of its own; the expression makes a fresh [`testing::Place`](crate::testing::Place).
#[macro_export]
macro_rules! conformance {
    ($place:expr) => {
        $crate::conformance! { @ $place;
            once::an_authority_is_issued_and_consumed_once,
            once::sixty_four_race_for_one_authority,
            once::a_replay_is_seen_by_act_and_by_nonce,
            once::an_authority_never_issued_is_refused,
            once::an_authority_expires_even_when_the_clock_steps_back,
            once::each_epoch_and_the_digest_are_compared,
            once::another_holder_is_refused,
            once::a_nonce_must_be_the_one_issued,
            once::what_is_revoked_is_refused,
            once::a_withdrawn_act_is_never_dispatched,
            escalation::an_approval_licenses_one_act,
            escalation::eight_race_for_one_approval,
            escalation::a_waiting_call_is_dispatched_with_its_own_ticket,
            escalation::an_approval_is_for_one_subject,
            escalation::a_denial_ends_the_acts_that_wait,
            escalation::nobody_decides_twice_or_late,
            escalation::tickets_lapse_and_lose_their_display,
            escalation::a_list_of_tickets_comes_without_what_is_shown,
            escalation::the_live_tickets_of_a_subject_are_found,
            verdicts::a_ticket_takes_one_verdict_of_each_key,
            verdicts::one_no_ends_what_others_said_yes_to,
            verdicts::tickets_are_listed_in_pages,
            steps::settling_follows_the_table,
            steps::only_a_persons_verdict_is_contradicted,
            steps::a_rejected_transaction_changes_nothing,
            steps::a_lapse_is_whole_or_not_at_all,
            steps::a_rejected_transaction_leaves_its_neighbours_alone,
            steps::the_record_keeps_order_and_leaves,
            steps::a_configuration_replaces_the_one_it_was_made_from,
            steps::revoking_moves_the_epoch_and_can_be_taken_back,
            budgets::an_act_draws_on_every_account_or_on_none,
            budgets::sixty_four_race_for_one_budget,
            budgets::what_had_no_effect_is_given_back_and_nothing_else,
            budgets::no_stretch_of_time_has_more_acts_than_the_rate,
            budgets::value_is_counted_exactly,
            budgets::a_period_begins_anew,
            budgets::a_delegation_is_made_with_its_act_and_once,
            steps::a_consent_is_granted_once_and_withdrawn_once,
            steps::a_withdrawn_ticket_licenses_nothing,
            answers::a_delivered_answer_is_gone,
            answers::open_acts_are_what_equal_calls_are_held_against,
            answers::an_answer_can_be_forgotten_while_the_act_stays_open,
            answers::only_answers_that_are_kept_are_forgotten,
            answers::a_denial_says_whose_answer_was_given,
            answers::what_was_signed_is_kept,
            answers::a_group_is_signed_together_and_believed_one_by_one,
            answers::acts_are_listed_by_state_and_in_order,
            heads::every_line_is_covered_by_a_signed_head,
            heads::a_head_is_seen_after_its_commit,
            heads::every_line_and_every_growth_is_proved,
            heads::reopening_goes_on_with_the_same_tree,
            heads::pruned_lines_keep_their_proofs,
            lasting::reopening_finds_everything,
            lasting::reopening_revives_nothing,
            lasting::dropping_writes_what_is_queued,
            model::any_history_is_as_the_model_says,
        }
    };
    (@ $place:expr; $($module:ident :: $case:ident,)*) => {
        $(#[test] fn $case() { $crate::testing::$module::$case(&mut || $place); })*
    };
}
