//! The table of keys, and for each what can be seen of it.

mod definition;
mod execution;
mod retention;
mod schedule;
mod world;

/// Each key of the schema with the check of its effect.
pub const CHECKS: &[(&str, fn())] = &[
    ("kind", definition::kind),
    ("name", definition::name),
    ("namespace", definition::namespace),
    ("labels", definition::labels),
    ("description", definition::description),
    ("schedule", schedule::schedule),
    ("schedule[].cron", schedule::cron),
    ("schedule[].timezone", schedule::timezone),
    ("schedule[].every", schedule::every),
    ("schedule[].anchor", schedule::anchor),
    ("schedule[].at", schedule::at),
    ("overlap", schedule::overlap),
    ("task", execution::task),
    ("task.exec", execution::argv),
    ("task.exec.argv", execution::argv),
    ("task.handler", execution::handler),
    ("task.handler.name", execution::handler),
    ("params", execution::params),
    ("weight", execution::weight),
    ("placement", execution::placement),
    ("timeout", execution::timeout),
    ("retention", retention::retention),
];
