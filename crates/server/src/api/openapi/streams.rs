//! What is said of the stream of changes, of the overview and of the figures for Prometheus.

use drumtower_core::model::{JobName, RunState};
use serde_json::json;

use super::entry::{Entry, Tag};
use super::parameters::{header, namespace, query, repeated};
use super::schemas::Schemas;
use crate::api::Kind;
use crate::api::overview::Overview;

pub fn changes(schemas: &mut Schemas) -> Entry {
    let (job, state) = (schemas.request::<JobName>(), schemas.request::<RunState>());
    let kind = json!({"type": "string", "enum": ["run", "job", "worker", "calendar"]});
    let rate = json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 200});
    let id = json!({"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{48}$"});
    let events = json!({"type": "string", "description": "Events `ready`, `run`, `runs`, `unfired`, `job`, `worker`, `calendar`, `resync`, each with an id and a JSON object."});
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

pub fn metrics() -> Entry {
    let text = json!({"type": "string"});
    Entry::new("showMetrics", Tag::System, "Figures for Prometheus")
        .text("In the text form 0.0.4. A token that is bound to a namespace gets the series of its own jobs.")
        .answers_as(200, "The figures.", "text/plain", text)
}
