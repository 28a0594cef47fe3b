//! Who stands behind a chain of delegations: the PED's key under each of its links. Pure; nothing is asked of any gate.

use lychgate_core::Timestamp;
use lychgate_core::delegation::{Chain, Delegation};

use crate::{Invalid, Role, TrustBundle};

/// A link that is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("link {link}: {why}")]
pub struct NotBelieved {
    /// Which, from 1.
    pub link: usize,
    /// Why not.
    #[source]
    pub why: Unbelieved,
}

/// Why a link is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unbelieved {
    /// Its signature.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Its time has not come.
    #[error("it begins at {0}")]
    NotYet(Timestamp),
    /// Its time is over.
    #[error("it ended at {0}")]
    Over(Timestamp),
}

/// Whether every link was signed by a PED key that was good at the link's own time, and is in time at `at`.
///
/// # Errors
/// The first link, from the top, that is not.
pub fn verify_chain_at(
    bundle: &TrustBundle,
    chain: &Chain,
    at: Timestamp,
) -> Result<(), NotBelieved> {
    each(chain, |link| {
        bundle.verify_at(Role::Ped, link, link.issued_at)?;
        in_time(link, at)
    })
}

/// Whether every link is signed by the PED key of this moment, and is in time: for who lets somebody act on it.
///
/// # Errors
/// The first link, from the top, that is not.
pub fn verify_chain_live(
    bundle: &TrustBundle,
    chain: &Chain,
    now: Timestamp,
) -> Result<(), NotBelieved> {
    each(chain, |link| {
        bundle.verify_live(Role::Ped, link, now)?;
        in_time(link, now)
    })
}

fn in_time(link: &Delegation, at: Timestamp) -> Result<(), Unbelieved> {
    if at < link.issued_at {
        return Err(Unbelieved::NotYet(link.issued_at));
    }
    if at >= link.expires_at {
        return Err(Unbelieved::Over(link.expires_at));
    }
    Ok(())
}

fn each(
    chain: &Chain,
    check: impl Fn(&Delegation) -> Result<(), Unbelieved>,
) -> Result<(), NotBelieved> {
    let links = chain.links().iter().enumerate();
    for (at, link) in links {
        check(link).map_err(|why| NotBelieved { link: at + 1, why })?;
    }
    Ok(())
}
