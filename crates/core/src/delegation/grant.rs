//! What a delegation grants, and when one grant is no more than another.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Exceeds;
use crate::ConsequenceClass;
use crate::amount::Amount;
use crate::json;
use crate::name::is_name;

/// What a child may ask for at most. What is absent is as in the grant above it; at the top, as the configuration says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// `server` or `server/function`.
    pub tools: ToolSet,
    /// The classes of consequence.
    pub consequence_classes: ClassSet,
    /// Destinations by canonical name, host, or `root:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub destinations: Option<TextSet>,
    /// Purposes by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub purposes: Option<TextSet>,
    /// How many further hops there may be below the child.
    pub further_depth: u32,
    /// What the child and all below it may use up together.
    pub budget: Budget,
}

impl Grant {
    //= draft §5.9: depth, parent and permitted class travel with the worker, and none of them grows
    /// Whether this grant is in no dimension more than `above`.
    ///
    /// # Errors
    /// The first dimension in which it is.
    pub fn within(&self, above: &Self) -> Result<(), Exceeds> {
        let dimension = |holds: bool, exceeds| if holds { Ok(()) } else { Err(exceeds) };
        dimension(
            self.further_depth < above.further_depth,
            Exceeds::FurtherDepth,
        )?;
        let tools = self.tools.iter().all(|tool| above.tools.covers(tool));
        dimension(tools, Exceeds::Tools)?;
        let classes = &self.consequence_classes;
        dimension(
            classes
                .iter()
                .all(|class| above.consequence_classes.has(class)),
            Exceeds::Classes,
        )?;
        dimension(
            fits(&self.destinations, &above.destinations),
            Exceeds::Destinations,
        )?;
        dimension(fits(&self.purposes, &above.purposes), Exceeds::Purposes)?;
        self.budget.within(&above.budget)
    }
}

/// An absent set is the one above it.
fn fits(own: &Option<TextSet>, above: &Option<TextSet>) -> bool {
    match (own, above) {
        (Some(own), Some(above)) => own.iter().all(|one| above.has(one)),
        (None, _) | (_, None) => true,
    }
}

/// What may be used up. Each number counts the acts of the child and of everyone below it; an absent one does not count
/// here, and is counted all the same above.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub acts: Option<u64>,
    /// Acts of any class but INFORMATIONAL (HIGH_RISK of PROFILE §9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub high_risk_acts: Option<u64>,
    /// Acts in any stretch of time: the velocity of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "json::present")]
    pub rate: Option<Rate>,
    /// Value, by unit, sorted. Where there is a list, a unit that is not in it may not be spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "spends")]
    pub spend: Option<Vec<Spend>>,
}

/// So many acts in any stretch of so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The acts.
    pub acts: u64,
    /// The stretch.
    pub window_ms: Window,
}

/// A stretch of time: 1 s to 31 days, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Window(u64);

impl Window {
    /// In milliseconds.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }
}

impl From<Window> for u64 {
    fn from(window: Window) -> Self {
        window.0
    }
}

impl TryFrom<u64> for Window {
    type Error = &'static str;

    fn try_from(millis: u64) -> Result<Self, Self::Error> {
        if (1_000..=2_678_400_000).contains(&millis) {
            Ok(Self(millis))
        } else {
            Err("a window is from 1000 to 2678400000 ms")
        }
    }
}

/// So much of one unit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spend {
    /// The unit, e.g. `EUR`: a name.
    pub unit: Name,
    /// How much.
    pub amount: Amount,
}

/// A unit's name (see [`is_name`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if is_name(&text) {
            Ok(Self(text))
        } else {
            Err("a unit is a name of ASCII letters, digits and `_ - . /`")
        }
    }
}

fn spends<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Vec<Spend>>, D::Error> {
    let spends = Vec::<Spend>::deserialize(reader)?;
    let sorted = spends.is_sorted_by(|one, next| one.unit < next.unit);
    if sorted && spends.len() <= MOST {
        Ok(Some(spends))
    } else {
        Err(serde::de::Error::custom(NotASet))
    }
}

impl Budget {
    /// Whether nothing is counted.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// How much of a unit; `None` where value is not counted. A unit that a list leaves out is one of nothing.
    #[must_use]
    pub fn of_unit(&self, unit: &str) -> Option<Amount> {
        let spends = self.spend.as_ref()?;
        let one = spends.iter().find(|spend| spend.unit.as_str() == unit);
        Some(one.map_or(Amount::ZERO, |spend| spend.amount))
    }

    fn within(&self, above: &Self) -> Result<(), Exceeds> {
        let less = |own: Option<u64>, above: Option<u64>| match (own, above) {
            (Some(own), Some(above)) => own <= above,
            (None, _) | (_, None) => true,
        };
        if !less(self.acts, above.acts) || !less(self.high_risk_acts, above.high_risk_acts) {
            return Err(Exceeds::Acts);
        }
        if let (Some(own), Some(above)) = (self.rate, above.rate)
            && (own.acts > above.acts || own.window_ms < above.window_ms)
        {
            return Err(Exceeds::Rate);
        }
        let spends = self.spend.iter().flatten();
        let over = |spend: &Spend| {
            let most = above.of_unit(spend.unit.as_str());
            most.is_some_and(|most| spend.amount > most)
        };
        if spends.into_iter().any(over) {
            return Err(Exceeds::Spend);
        }
        Ok(())
    }
}

/// A list that is not sorted, has something twice, is empty, too long, or holds what it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a sorted list without repetition, of 1 to 256 items of the right form")]
pub struct NotASet;

macro_rules! set {
    ($(#[$doc:meta])* $name:ident of $item:ty as $list:literal where $fits:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = $list, into = $list)]
        pub struct $name(Vec<$item>);

        impl $name {
            /// The set of some items, in any order.
            ///
            /// # Errors
            /// When there are none, too many, or one is not of the right form.
            pub fn of(items: impl IntoIterator<Item = $item>) -> Result<Self, NotASet> {
                Self::try_from(items.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>())
            }

            /// The items, sorted.
            pub fn iter(&self) -> std::slice::Iter<'_, $item> {
                self.0.iter()
            }
        }

        impl TryFrom<Vec<$item>> for $name {
            type Error = NotASet;

            fn try_from(items: Vec<$item>) -> Result<Self, NotASet> {
                let fits: fn(&$item) -> bool = $fits;
                let sorted = items.is_sorted_by(|one, next| one < next);
                if (1..=MOST).contains(&items.len()) && sorted && items.iter().all(fits) {
                    Ok(Self(items))
                } else {
                    Err(NotASet)
                }
            }
        }

        impl From<$name> for Vec<$item> {
            fn from(set: $name) -> Self {
                set.0
            }
        }
    };
}

set! {
    /// Tools: `server`, or `server/function`.
    ToolSet of String as "Vec<String>" where |text| names_tool(text)
}

set! {
    /// Classes of consequence.
    ClassSet of ConsequenceClass as "Vec<ConsequenceClass>" where |_| true
}

set! {
    /// Texts of 1 to 4096 characters without control characters.
    TextSet of String as "Vec<String>" where |text| is_text(text)
}

impl ToolSet {
    /// Whether a function of a server is in it.
    #[must_use]
    pub fn permits(&self, server: &str, function: &str) -> bool {
        self.0.iter().any(|rule| match rule.split_once('/') {
            Some((one, other)) => one == server && other == function,
            None => rule == server,
        })
    }

    /// Whether everything a rule names is in it.
    #[must_use]
    pub fn covers(&self, rule: &str) -> bool {
        match rule.split_once('/') {
            Some((server, function)) => self.permits(server, function),
            None => self.0.iter().any(|own| own == rule),
        }
    }
}

impl ClassSet {
    /// Whether a class is in it.
    #[must_use]
    pub fn has(&self, class: &ConsequenceClass) -> bool {
        self.0.contains(class)
    }
}

impl TextSet {
    /// Whether a text is in it, exactly.
    #[must_use]
    pub fn has(&self, text: &str) -> bool {
        self.0.iter().any(|one| one == text)
    }
}

/// Whether a text is `server` or `server/function`.
#[must_use]
pub fn names_tool(text: &str) -> bool {
    let server = text.split_once('/').map_or(text, |(server, _)| server);
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_server = server.bytes().next().is_some_and(plain)
        && server.len() <= 64
        && server
            .bytes()
            .all(|byte| plain(byte) || matches!(byte, b'-' | b'_'));
    let function = text.get(server.len() + 1..);
    is_server && (function.is_none() && server.len() == text.len() || function.is_some_and(is_name))
}

fn is_text(text: &str) -> bool {
    !text.is_empty()
        && text.chars().take(4097).count() <= 4096
        && !text.chars().any(char::is_control)
}

/// Items in a list.
const MOST: usize = 256;
