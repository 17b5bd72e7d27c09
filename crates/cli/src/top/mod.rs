//! `drumtower top`: what goes on, live on a terminal.
//!
//! [`feed`] asks the server from a thread of its own, [`model`] turns two answers into rates and rows, [`draw`] paints
//! them, [`screen`] owns the terminal and gives it back however the command ends. A server that is lost is asked again;
//! the last figures stay, with a line that says so.

mod draw;
mod feed;
mod keys;
mod model;
mod plain;
mod screen;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;

use crate::client::Client;
use crate::connect::Connect;
use crate::duration;
use crate::failure::Result;
use crate::output::{Format, Output};

use feed::{Feed, News};
use keys::Next;
use model::Model;
use screen::Screen;

/// Watch queues, workers and rates live
///
/// Keys: q or Ctrl-C leaves, Tab goes to the next table, ↑ ↓ choose a row, Enter shows its
/// details, s sorts by the next column, / filters, p holds the picture.
///
///     drumtower top
///     drumtower top --once
///     drumtower top --once -o json
///
/// In a pipe, and with --once, it prints the figures of one second and ends.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Top {
    /// Print once and end
    #[arg(long)]
    once: bool,
    /// How long between two looks
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = duration::parse)]
    every: Duration,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// How often keys are looked for while nothing else happens.
const BEAT: Duration = Duration::from_millis(100);
/// More often would only cost the server something.
const LEAST: Duration = Duration::from_millis(200);

impl Top {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let every = self.every.max(LEAST);
        // The first answer comes before the screen changes: what is wrong is then said as by any other command.
        let mut model = Model::new(feed::overview(&client)?);
        let live = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if self.once || !live || self.output.output != Format::Table {
            std::thread::sleep(every);
            model.heard(feed::overview(&client)?);
            return self
                .output
                .one(&model.json(), |view| plain::words(&model, view));
        }
        let feed = Feed::start(client, every)?;
        let mut screen = Screen::enter()?;
        loop {
            screen.draw(|frame| draw::all(frame, &mut model))?;
            while let Some(news) = feed.news() {
                match news {
                    News::Overview(overview) => model.heard(*overview),
                    News::Lost(why) => model.lost(why),
                    News::Details(lines) => model.details(lines),
                }
            }
            match keys::read(&mut model, BEAT)? {
                Next::Stay => {}
                Next::Ask(path) => feed.ask(path),
                Next::Leave => return Ok(()),
            }
        }
    }
}
