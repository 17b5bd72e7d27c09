//! Which segments one owner must have together, because jobs of them share something.
//!
//! Limits of a queue are counted, followers are told and edits of a calendar are carried out in the memory of one server. So
//! jobs that share such a thing are tied to the segment of what all share. A job that is tied to nothing may be anywhere.

use super::{JobSpec, SegmentId, SegmentSet};

impl JobSpec {
    /// The segments that its definition ties together; none when it shares nothing.
    pub fn ties(&self) -> SegmentSet {
        let is_tied = self.queue.is_some() || self.calendar.is_some() || self.after.is_some();
        if !is_tied {
            return SegmentSet::NONE;
        }
        let namespace = self.namespace.as_str();
        let before = self.after.iter().flat_map(|after| &after.jobs);
        let mut tied: SegmentSet = before
            .map(|job| SegmentId::of(namespace, job.as_str()))
            .collect();
        tied.insert(SegmentId::HOME);
        tied.insert(SegmentId::of(namespace, self.name.as_str()));
        tied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(more: serde_json::Value) -> JobSpec {
        let mut job = serde_json::json!({
            "kind": "Job", "name": "a", "task": {"handler": {"name": "noop"}}
        });
        for (key, value) in more.as_object().expect("a map") {
            job[key] = value.clone();
        }
        serde_json::from_value(job).expect("a job")
    }

    #[test]
    fn who_shares_something_is_tied_to_the_first_segment() {
        let of = |name| SegmentId::of("default", name);
        assert_eq!(job(serde_json::json!({})).ties(), SegmentSet::NONE);
        let queued = job(serde_json::json!({"queue": "q"})).ties();
        let expected = [SegmentId::HOME, of("a")].into_iter().collect();
        assert_eq!(queued, expected);
        let follows = job(serde_json::json!({"after": {"jobs": ["b", "c"]}})).ties();
        let expected = [SegmentId::HOME, of("a"), of("b"), of("c")];
        assert_eq!(follows, expected.into_iter().collect());
    }
}
