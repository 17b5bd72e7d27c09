//! What is in the store of a server that does not run: fires and unfired ranges, and the verdict of the audit.

use std::path::Path;

use drumtower_audit::{Options, Report};
use drumtower_core::model::{JobId, JobName, JobRecord, NamespaceName, Run, Unfired, WallMs};
use drumtower_store::sqlite::{self, Reader, Writer};
use drumtower_store::{Read, RunFilter};

const PAGE: usize = 10_000;

pub struct Books {
    reader: Reader,
    /// Keeps a server from starting meanwhile.
    _writer: Writer,
}

impl Books {
    #[track_caller]
    pub fn open(data: &Path) -> Self {
        let (writer, reader) =
            sqlite::open(data, sqlite::Options::default()).expect("a store at rest");
        Self {
            reader,
            _writer: writer,
        }
    }

    pub fn store(&self) -> &dyn Read {
        &self.reader
    }

    /// A job of the default namespace.
    #[track_caller]
    pub fn job(&self, name: &str) -> JobRecord {
        let name = JobName::new(name).expect("a name");
        let job = self.reader.job_named(&NamespaceName::default(), &name);
        job.expect("a readable store").expect("a job")
    }

    /// The runs that a job's schedule made, in the order of their nominal times.
    pub fn fires(&self, name: &str) -> Vec<Run> {
        let filter = RunFilter {
            job: Some(self.id(name)),
            ..Default::default()
        };
        let (mut runs, mut before) = (Vec::new(), None);
        loop {
            let page = self.reader.runs(&filter, before, PAGE).expect("runs");
            runs.extend(page.runs.into_iter().filter(|run| run.nominal.is_some()));
            match page.next {
                Some(next) => before = Some(next),
                None => break,
            }
        }
        runs.sort_by_key(|run| run.nominal);
        runs
    }

    /// The nominal times that made runs, as people write them.
    pub fn fired(&self, name: &str) -> Vec<String> {
        let fires = self.fires(name);
        fires
            .iter()
            .filter_map(|run| run.nominal)
            .map(text)
            .collect()
    }

    /// The ranges of times that made none, oldest first.
    pub fn unfired(&self, name: &str) -> Vec<Unfired> {
        let (from, to) = (WallMs(i64::MIN), WallMs(i64::MAX));
        self.reader
            .unfired(self.id(name), from, to, PAGE)
            .expect("ranges")
    }

    /// The same as (reason, first, last, count).
    pub fn ranges(&self, name: &str) -> Vec<(String, String, String, u64)> {
        let ranges = self.unfired(name).into_iter().map(|range| {
            let reason = serde_json::to_value(range.reason).expect("a reason");
            let reason = reason.as_str().unwrap_or_default().to_owned();
            (reason, text(range.first), text(range.last), range.count)
        });
        ranges.collect()
    }

    /// Holds the journals in a directory against the store.
    pub fn audit(&self, journals: Option<&Path>, options: &Options) -> Report {
        let files = journals.map(|dir| drumtower_audit::journal::files(dir).expect("journals"));
        drumtower_audit::check(&files.unwrap_or_default(), &self.reader, options)
            .expect("readable journals and store")
    }

    fn id(&self, name: &str) -> JobId {
        self.job(name).row.id
    }
}

/// An instant without what is zero at its end.
fn text(at: WallMs) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).expect("an instant");
    at.to_string()
}
