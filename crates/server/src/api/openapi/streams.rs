//! What is said of the stream of changes, of the overview and of the figures for Prometheus.

use drumtower_core::model::{JobName, RunState};
use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::{header, instant, limit, namespace, query, repeated};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::changes::About;
use crate::api::overview::Overview;
use crate::api::page::Page;
use crate::api::rollups;
use crate::api::upcoming::Upcoming;

pub fn changes(schemas: &mut Schemas) -> Entry {
    let (job, state) = (schemas.request::<JobName>(), schemas.request::<RunState>());
    let kind = json!({"type": "string", "enum": About::words()});
    let rate = json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 200});
    let id = json!({"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{48}$"});
    let events = json!({"type": "string", "description": "Events `ready`, `run`, `runs`, `unfired`, `job`, `worker`, `calendar`, `queue`, `backfill`, `breaker`, `resync`, each with an id and a JSON object."});
    Entry::new("followChanges", Tag::System, "Follow what changes")
        .text("Server-sent events, without end. Changes of a run between two flushes come as one; above `max_rate`, `runs` has counts for each job. `resync` means that something was not told: read again what matters.")
        .takes([
            namespace(),
            repeated("job", "Runs and edits of the job of this name.", job),
            repeated("state", "Runs that are now in this state.", state),
            repeated("kind", "Changes of this kind of thing.", kind),
            query("max_rate", "How many messages a second at most.", rate),
            header("Last-Event-ID", "The last id that was got: goes on after it.", id),
        ])
        .answers_as(200, "The stream.", "text/event-stream", events)
        .streams()
        .refuses(&[Kind::TooManyStreams])
}

pub fn overview(schemas: &mut Schemas) -> Entry {
    Entry::new("showOverview", Tag::System, "What goes on")
        .text("Lines of waiting runs, counters, workers, failing jobs; what `drumtower top` shows. Made from memory, so it may be asked every second. A token that is bound to a namespace gets its own part.")
        .answers::<Overview<'static>>(schemas, 200, "What goes on.")
}

pub fn rollups(schemas: &mut Schemas) -> Entry {
    let job = schemas.request::<JobName>();
    let step = json!({"type": "string", "default": "1m", "example": "5m"});
    Entry::new("showRollups", Tag::System, "How runs ended, by time")
        .text("Sums over what is counted for each job and minute: outcomes, start delays, durations. The last hour in steps of a minute unless asked otherwise; over all jobs at most 24 hours, of one job the 30 days that are kept.")
        .takes([
            namespace(),
            query("job", "Only runs of the job of this name.", job),
            instant("since", "From this instant on, rounded down to a step."),
            instant("until", "Before this instant; now unless given."),
            query("step", "How long a step is: minutes, or a multiple.", step),
        ])
        .answers::<rollups::Answer>(schemas, 200, "A point for each step.")
        .refuses(&[Kind::NoSuchJob])
}

pub fn upcoming(schemas: &mut Schemas) -> Entry {
    Entry::new("listUpcoming", Tag::Schedules, "What fires next")
        .text("Jobs by their next due time, the soonest first. Past 10,000 jobs no more are looked at.")
        .takes([
            namespace(),
            instant("until", "Due before this instant; within a day unless given."),
            limit(),
        ])
        .answers::<Page<Upcoming>>(schemas, 200, "The soonest.")
}

pub fn metrics() -> Entry {
    let text = json!({"type": "string"});
    Entry::new("showMetrics", Tag::System, "Figures for Prometheus")
        .text("In the text form 0.0.4. A token that is bound to a namespace gets the series of its own jobs.")
        .answers_as(200, "The figures.", "text/plain", text)
}
