//! Entry bundles (tlog-tiles "Log entries"): each entry after its length, a big-endian u16.

/// Appends an entry to a bundle.
///
/// # Errors
/// When the entry is longer than a bundle can say. The bundle is then unchanged.
pub fn push_entry(bundle: &mut Vec<u8>, entry: &[u8]) -> Result<(), EntryTooLong> {
    let length = u16::try_from(entry.len()).map_err(|_| EntryTooLong(entry.len()))?;
    bundle.extend_from_slice(&length.to_be_bytes());
    bundle.extend_from_slice(entry);
    Ok(())
}

/// The entries of a bundle that must have exactly `width` of them and nothing else.
///
/// # Errors
/// When an entry is cut off, or there are fewer or more.
pub fn read_bundle(bundle: &[u8], width: u16) -> Result<Vec<&[u8]>, BundleFault> {
    let mut entries = Vec::with_capacity(width.into());
    let mut rest = bundle;
    while !rest.is_empty() {
        let cut = BundleFault::Cut(entries.len());
        if entries.len() == usize::from(width) {
            return Err(BundleFault::More(width));
        }
        let (length, after) = rest.split_first_chunk().ok_or(cut)?;
        let length = u16::from_be_bytes(*length);
        let (entry, after) = after.split_at_checked(length.into()).ok_or(cut)?;
        entries.push(entry);
        rest = after;
    }
    if entries.len() == usize::from(width) {
        Ok(entries)
    } else {
        Err(BundleFault::Fewer {
            width,
            found: entries.len(),
        })
    }
}

/// An entry that no bundle can hold. Whoever makes receipts must keep them shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry of {0} bytes is longer than {LONGEST_ENTRY}")]
pub struct EntryTooLong(pub usize);

/// Bytes that are no bundle of the width asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleFault {
    /// The bytes end within this entry, counted from 0.
    #[error("bundle ends within its entry {0}")]
    Cut(usize),
    /// There is more behind the last entry.
    #[error("bundle has more than {0} entries")]
    More(u16),
    /// There are too few entries.
    #[error("bundle must have {width} entries, not {found}")]
    Fewer {
        /// Entries asked for.
        width: u16,
        /// Entries found.
        found: usize,
    },
}

/// The longest entry, in bytes.
pub const LONGEST_ENTRY: usize = 0xffff;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn entries_read_back_and_nothing_else_does() {
        let entries: [&[u8]; 3] = [b"", b"one", &[7; LONGEST_ENTRY]];
        let mut bundle = Vec::new();
        for entry in entries {
            push_entry(&mut bundle, entry).unwrap();
        }
        assert_eq!(&bundle[..7], b"\0\0\0\x03one");
        assert_eq!(read_bundle(&bundle, 3).unwrap(), entries);
        assert_eq!(read_bundle(&bundle, 2), Err(BundleFault::More(2)));
        let fewer = BundleFault::Fewer { width: 4, found: 3 };
        assert_eq!(read_bundle(&bundle, 4), Err(fewer));
        assert_eq!(read_bundle(&bundle[..6], 3), Err(BundleFault::Cut(1)));
        assert_eq!(read_bundle(&bundle[..3], 3), Err(BundleFault::Cut(1)));
        let before = bundle.clone();
        let long = vec![0; LONGEST_ENTRY + 1];
        assert_eq!(
            push_entry(&mut bundle, &long),
            Err(EntryTooLong(LONGEST_ENTRY + 1))
        );
        assert_eq!(bundle, before);
    }
}
