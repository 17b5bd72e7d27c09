//! What the pages say to type works: every command block of the pages that a newcomer reads, in an empty home.
//!
//! Blocks in `sh` go in order into one shell a page. Lines after `$ ` in blocks in `console` that start a server or a
//! worker go into another terminal; other such lines go into the shell. What a command prints is not compared. Only what
//! belongs to the machine is replaced: the port and the directories of [`reader::Reader::here`].
//!
//! A comment right above a block says what is special about it:
//!
//! - `<!-- not run: REASON -->`: it needs what a test does not have. Each page says here how many those are.
//! - `<!-- file: NAME -->`: the block is saved under that name.
//! - `<!-- stopped -->`: the server is stopped before the block and started again after it.

#![cfg(target_os = "linux")]

mod page;
mod reader;

use drumtower_e2e::Site;
use page::Page;
use reader::Reader;

/// Reads a page from top to bottom and does what it says.
#[track_caller]
fn read(path: &str, left_out: usize) {
    read_beside(None, path, left_out);
}

/// As [`read`], where the page takes for granted what runs in another terminal.
#[track_caller]
fn read_beside(given: Option<&str>, path: &str, left_out: usize) {
    let page = Page::read(path);
    let site = Site::new();
    let mut reader = Reader::new(&site);
    if let Some(line) = given {
        reader.open(line, path);
    }
    let done = reader.follow(&page);
    for (line, reason) in &done.not_run {
        println!("{path}:{line}: not run: {reason}");
    }
    println!(
        "{path}: {} blocks run, {} not",
        done.run,
        done.not_run.len()
    );
    assert_eq!(done.run + done.not_run.len(), page.commands().count());
    assert_eq!(done.not_run.len(), left_out, "{:#?}", done.not_run);
}

#[test]
fn readme() {
    read("README.md", 4);
}

#[test]
fn start() {
    read("docs/start.md", 1);
}

#[test]
fn install() {
    read("docs/install.md", 6);
}

#[test]
fn operating() {
    read("docs/operating.md", 4);
}

#[test]
fn cli() {
    read_beside(Some("drumtower dev --demo"), "docs/cli.md", 0);
}

#[test]
fn locks() {
    read_beside(Some("drumtower dev"), "docs/locks.md", 0);
}

#[test]
fn workers() {
    read_beside(Some("drumtower dev"), "docs/workers.md", 4);
}

#[test]
fn jobs() {
    read_beside(Some("drumtower dev --demo"), "docs/jobs.md", 0);
}

#[test]
fn notifications() {
    read_beside(Some("drumtower dev"), "docs/notifications.md", 1);
}

#[test]
fn backfill() {
    read_beside(Some("drumtower dev"), "docs/concepts/backfill.md", 0);
}

#[test]
fn checkpoints() {
    read_beside(Some("drumtower dev"), "docs/concepts/checkpoints.md", 0);
}

#[test]
fn retries() {
    read_beside(Some("drumtower dev"), "docs/concepts/retries.md", 0);
}

#[test]
fn queues() {
    read_beside(Some("drumtower dev"), "docs/concepts/queues.md", 0);
}

#[test]
fn why() {
    read_beside(Some("drumtower dev"), "docs/concepts/why.md", 0);
}
