//! `drumtower job apply`: makes the server's jobs what the files say.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use ureq::http::{Method, StatusCode};

use super::path;
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::manifest::{self, Document};
use crate::output::{Format, Output, line};

/// Make or change jobs from YAML files
///
/// Nothing is sent before every file was understood. Applying the same file again changes
/// nothing. A file may hold several documents, separated by `---`; a directory stands for all
/// .yaml and .yml files in it; `-` is standard input.
///
///     drumtower job apply -f hello.yaml
///     drumtower job apply -f jobs/
///     drumtower job apply -f - <<'EOF'
///     kind: Job
///     name: hello
///     schedule:
///       - cron: "*/5 * * * *"
///     task:
///       exec:
///         argv: ["echo", "hello"]
///     EOF
///
/// `drumtower schema job` prints everything that a manifest may say.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Apply {
    /// A file, a directory, or `-` for standard input; may be repeated
    #[arg(short = 'f', long = "file", required = true, value_name = "FILE|DIR|-")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Apply {
    pub fn run(self) -> Result<()> {
        let documents = read(&self.files)?;
        let client = Client::new(&self.connect)?;
        let mut jobs = Vec::new();
        for document in &documents {
            let (job, change) = put(&client, document)?;
            if self.output.output == Format::Table {
                line(&format!(
                    "job {}/{} {change}",
                    document.spec.namespace, document.spec.name
                ))?;
            }
            jobs.push(job);
        }
        if self.output.output == Format::Table {
            Ok(())
        } else {
            self.output.list(jobs, &[], "")
        }
    }
}

/// All jobs of all files, or all faults.
pub fn read(files: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents: Vec<Document> = Vec::new();
    let mut faults = Vec::new();
    for source in manifest::collect(files)? {
        let (found, wrong) = manifest::parse(&source);
        if found.is_empty() && wrong.is_empty() {
            faults.push(format!("{}: there is no document in it", source.name));
        }
        faults.extend(wrong.iter().map(ToString::to_string));
        documents.extend(found);
    }
    for (index, document) in documents.iter().enumerate() {
        let same = |other: &&Document| {
            (&other.spec.namespace, &other.spec.name)
                == (&document.spec.namespace, &document.spec.name)
        };
        if let Some(first) = documents[..index].iter().find(same) {
            let (file, namespace, name) = (
                &document.file,
                &document.spec.namespace,
                &document.spec.name,
            );
            faults.push(format!(
                "{file}: job {namespace}/{name} is given twice, first in {}",
                first.file
            ));
        }
    }
    match faults.len() {
        0 => Ok(documents),
        _ => Err(Failure::usage(faults.join("\nerror: "))
            .remedy("`drumtower schema job` says what a manifest may hold")),
    }
}

/// Sends one job; says what became of it.
pub fn put(client: &Client, document: &Document) -> Result<(Value, &'static str)> {
    let spec = &document.spec;
    let path = path(&spec.namespace, spec.name.as_str());
    let before = match client.value(Call::get(&path)) {
        Ok(job) => job.get("revision").cloned(),
        Err(failure) if failure.exit == Exit::NotFound => None,
        Err(failure) => return Err(failure),
    };
    let body = serde_json::to_value(spec)
        .map_err(|error| Failure::failed(format!("{}: {error}", document.file)))?;
    let (status, job) = client.send(Call::new(Method::PUT, &path).json(body))?;
    let change = match status {
        StatusCode::CREATED => "created",
        _ if job.get("revision").cloned() == before => "unchanged",
        _ => "changed",
    };
    Ok((job, change))
}
