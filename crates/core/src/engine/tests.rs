//! The engine by itself: steps in, batches out.
