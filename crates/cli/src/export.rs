//! `drumtower export`: jobs, calendars and queues as manifests that apply back unchanged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use drumtower_core::model::NamespaceName;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Failure, Result};
use crate::manifest::{Document, Kind, Spec};
use crate::output::{Progress, line, write};

/// Write jobs, calendars and queues as manifests
///
/// What is written applies back unchanged. Jobs come last. With --label only the jobs with that
/// label, and the calendars and queues that they use. Whether a job or a queue is paused is not
/// part of a manifest.
///
///     drumtower export > everything.yaml
///     drumtower export -n billing --dir manifests/
///     drumtower export --label team=payments | drumtower apply -f - --url http://127.0.0.1:7071
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Export {
    /// Only of this namespace; of every one that the token may see unless given
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    /// Only jobs with this label; may be repeated, all must match
    #[arg(short, long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// A directory to write a file for each into, as NAMESPACE/jobs/NAME.yaml; `-` is standard
    /// output. What else is in the directory stays.
    #[arg(short, long, value_name = "DIR|-", default_value = "-")]
    dir: PathBuf,
    #[command(flatten)]
    connect: Connect,
}

impl Export {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let documents = self.documents(&client)?;
        if self.dir.as_os_str() == "-" {
            return print(&documents);
        }
        let progress = Progress::new("writing", documents.len());
        for (index, document) in documents.iter().enumerate() {
            keep(&self.dir, document)?;
            progress.at(index + 1);
        }
        progress.clear();
        line(&format!(
            "{} manifests in {}",
            documents.len(),
            self.dir.display()
        ))
    }

    /// The calendars, the queues and then the jobs, each in the order of namespace and name.
    fn documents(&self, client: &Client) -> Result<Vec<Document>> {
        let of = |path: &str| Call::get(path).maybe("namespace", self.namespace.as_ref());
        let jobs = || {
            let labels = self.labels.iter();
            labels.fold(of("/api/v1/jobs"), |call, label| call.query("label", label))
        };
        let jobs = client.list(jobs, None)?;
        let jobs: Vec<Document> = jobs
            .iter()
            .map(|job| read(job, |spec| Spec::Job(Box::new(spec))))
            .collect::<Result<_>>()?;
        let calendars = client.list(|| of("/api/v1/calendars"), None)?;
        let calendars: Vec<Document> = calendars
            .iter()
            .map(|calendar| read(calendar, Spec::Calendar))
            .collect::<Result<_>>()?;
        let queues = client.list(|| of("/api/v1/queues"), None)?;
        let queues: Vec<Document> = queues
            .iter()
            .map(|queue| read(queue, Spec::Queue))
            .collect::<Result<_>>()?;
        let used = used(&jobs);
        let wanted = |document: &Document| {
            let (kind, namespace, name) = document.address();
            self.labels.is_empty() || used.contains(&(kind, namespace, name))
        };
        let shared = calendars.into_iter().chain(queues).filter(wanted);
        Ok(shared.chain(jobs).collect())
    }
}

/// A manifest from what the API shows.
pub fn read<T: for<'a> Deserialize<'a>>(
    object: &Value,
    spec: impl FnOnce(T) -> Spec,
) -> Result<Document> {
    let read = T::deserialize(&object["spec"]);
    let read = read.map_err(|error| {
        let name = format!("{}/{}", object["namespace"], object["name"]);
        Failure::failed(format!("{name}: the definition cannot be read: {error}"))
            .remedy("use the command line of the same version as the server's")
    })?;
    Ok(Document::made(spec(read), "the server".to_owned(), 1))
}

/// The calendars and queues that jobs name.
fn used(jobs: &[Document]) -> BTreeSet<(Kind, String, String)> {
    let mut used = BTreeSet::new();
    for document in jobs {
        if let Spec::Job(job) = &document.spec {
            let calendars = job.calendar.iter();
            let names = calendars.flat_map(|calendar| calendar.only.iter().chain(&calendar.minus));
            let namespace = job.namespace.to_string();
            let calendar = |name: &str| (Kind::Calendar, namespace.clone(), name.to_owned());
            used.extend(names.map(|name| calendar(name.as_str())));
            let queue = job.queue.as_ref();
            used.extend(queue.map(|name| (Kind::Queue, namespace.clone(), name.to_string())));
        }
    }
    used
}

/// Several documents as one stream.
pub fn print(documents: &[Document]) -> Result<()> {
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            write("---\n")?;
        }
        write(&document.yaml()?)?;
    }
    Ok(())
}

fn keep(dir: &Path, document: &Document) -> Result<()> {
    let (kind, namespace, name) = document.address();
    // A namespace may be called `..`; as a directory that would be another one.
    let namespace = match namespace.chars().all(|c| c == '.') {
        true => format!("_{namespace}"),
        false => namespace,
    };
    let dir = dir.join(namespace).join(format!("{}s", kind.noun()));
    std::fs::create_dir_all(&dir).map_err(|error| Failure::file(&dir, &error))?;
    let file = dir.join(format!("{name}.yaml"));
    std::fs::write(&file, document.yaml()?).map_err(|error| Failure::file(&file, &error))
}
