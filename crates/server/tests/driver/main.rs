//! The driver under every answer that a store can give.

mod facts;
mod faulty;
mod outcomes;
mod sharing;
mod streams;
mod ties;
