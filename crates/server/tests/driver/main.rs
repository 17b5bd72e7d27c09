//! The driver under every answer that a store can give.

mod faulty;
mod outcomes;
mod streams;
