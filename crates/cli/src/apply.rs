//! `drumtower job apply` and `drumtower calendar apply`: make the server's jobs and calendars what the files say.
//!
//! Both take both kinds. Calendars are sent first, whatever their place in the files: jobs name them.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use ureq::http::{Method, StatusCode};

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::manifest::{self, Document, Spec};
use crate::output::{Format, Output, line};
use crate::{calendar, job};

/// Make or change jobs and calendars from YAML files
///
/// Nothing is sent before every file was understood. Applying the same file again changes
/// nothing. A file may hold several documents, separated by `---`, of kind Job and Calendar in
/// any order: calendars are sent first. A directory stands for all .yaml and .yml files in it;
/// `-` is standard input.
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
/// `drumtower schema job` and `drumtower schema calendar` print everything that manifests may
/// say.
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
        let mut applied = Vec::new();
        for document in &documents {
            let (object, change) = put(&client, document)?;
            if self.output.output == Format::Table {
                line(&format!("{} {change}", document.title()))?;
            }
            applied.push(object);
        }
        if self.output.output == Format::Table {
            Ok(())
        } else {
            self.output.list(applied, &[], "")
        }
    }
}

/// All documents of all files with the calendars first, or all faults.
fn read(files: &[PathBuf]) -> Result<Vec<Document>> {
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
        let same = |other: &&Document| other.title() == document.title();
        if let Some(first) = documents[..index].iter().find(same) {
            faults.push(format!(
                "{}: {} is given twice, first in {}",
                document.place(),
                document.title(),
                first.place()
            ));
        }
    }
    documents.sort_by_key(|document| matches!(document.spec, Spec::Job(_)));
    match faults.len() {
        0 => Ok(documents),
        _ => Err(Failure::usage(faults.join("\nerror: ")).remedy(
            "`drumtower schema job` and `drumtower schema calendar` say what a manifest may hold",
        )),
    }
}

/// Sends one document; says what became of it.
pub fn put(client: &Client, document: &Document) -> Result<(Value, &'static str)> {
    let (path, body, counter) = match &document.spec {
        Spec::Job(spec) => (
            job::path(&spec.namespace, spec.name.as_str()),
            serde_json::to_value(spec),
            "revision",
        ),
        Spec::Calendar(spec) => (
            calendar::path(&spec.namespace, spec.name.as_str()),
            serde_json::to_value(spec),
            "version",
        ),
    };
    let before = match client.value(Call::get(&path)) {
        Ok(object) => object.get(counter).cloned(),
        Err(failure) if failure.exit == Exit::NotFound => None,
        Err(failure) => return Err(failure),
    };
    let body = body.map_err(|error| Failure::failed(format!("{}: {error}", document.place())))?;
    let sent = client.send(Call::new(Method::PUT, &path).json(body));
    let (status, object) = sent.map_err(|failure| failure.at(&document.place()))?;
    let change = match status {
        StatusCode::CREATED => "created",
        _ if object.get(counter).cloned() == before => "unchanged",
        _ => "changed",
    };
    Ok((object, change))
}
