//! `lychgate bench`: this machine's numbers, the full durable cycle beside its raw `fdatasync` rate (issue A, "Speed").
//!
//! Everything is measured in one run, on one disk, in a throw-away state folder: so the ratios hold even where the
//! absolute numbers are of a slow or busy machine.

mod cycle;
mod histogram;
mod raw;
mod relay;
mod report;
mod rows;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use self::cycle::{Bed, Kind, Load};
pub(crate) use self::report::Report;
use crate::tour::lab::{Fault, Folder, at};

/// What to measure, and where.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// A throw-away folder is made in here: the disk that is measured.
    pub(crate) parent: PathBuf,
    /// Acts at one in flight, and pairs of raw `fdatasync`s.
    pub(crate) single: u64,
    /// Acts at 64 in flight at most.
    pub(crate) acts: u64,
    /// How long 64 in flight are measured at most.
    pub(crate) seconds: u64,
    /// Calls to a real server, directly and through `lychgate mcp`; 0 measures none.
    pub(crate) relayed: u64,
    /// Consumed rows to lie in the store already; measured beside an empty store.
    pub(crate) rows: u64,
}

impl Options {
    /// A minute's worth.
    pub(crate) fn new(parent: PathBuf) -> Self {
        Self {
            parent,
            single: 1_000,
            acts: 100_000,
            seconds: 20,
            rows: 0,
            relayed: 500,
        }
    }

    /// A million acts, to see whether memory stays flat.
    pub(crate) fn long(mut self) -> Self {
        self.acts = 1_000_000;
        self.seconds = 3_600;
        self
    }
}

/// Measures. `say` hears what is being done, for a person who waits.
///
/// # Errors
/// When the folder, the store or the gate cannot be made, or an act did not come through.
pub(crate) fn run(options: &Options, say: &dyn Fn(&str)) -> Result<Report, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(at("runtime"))?;
    runtime.block_on(measure(options, say))
}

async fn measure(options: &Options, say: &dyn Fn(&str)) -> Result<Report, Fault> {
    let folder = Folder::fresh(&options.parent, "lychgate-bench")?;
    let mut report = Report::default();
    say("raw fdatasync");
    report.pair_before = raw::pairs(folder.path(), options.single)?;

    let bed = Arc::new(Bed::make(&folder, "empty", 0).await?);
    say("one act in flight");
    bed.one_by_one(Kind::Write, options.single / 5).await?;
    report.single = bed.one_by_one(Kind::Write, options.single).await?;
    report.single_read = bed.one_by_one(Kind::Read, options.single).await?;
    report.pair_after = raw::pairs(folder.path(), options.single)?;

    say("64 acts in flight");
    let load = Load {
        kind: Kind::Write,
        acts: options.acts,
        within: Duration::from_secs(options.seconds),
        in_flight: IN_FLIGHT,
    };
    // The first seconds fill caches and statement tables; they are not counted as growth.
    bed.many(&Load {
        acts: WARM_UP,
        ..load
    })
    .await?;
    report.many = bed.many(&load).await?;
    let reads = Load {
        kind: Kind::Read,
        acts: options.acts / 4,
        ..load
    };
    report.many_read = bed.many(&reads).await?;
    drop(bed);

    if options.relayed > 0 {
        say("calls to a real server, directly and through `lychgate mcp`");
        report.relayed = Some(relay::measure(&folder, options.relayed).await?);
    }
    if options.rows > 0 {
        say("filling the store");
        let full = Arc::new(Bed::make(&folder, "full", options.rows).await?);
        say("64 acts in flight on the full store");
        full.many(&Load {
            acts: WARM_UP,
            ..load
        })
        .await?;
        report.full_many = Some(full.many(&load).await?);
        report.full_single = Some(full.one_by_one(Kind::Write, options.single).await?);
        report.rows = options.rows;
    }
    Ok(report)
}

/// The machine the aim was written for has two cores.
const WORKERS: usize = 2;
const IN_FLIGHT: usize = 64;
const WARM_UP: u64 = 5_000;
