//! The table of keys, and for each what can be seen of it.

mod days;
mod definition;
mod execution;
mod missed;
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
    ("schedule[].after_end", schedule::after_end),
    ("schedule[].day_rule", days::day_rule),
    ("schedule[].dst_gap", days::dst_gap),
    ("schedule[].dst_fold", days::dst_fold),
    ("calendar", days::only),
    ("calendar.only", days::only),
    ("calendar.minus", days::minus),
    ("calendar.roll", days::roll),
    ("jitter", schedule::jitter),
    ("bounds", days::bounds),
    ("bounds.start", days::bounds),
    ("bounds.end", days::bounds),
    ("bounds.max_fires", schedule::max_fires),
    ("misfire", missed::policy),
    ("misfire.policy", missed::policy),
    ("misfire.window", missed::window),
    ("misfire.max", missed::max),
    ("misfire.gap", missed::gap),
    ("on_resume", missed::on_resume),
    ("on_resume.policy", missed::on_resume),
    ("on_resume.window", missed::on_resume_window),
    ("on_resume.max", missed::on_resume_max),
    ("on_resume.gap", missed::on_resume_gap),
    ("overlap", schedule::overlap),
    ("task", execution::task),
    ("task.exec", execution::argv),
    ("task.exec.argv", execution::argv),
    ("task.handler", execution::handler),
    ("task.handler.name", execution::handler),
    ("params", execution::params),
    ("priority", execution::priority),
    ("weight", execution::weight),
    ("placement", execution::placement),
    ("timeout", execution::timeout),
    ("retention", retention::retention),
];
