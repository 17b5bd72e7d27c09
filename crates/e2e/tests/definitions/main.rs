//! Definitions from the command line: made without a file, edited, applied with a plan, pruned, compared, exported.

mod apply;
mod create;
mod edit;
mod history;
mod many;
mod world;
