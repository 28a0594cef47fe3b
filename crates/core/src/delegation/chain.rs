//! A chain of delegations, from the principal's own agent to whoever acts: each link no more than the one above it.

use super::{Delegation, HolderBinding};
use crate::digest::Digest;
use crate::id::DelegationId;
use crate::json::ShapeFault;
use crate::signed::leaf_of;
use crate::{ConsequenceClass, Timestamp};

/// A chain that holds together by itself. Whose signatures stand under it, whether it is in time and not revoked, is
/// another question (`lychgate_keys::chain`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    // INVARIANT: 1 to `MOST_LINKS` links, each within the one before it.
    links: Vec<Delegation>,
}

/// In which dimension a link is more than the one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeds {
    /// It does not name the link above, or the link above does not name it.
    #[error("it does not hang from the link above it")]
    Parent,
    /// Another principal.
    #[error("it speaks for another principal")]
    Principal,
    /// Its depth is not one more.
    #[error("its depth is not one more than that of the link above")]
    Depth,
    /// No further hop was granted, or more are granted on.
    #[error("it is deeper than was granted")]
    FurtherDepth,
    /// The child is an agent of the chain already, or its own parent.
    #[error("an agent cannot delegate to one above it")]
    Circle,
    /// A tool that was not granted.
    #[error("it names a tool that was not granted")]
    Tools,
    /// A class that was not granted.
    #[error("it names a consequence class that was not granted")]
    Classes,
    /// A destination that was not granted.
    #[error("it names a destination that was not granted")]
    Destinations,
    /// A purpose that was not granted.
    #[error("it names a purpose that was not granted")]
    Purposes,
    /// More acts.
    #[error("it has more acts than were granted")]
    Acts,
    /// A higher velocity.
    #[error("it has a higher rate than was granted")]
    Rate,
    /// More value, or of a unit that was not granted.
    #[error("it may spend more than was granted")]
    Spend,
    /// It lives longer, or began earlier.
    #[error("it begins before or ends after the link above it")]
    Lifetime,
    /// It was granted under another authority epoch.
    #[error("it was granted under another authority epoch")]
    Epoch,
}

/// A chain that does not hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// None, or too many.
    #[error("a chain has 1 to {MOST_LINKS} links")]
    Length,
    /// A link is more than the one above it.
    #[error("link {link}: {exceeds}")]
    Link {
        /// Which, from 1.
        link: usize,
        /// In what.
        exceeds: Exceeds,
    },
}

impl Chain {
    /// Holds links together, the first being the one the principal's own agent granted.
    ///
    /// # Errors
    /// The first link that is more than the one above it.
    pub fn new(links: Vec<Delegation>) -> Result<Self, Broken> {
        if links.is_empty() || links.len() > MOST_LINKS {
            return Err(Broken::Length);
        }
        let mut above: &[Delegation] = &[];
        for (at, link) in links.iter().enumerate() {
            let link_number = at + 1;
            let within = hangs_from(link, above).map_err(|exceeds| Broken::Link {
                link: link_number,
                exceeds,
            });
            within?;
            above = links.get(..=at).unwrap_or_default();
        }
        Ok(Self { links })
    }

    /// Every link, from the top.
    #[must_use]
    pub fn links(&self) -> &[Delegation] {
        &self.links
    }

    /// The last link: the one the holder acts under.
    ///
    #[must_use]
    pub fn last(&self) -> Option<&Delegation> {
        self.links.last()
    }

    /// Hops from the principal's own agent.
    #[must_use]
    pub fn depth(&self) -> u32 {
        u32::try_from(self.links.len()).unwrap_or(u32::MAX)
    }

    /// The agent that acts under it.
    #[must_use]
    pub fn agent(&self) -> &str {
        self.last().map_or("", |link| link.child_agent_id.as_str())
    }

    /// The agent that delegated to it.
    #[must_use]
    pub fn parent(&self) -> &str {
        self.last().map_or("", |link| link.parent_agent_id.as_str())
    }

    /// The id of the last link.
    #[must_use]
    pub fn id(&self) -> Option<DelegationId> {
        self.last().map(|link| link.delegation_id)
    }

    /// Who may come with it.
    #[must_use]
    pub fn holder(&self) -> Option<&HolderBinding> {
        self.last().map(|link| &link.holder)
    }

    /// When the first of its links runs out.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        let ends = self.links.iter().map(|link| link.expires_at);
        ends.min().unwrap_or(Timestamp::from_millis(0))
    }

    /// Whether every link grants a function.
    #[must_use]
    pub fn permits_tool(&self, server: &str, function: &str) -> bool {
        self.links
            .iter()
            .all(|link| link.grant.tools.permits(server, function))
    }

    /// Whether every link grants a class.
    #[must_use]
    pub fn permits_class(&self, class: ConsequenceClass) -> bool {
        self.links
            .iter()
            .all(|link| link.grant.consequence_classes.has(&class))
    }

    /// Whether every link grants a destination that goes by any of these names.
    #[must_use]
    pub fn permits_destination(&self, names: &[&str]) -> bool {
        let named = |link: &Delegation| match &link.grant.destinations {
            None => true,
            Some(set) => names.iter().any(|name| set.has(name)),
        };
        self.links.iter().all(named)
    }

    /// Whether every link grants a purpose.
    #[must_use]
    pub fn permits_purpose(&self, purpose: &str) -> bool {
        let named = |link: &Delegation| {
            let purposes = link.grant.purposes.as_ref();
            purposes.is_none_or(|set| set.has(purpose))
        };
        self.links.iter().all(named)
    }

    /// SHA-256 over the leaf hashes of its links, from the top: what evidence says of the chain.
    ///
    /// # Errors
    /// When a link has no canonical form.
    pub fn digest(&self) -> Result<Digest, ShapeFault> {
        let mut bytes = Vec::with_capacity(self.links.len() * 32);
        for link in &self.links {
            bytes.extend_from_slice(&leaf_of(link)?.0);
        }
        Ok(Digest::sha256(&bytes))
    }
}

/// Whether a link is within the last of those above it; the first hangs from nobody.
fn hangs_from(link: &Delegation, above: &[Delegation]) -> Result<(), Exceeds> {
    let must = |holds: bool, exceeds| if holds { Ok(()) } else { Err(exceeds) };
    must(link.parent_agent_id != link.child_agent_id, Exceeds::Circle)?;
    must(link.issued_at < link.expires_at, Exceeds::Lifetime)?;
    let Some(parent) = above.last() else {
        must(link.parent_delegation_id.is_none(), Exceeds::Parent)?;
        return must(link.delegation_depth == 1, Exceeds::Depth);
    };
    let hangs = link.parent_delegation_id == Some(parent.delegation_id)
        && link.parent_agent_id == parent.child_agent_id;
    must(hangs, Exceeds::Parent)?;
    let circle = above.iter().any(|one| {
        one.delegation_id == link.delegation_id
            || one.child_agent_id == link.child_agent_id
            || one.parent_agent_id == link.child_agent_id
    });
    must(!circle, Exceeds::Circle)?;
    must(
        link.initiating_principal == parent.initiating_principal,
        Exceeds::Principal,
    )?;
    must(
        Some(link.delegation_depth) == parent.delegation_depth.checked_add(1),
        Exceeds::Depth,
    )?;
    must(
        link.issued_at >= parent.issued_at && link.expires_at <= parent.expires_at,
        Exceeds::Lifetime,
    )?;
    must(
        link.epochs.authority_epoch == parent.epochs.authority_epoch,
        Exceeds::Epoch,
    )?;
    link.grant.within(&parent.grant)
}

/// The deepest chain.
pub const MOST_LINKS: usize = 16;
