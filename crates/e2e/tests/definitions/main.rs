//! Definitions from the command line: made without a file, edited, applied with a plan, pruned, compared, exported; and what settings of the
//! installation add to them.

mod apply;
mod create;
mod edit;
mod history;
mod many;
mod settings;
mod world;
