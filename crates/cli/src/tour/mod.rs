//! `lychgate tour`: the draft's complete transaction, then its attacks, on a real gate in a throw-away folder.
//!
//! It is a self-test as well: each step says what must happen, and the server's own log of effects is the witness.

mod client;
mod desk;
mod hand;
pub(crate) mod lab;
mod plots;
pub(crate) mod server;
mod show;
mod sink;
mod step;
mod story;

use std::path::Path;

use serde_json::json;

use self::desk::World;
use self::lab::{Fault, Folder, at};
use self::sink::Doors;
use self::step::Step;
use crate::args::Tour;
use crate::outcome::{Outcome, Stop};
use crate::terminal::Terminal;

/// Gives the tour. `keep` is a folder to leave everything in.
pub(crate) fn run(args: &Tour, keep: Option<&Path>, terminal: &mut Terminal) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Stop::fault)?;
    let mut guide = Guide {
        json: args.output.json,
        pauses: terminal.is_screen() && !args.output.json && !args.fast,
        steps: Vec::new(),
        terminal,
    };
    let kept = runtime
        .block_on(guide.lead(keep))
        .map_err(|fault| Stop::fault(fault.0))?;
    guide.end(kept.as_deref())
}

struct Guide<'a> {
    json: bool,
    pauses: bool,
    steps: Vec<Step>,
    terminal: &'a mut Terminal,
}

impl Guide<'_> {
    async fn lead(&mut self, keep: Option<&Path>) -> Result<Option<String>, Fault> {
        let parent = keep.map_or_else(std::env::temp_dir, Path::to_owned);
        let mut folder = Folder::fresh(&parent, "lychgate-tour")?;
        if keep.is_some() {
            folder.keep();
        }
        if !self.json {
            show::opening(self.terminal);
        }
        let world = World::make(&folder).await?;
        let mut doors = Doors::open(&world)?;

        self.chapter("The transaction");
        for step in doors.transaction().await? {
            self.took(step).await?;
        }
        self.chapter("Between the two doors");
        for step in doors.attacks().await? {
            self.took(step).await?;
        }
        self.chapter("What a client meets");
        let mut client = story::client(&world).await?;
        self.took(story::unresolved(&world, &mut client).await?)
            .await?;
        for step in story::escalated(&world, &mut client).await? {
            self.took(step).await?;
        }
        for step in story::lost(&world).await? {
            self.took(step).await?;
        }
        self.chapter("The person goes home");
        self.took(
            doors
                .overtaken(async || story::leave_alone(&world).await)
                .await?,
        )
        .await?;
        self.took(story::injected(&world, &mut client).await?)
            .await?;
        client.leave().await;
        Ok(keep.map(|_| folder.path().display().to_string()))
    }

    fn chapter(&mut self, title: &str) {
        if !self.json {
            show::chapter(self.terminal, title);
        }
    }

    async fn took(&mut self, step: Step) -> Result<(), Fault> {
        if !self.json {
            show::step(self.terminal, self.steps.len() + 1, &step);
            self.terminal.flush().map_err(at("standard output"))?;
            if self.pauses {
                tokio::time::sleep(show::reading_time(&step)).await;
            }
        }
        self.steps.push(step);
        Ok(())
    }

    fn end(self, kept: Option<&str>) -> Outcome {
        let holds = self.steps.iter().all(Step::holds);
        if self.json {
            let steps = self.steps.iter().map(Step::to_json).collect::<Vec<_>>();
            self.terminal
                .document(&json!({"holds": holds, "kept": kept, "steps": steps}));
        } else {
            show::ending(self.terminal, &self.steps, kept);
        }
        if holds {
            Ok(())
        } else {
            Err(Stop::refused("the tour's expectations do not hold"))
        }
    }
}
