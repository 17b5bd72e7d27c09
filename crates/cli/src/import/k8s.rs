//! `drumtower import k8s-cronjob`: a job for each CronJob of Kubernetes.
//!
//! What a CronJob says is read key by key, and every key that is not carried over is named: an image or a volume cannot be,
//! and whoever imports must know.

mod fields;

use std::path::PathBuf;

use clap::Args;
use drumtower_core::model::Limits;
use serde_json::{Map, Value, json};

use super::jobs::{Imported, Names};
use super::{Options, name, read, times, zone};
use crate::failure::{Failure, Result};
use crate::manifest::{Places, Source, places_of, values_of};
use fields::{Refusal, either_day, flag, number, text, words};

/// Make jobs of Kubernetes CronJobs
///
/// Prints manifests, or applies them with --apply; what is not carried over, such as image and
/// volumes, is listed with its line. Commands run on a worker as they are: what was in the image
/// must be there. A suspended CronJob becomes a paused job with --apply.
///
///     drumtower import k8s-cronjob cronjob.yaml
///     kubectl get cronjobs -A -o yaml | drumtower import k8s-cronjob -
///     drumtower import k8s-cronjob cronjob.yaml --timezone Europe/Berlin --apply
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct CronJob {
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    #[command(flatten)]
    options: Options,
}

impl CronJob {
    pub fn run(self) -> Result<()> {
        let source = read(&self.file)?;
        let imported = import(&source, &self.options)?;
        self.options.finish(imported)
    }
}

fn import(source: &Source, options: &Options) -> Result<Imported> {
    let mut imported = Imported::new(&source.name);
    let mut names = Names::default();
    let places = places_of(&source.text);
    for (index, document) in values_of(source).into_iter().enumerate() {
        let document = document.map_err(|fault| Failure::usage(fault.to_string()))?;
        let mut reader = Reader {
            imported: &mut imported,
            names: &mut names,
            options,
            places: places.get(index).and_then(Option::as_ref),
            root: String::new(),
            title: String::new(),
        };
        reader.document(&document)?;
    }
    if imported.documents.is_empty() && imported.faults.is_empty() {
        imported.fault(0, "there is no CronJob in it");
    }
    Ok(imported)
}

/// Reads one document and knows where it stands.
struct Reader<'a> {
    imported: &'a mut Imported,
    names: &'a mut Names,
    options: &'a Options,
    places: Option<&'a Places>,
    /// The path of the CronJob in its document, which may be a list.
    root: String,
    title: String,
}

/// What a cluster writes down where nobody chose.
const USUAL_GRACE_SECONDS: u64 = 30;

impl Reader<'_> {
    fn document(&mut self, document: &Value) -> Result<()> {
        match document["kind"].as_str() {
            Some("CronJob") => self.cron_job(document),
            Some("List" | "CronJobList") => {
                let items = document["items"].as_array();
                for (index, item) in items.into_iter().flatten().enumerate() {
                    self.root = format!("items[{index}].");
                    self.title.clear();
                    match item["kind"].as_str() {
                        None | Some("CronJob") => self.cron_job(item)?,
                        Some(kind) => self.pass_over(kind),
                    }
                }
                Ok(())
            }
            Some(kind) => {
                self.pass_over(kind);
                Ok(())
            }
            None if document.is_null() => Ok(()),
            None => {
                self.fault(
                    "",
                    "`kind` is missing: this is no manifest of Kubernetes".to_owned(),
                );
                Ok(())
            }
        }
    }

    fn pass_over(&mut self, kind: &str) {
        self.note(
            "kind",
            format!("`{kind}` is not a CronJob and is passed over"),
        );
    }

    fn cron_job(&mut self, item: &Value) -> Result<()> {
        let Some(given) = item["metadata"]["name"].as_str() else {
            self.fault("metadata", "`name` is missing: add it".to_owned());
            return Ok(());
        };
        self.title = given.to_owned();
        let mut keys = Map::new();
        let name = name::clean(given).unwrap_or_else(|| "job".to_owned());
        let namespace = item["metadata"]["namespace"].as_str();
        let namespace = self.options.namespace_of(namespace)?;
        let name = format!("{}{name}", self.options.prefix);
        let name = self.names.unique(&namespace, &name);
        keys.insert("name".to_owned(), json!(name));
        let made = self
            .metadata(&item["metadata"], &mut keys)
            .and_then(|()| self.spec(&item["spec"], &mut keys))
            .and_then(|()| flag(&item["spec"], "spec", "suspend"));
        let paused = match made {
            Ok(paused) => paused,
            Err((field, message)) => {
                self.fault(&field, message);
                return Ok(());
            }
        };
        if paused {
            let place = match namespace.as_str() {
                "default" => String::new(),
                namespace => format!(" -n {namespace}"),
            };
            self.note("spec.suspend", match self.options.apply {
                true => "the job is paused".to_owned(),
                false => format!("a manifest cannot say it: pause the job with `drumtower job pause {name}{place}`, or import with --apply"),
            });
        }
        let line = self.line("metadata.name");
        self.imported.add(self.options, line, keys, paused)
    }

    fn metadata(
        &mut self,
        metadata: &Value,
        keys: &mut Map<String, Value>,
    ) -> std::result::Result<(), Refusal> {
        if let Some(namespace) = text(metadata, "metadata", "namespace")? {
            keys.insert("namespace".to_owned(), json!(namespace));
        }
        for (key, _) in metadata["labels"].as_object().into_iter().flatten() {
            text(&metadata["labels"], "metadata.labels", key)?;
        }
        if metadata["labels"].is_object() {
            keys.insert("labels".to_owned(), metadata["labels"].clone());
        }
        // What a cluster adds by itself is nobody's wish.
        let own = [
            "name",
            "namespace",
            "labels",
            "creationTimestamp",
            "generation",
            "resourceVersion",
            "uid",
            "managedFields",
            "selfLink",
        ];
        self.rest(metadata, "metadata", &own);
        Ok(())
    }

    fn spec(
        &mut self,
        spec: &Value,
        keys: &mut Map<String, Value>,
    ) -> std::result::Result<(), Refusal> {
        keys.insert("schedule".to_owned(), json!([self.schedule(spec)?]));
        let overlap = match text(spec, "spec", "concurrencyPolicy")? {
            None | Some("Allow") => json!("allow"),
            // What is due meanwhile is looked at again when the run has ended, the newest of it.
            Some("Forbid") => json!({"on_full": "queue", "depth": 1, "keep": "newest"}),
            Some("Replace") => json!("cancel_old"),
            Some(other) => {
                let message = format!("unknown value `{other}`: there is Allow, Forbid, Replace");
                return Err(("spec.concurrencyPolicy".to_owned(), message));
            }
        };
        keys.insert("overlap".to_owned(), overlap);
        match number(spec, "spec", "startingDeadlineSeconds")? {
            Some(seconds) => {
                let misfire = json!({"policy": "latest", "window": format!("{seconds}s")});
                keys.insert("misfire".to_owned(), misfire);
            }
            None => self.note("spec.schedule", "startingDeadlineSeconds is not given: the latest missed time makes a run if it is at most an hour old".to_owned()),
        }
        let known = [
            "schedule",
            "timeZone",
            "suspend",
            "concurrencyPolicy",
            "startingDeadlineSeconds",
            "jobTemplate",
        ];
        self.rest(spec, "spec", &known);
        self.template(&spec["jobTemplate"], keys)
    }

    fn schedule(&mut self, spec: &Value) -> std::result::Result<Value, Refusal> {
        let missing = || {
            (
                "spec".to_owned(),
                "`schedule` is missing: add it".to_owned(),
            )
        };
        let mut times = text(spec, "spec", "schedule")?.ok_or_else(missing)?.trim();
        let mut zone = text(spec, "spec", "timeZone")?.map(str::to_owned);
        for prefix in ["CRON_TZ=", "TZ="] {
            if let Some((inline, rest)) = times
                .strip_prefix(prefix)
                .and_then(|rest| rest.split_once(' '))
            {
                zone = Some(inline.to_owned());
                times = rest.trim();
            }
        }
        if let Some(every) = times.strip_prefix("@every ") {
            return Ok(json!({"every": every.trim()}));
        }
        let zone = match zone.or_else(|| self.options.timezone.clone()) {
            Some(zone) => zone,
            None => {
                self.note("spec.schedule", "timeZone is not given: times are read in UTC, in the cluster in the zone of its controller; --timezone names another".to_owned());
                "UTC".to_owned()
            }
        };
        let either = either_day(times);
        if either != times {
            self.note("spec.schedule", format!("`{times}` is written `{either}`: a stepped star restricts there, and either day counts"));
        }
        let mut when = json!({"cron": either});
        if zone::is_utc(&zone) {
            return Ok(when);
        }
        // A line that is not understood is told when the job is made of it.
        let changes = times::read(&either, &zone).unwrap_or_default();
        when["timezone"] = json!(zone);
        if changes.gap {
            when["dst_gap"] = json!("skip");
            self.note(
                "spec.schedule",
                "a time that clocks skip is left out, as there (dst_gap: skip)".to_owned(),
            );
        }
        if changes.fold {
            when["dst_fold"] = json!("both");
            self.note(
                "spec.schedule",
                "a time that clocks show twice runs twice, as there (dst_fold: both)".to_owned(),
            );
        }
        Ok(when)
    }

    /// Failures are repeated there after 10 s, 20 s and so on, up to six minutes.
    fn retry(&mut self, repeats: Option<u64>) -> Value {
        const JOB: &str = "spec.jobTemplate.spec";
        if repeats.is_none() {
            let note = "backoffLimit is not given, which means 6: a failed run is tried again six times, as there";
            self.note(JOB, note.to_owned());
        }
        let most = u64::from(Limits::ATTEMPTS);
        match repeats.unwrap_or(6) {
            0 => json!({"max_attempts": 1}),
            repeats if repeats < most => {
                json!({"max_attempts": repeats + 1, "initial": "10s", "max": "6m"})
            }
            repeats => {
                let note = format!(
                    "{repeats} is more than is possible: a failed run is tried {most} times"
                );
                self.note(&format!("{JOB}.backoffLimit"), note);
                json!({"max_attempts": most, "initial": "10s", "max": "6m"})
            }
        }
    }

    fn template(
        &mut self,
        template: &Value,
        keys: &mut Map<String, Value>,
    ) -> std::result::Result<(), Refusal> {
        const JOB: &str = "spec.jobTemplate.spec";
        const POD: &str = "spec.jobTemplate.spec.template.spec";
        let job = &template["spec"];
        let pod = &job["template"]["spec"];
        let limit = number(job, JOB, "activeDeadlineSeconds")?;
        let limit = limit.or(number(pod, POD, "activeDeadlineSeconds")?);
        let timeout = match limit {
            Some(seconds) => format!("{seconds}s"),
            None => {
                let timeout = self.options.timeout.clone();
                self.note(JOB, format!("activeDeadlineSeconds is not given: a run is stopped after {timeout}; --timeout names another"));
                timeout
            }
        };
        keys.insert("timeout".to_owned(), json!(timeout));
        let repeats = number(job, JOB, "backoffLimit")?;
        keys.insert("retry".to_owned(), self.retry(repeats));
        self.rest(
            &template["metadata"],
            "spec.jobTemplate.metadata",
            &["creationTimestamp"],
        );
        self.rest(
            job,
            JOB,
            &["activeDeadlineSeconds", "backoffLimit", "template"],
        );
        self.rest(
            &job["template"]["metadata"],
            "spec.jobTemplate.spec.template.metadata",
            &["creationTimestamp"],
        );
        let usual = [
            "containers",
            "activeDeadlineSeconds",
            "restartPolicy",
            "dnsPolicy",
            "schedulerName",
            "terminationGracePeriodSeconds",
        ];
        self.rest(pod, POD, &usual);
        if let Some(seconds) = number(pod, POD, "terminationGracePeriodSeconds")?
            && seconds != USUAL_GRACE_SECONDS
        {
            self.note(
                &format!("{POD}.terminationGracePeriodSeconds"),
                format!("terminationGracePeriodSeconds {seconds} is not carried over"),
            );
        }
        if text(pod, POD, "restartPolicy")? == Some("OnFailure") {
            self.note(
                &format!("{POD}.restartPolicy"),
                "`OnFailure` is not carried over: a failed run is not repeated".to_owned(),
            );
        }
        let containers = pod["containers"].as_array().map_or(&[][..], Vec::as_slice);
        let [container] = containers else {
            let message = format!(
                "one container makes a job, there are {}: split the CronJob, or join the commands",
                containers.len()
            );
            return Err((format!("{POD}.containers"), message));
        };
        let exec = self.container(container, &format!("{POD}.containers[0]"))?;
        keys.insert("task".to_owned(), json!({"exec": exec}));
        Ok(())
    }

    fn container(&mut self, container: &Value, path: &str) -> std::result::Result<Value, Refusal> {
        let command = words(container, path, "command")?;
        let arguments = words(container, path, "args")?;
        if command.is_empty() {
            let message = "`command` is missing: the program is named in the image, which is not read here; write it down".to_owned();
            return Err((path.to_owned(), message));
        }
        let argv = [command, arguments].concat();
        if argv
            .iter()
            .filter_map(Value::as_str)
            .any(|word| word.contains("$("))
        {
            self.note(
                &format!("{path}.command"),
                "`$(NAME)` is not filled in here: use a shell and $NAME".to_owned(),
            );
        }
        let mut exec = json!({"argv": argv});
        let mut env = Map::new();
        for (index, variable) in container["env"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let place = format!("{path}.env[{index}]");
            let Some(name) = text(variable, &place, "name")? else {
                return Err((place, "`name` is missing: add it".to_owned()));
            };
            if !variable["valueFrom"].is_null() {
                let message = format!(
                    "{name} is not carried over: its value comes from elsewhere in the cluster"
                );
                self.note(&place, message);
                continue;
            }
            let value = text(variable, &place, "value")?.unwrap_or_default();
            env.insert(name.to_owned(), json!(value));
        }
        if !env.is_empty() {
            exec["env"] = Value::Object(env);
        }
        if let Some(directory) = text(container, path, "workingDir")? {
            exec["cwd"] = json!(directory);
        }
        let own = [
            "name",
            "command",
            "args",
            "env",
            "workingDir",
            "imagePullPolicy",
            "terminationMessagePath",
            "terminationMessagePolicy",
        ];
        self.rest(container, path, &own);
        Ok(exec)
    }

    /// Names every key that is there and not known.
    fn rest(&mut self, value: &Value, path: &str, known: &[&str]) {
        let Some(keys) = value.as_object() else {
            return;
        };
        for (key, value) in keys
            .iter()
            .filter(|(key, _)| !known.contains(&key.as_str()))
        {
            let empty = value.is_null()
                || value.as_object().is_some_and(Map::is_empty)
                || value.as_array().is_some_and(Vec::is_empty);
            if empty {
                continue;
            }
            let said = match value {
                Value::String(_) | Value::Number(_) | Value::Bool(_) => format!(" {value}"),
                _ => String::new(),
            };
            let remedy = match key.as_str() {
                "image" => ": the command runs on a worker as it is; what it needs must be there",
                "volumeMounts" | "volumes" => ": the command sees the files of the worker",
                _ => "",
            };
            self.note(
                &format!("{path}.{key}"),
                format!("{key}{said} is not carried over{remedy}"),
            );
        }
    }

    fn line(&self, path: &str) -> u64 {
        let path = format!("{}{path}", self.root);
        let place = self
            .places
            .and_then(|places| places.of(path.trim_end_matches('.')));
        place.map_or(0, |(line, _)| line)
    }

    fn note(&mut self, path: &str, text: String) {
        let line = self.line(path);
        let text = match self.title.is_empty() {
            true => text,
            false => format!("{}: {text}", self.title),
        };
        self.imported.note(line, text);
    }

    fn fault(&mut self, path: &str, text: String) {
        let line = self.line(path);
        let field = path.rsplit('.').next().filter(|field| !field.is_empty());
        let text = match field {
            Some(field) => format!("{field}: {text}"),
            None => text,
        };
        let text = match self.title.is_empty() {
            true => text,
            false => format!("{}: {text}", self.title),
        };
        self.imported.fault(line, text);
    }
}

#[cfg(test)]
mod tests;
