//! What the disk itself can do: two appends of 4 KiB, each made durable, as a durable cycle must do at least.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::cycle::instant;
use super::histogram::Histogram;
use crate::tour::lab::{Fault, at};

/// Times `count` pairs of `fdatasync`.
pub(super) fn pairs(folder: &Path, count: u64) -> Result<Histogram, Fault> {
    let path = folder.join("raw");
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .map_err(at("raw file"))?;
    let page = [0x5a_u8; 4096];
    let mut times = Histogram::new();
    for _ in 0..count {
        let began = instant();
        for _ in 0..2 {
            file.write_all(&page).map_err(at("raw write"))?;
            file.sync_data().map_err(at("fdatasync"))?;
        }
        times.add(began.elapsed());
    }
    drop(file);
    std::fs::remove_file(&path).map_err(at("raw file"))?;
    Ok(times)
}
