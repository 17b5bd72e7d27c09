//! `drumtower job edit`: a job's manifest in the user's editor, sent back when it was changed.
//!
//! What the user typed is never lost: a text that cannot be sent is kept in a file, and the file is named.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use drumtower_core::model::{JobSpec, diff};
use serde_json::Value;
use ureq::http::Method;

use super::{Namespace, path};
use crate::apply::change_lines;
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::export;
use crate::failure::{Exit, Failure, Result};
use crate::manifest::{self, Document, Kind, Source, Spec};
use crate::output::Output;

/// Our own lines begin like this; YAML takes them for comments.
const MARK: &str = "#| ";

/// Edit a job in your editor
///
/// Opens the manifest in $VISUAL, else $EDITOR, else vi. Saving changes the job, unless someone
/// else changed it meanwhile: then your text is kept in a file and nothing is done. A fault is
/// told in the editor, which opens again. Leaving the text as it is changes nothing.
///
///     drumtower job edit report
///     EDITOR='code --wait' drumtower job edit report -n billing
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Edit {
    /// The job's name
    name: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Edit {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let path = path(&self.namespace.namespace, &self.name);
        let job = client.value(Call::get(&path))?;
        let document = export::read(&job, |spec: JobSpec| Spec::Job(Box::new(spec)))?;
        let original = document.yaml()?;
        let file = file(&self.name)?;
        let mut head = vec![
            format!(
                "{}, version {}. Save to change it; leave it as it is to change nothing.",
                document.title(),
                job["version"]
            ),
            "`drumtower schema job` says what a manifest may hold.".to_owned(),
        ];
        let mut text = original.clone();
        loop {
            let edited = opened(&file, &head, &text, &original)?;
            let read = read(&edited, &document);
            let is_same = matches!(&read, Ok(edited) if edited.spec == document.spec);
            if edited.trim().is_empty() || edited == original || is_same {
                discard(&file);
                return self
                    .output
                    .one(&job, |_| format!("{} unchanged\n", document.title()));
            }
            let fault = match read {
                Ok(spec) => match self.send(&client, &path, &job, &spec, &file)? {
                    Sent::Done => {
                        discard(&file);
                        return Ok(());
                    }
                    Sent::Refused(fault) => vec![fault],
                },
                Err(faults) => faults,
            };
            if edited == text {
                return Err(Failure::usage(fault.join("\nerror: ")).also(kept(&file)));
            }
            head = fault
                .iter()
                .map(|fault| format!("error: {fault}"))
                .collect();
            head.push(
                "Mend it and save, or leave it as it is to give up; the text is kept.".to_owned(),
            );
            text = edited;
        }
    }

    fn send(
        &self,
        client: &Client,
        path: &str,
        job: &Value,
        edited: &Document,
        file: &Path,
    ) -> Result<Sent> {
        let body = edited.body()?;
        let changed = diff(&job["spec"], &body);
        let call = Call::new(Method::PUT, path)
            .json(body)
            .header("if-match", Kind::Job.etag(job));
        match client.value(call) {
            Ok(now) => {
                self.output.one(&now, |_| {
                    format!("{} changed\n{}", edited.title(), change_lines(&changed))
                })?;
                Ok(Sent::Done)
            }
            Err(failure) if failure.code.as_deref() == Some("stale") => Err(Failure::new(
                Exit::Refused,
                format!(
                    "{} was changed by someone else meanwhile: nothing was done",
                    edited.title()
                ),
            )
            .also(kept(file))
            .remedy("run the command again and bring your changes over")),
            Err(failure) if is_about_the_text(failure.status) => {
                Ok(Sent::Refused(failure.message().to_owned()))
            }
            Err(failure) => Err(failure.also(kept(file))),
        }
    }
}

enum Sent {
    Done,
    /// The server's words; the user may mend it.
    Refused(String),
}

fn kept(file: &Path) -> String {
    format!("  your text is kept in {}", file.display())
}

/// Whether another text could get another answer; no text gives someone a right.
fn is_about_the_text(status: Option<u16>) -> bool {
    matches!(status, Some(400 | 413 | 422))
}

/// A file of its own, which only this user can read.
fn file(name: &str) -> Result<PathBuf> {
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
        .collect();
    let file = tempfile::Builder::new()
        .prefix(&format!("drumtower-{name}-"))
        .suffix(".yaml")
        .tempfile()
        .and_then(|file| file.keep().map_err(|error| error.error));
    match file {
        Ok((_, path)) => Ok(path),
        Err(error) => Err(Failure::failed(format!(
            "no file to edit can be made: {error}"
        ))),
    }
}

fn discard(file: &Path) {
    // It holds nothing that anyone misses.
    let _ = std::fs::remove_file(file);
}

/// Lets the user edit `text` below our lines; what it is afterwards, without them. A file in which nobody typed anything
/// beyond `original` is not kept when the editor fails.
fn opened(file: &Path, head: &[String], text: &str, original: &str) -> Result<String> {
    let failed = |error| Failure::file(file, &error);
    let head: String = head.iter().map(|line| format!("{MARK}{line}\n")).collect();
    let shown = format!("{head}{text}");
    std::fs::write(file, &shown).map_err(failed)?;
    let ended = run_editor(file);
    let edited = std::fs::read_to_string(file).map_err(failed)?;
    if let Err(failure) = ended {
        if edited != shown || text != original {
            return Err(failure.also(kept(file)));
        }
        discard(file);
        return Err(failure);
    }
    let ours = |line: &&str| line.starts_with(MARK.trim_end());
    let body = edited.split_inclusive('\n').skip_while(ours);
    Ok(body.collect())
}

/// The variable may hold arguments, so a shell reads it; the file is an argument and is not read by the shell.
fn run_editor(file: &Path) -> Result<()> {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.trim().is_empty())
    };
    let editor = set("VISUAL")
        .or_else(|| set("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned());
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("drumtower")
        .arg(file)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::failed(format!(
            "the editor `{editor}` ended with {status}: nothing was done"
        ))
        .remedy("set EDITOR to the editor of your choice")),
        Err(error) => Err(Failure::failed(format!(
            "the editor `{editor}` cannot be started: {error}"
        ))),
    }
}

/// The edited manifest; its faults count lines as the user sees them, below our own.
fn read(text: &str, before: &Document) -> std::result::Result<Document, Vec<String>> {
    let source = Source {
        name: "line".to_owned(),
        text: text.to_owned(),
    };
    let (mut documents, mut faults) = manifest::parse(&source);
    if faults.is_empty() {
        return match (documents.pop(), documents.len()) {
            (Some(edited), 0) if edited.title() == before.title() => Ok(edited),
            (Some(edited), 0) => Err(vec![format!(
                "this is {}: kind, namespace and name of {} cannot be changed",
                edited.title(),
                before.title()
            )]),
            _ => Err(vec!["write exactly one document".to_owned()]),
        };
    }
    let ours = faults.len() as u64 + 1;
    for fault in faults.iter_mut().filter(|fault| fault.line > 0) {
        fault.line += ours;
    }
    Err(faults.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = "kind: Job\nname: hello\ntask: {exec: {argv: [echo]}}\n";

    fn document(text: &str) -> Document {
        let source = Source {
            name: "x".into(),
            text: text.into(),
        };
        manifest::parse(&source).0.remove(0)
    }

    #[test]
    fn faults_count_the_lines_that_the_user_sees() {
        let before = document(HELLO);
        let text = HELLO.replace("name:", "nmae:");
        let told = read(&text, &before).expect_err("a fault");
        // One line tells of the fault and one says what to do: line 2 has become line 4.
        assert_eq!(told, ["line:4:1: unknown key `nmae`: did you mean `name`?"]);
    }

    #[test]
    fn an_edit_cannot_become_another_job() {
        let before = document(HELLO);
        let told = read(&HELLO.replace("hello", "other"), &before).expect_err("a fault");
        assert_eq!(
            told,
            [
                "this is job default/other: kind, namespace and name of job default/hello cannot be changed"
            ]
        );
        assert!(read(&format!("{HELLO}---\n{HELLO}"), &before).is_err());
        assert!(read(HELLO, &before).is_ok());
    }

    #[test]
    fn only_a_refusal_of_the_text_opens_the_editor_again() {
        assert!(is_about_the_text(Some(400)) && is_about_the_text(Some(422)));
        for status in [None, Some(401), Some(403), Some(404), Some(412), Some(500)] {
            assert!(!is_about_the_text(status), "{status:?}");
        }
    }
}
