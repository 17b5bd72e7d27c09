//! The flags of `job create`, group by group, and the keys of the manifest that each writes.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Result};

type Keys = Map<String, Value>;

/// When it fires.
#[derive(Args, Debug)]
#[command(next_help_heading = "Schedule")]
pub struct Times {
    /// At a fixed interval, such as `250ms`, `5s` or `1h30m`
    #[arg(long, value_name = "DURATION", conflicts_with = "after_end")]
    every: Vec<String>,
    /// At the times of a cron line, such as '30 2 * * mon-fri'
    #[arg(long, value_name = "LINE", conflicts_with = "after_end")]
    cron: Vec<String>,
    /// Once, at an instant in RFC 3339, or a local time with --timezone
    #[arg(long, value_name = "INSTANT", conflicts_with = "after_end")]
    at: Vec<String>,
    /// Again this long after the end of the last scheduled run
    #[arg(long, value_name = "DURATION")]
    after_end: Option<String>,
    /// After runs of another job have ended; may be repeated
    #[arg(long, value_name = "JOB")]
    after: Vec<String>,
    /// Whether it takes a run of each --after, or runs after every run of any: all, any
    #[arg(long, value_name = "CHOICE", value_parser = ["all", "any"], hide_possible_values = true, requires = "after")]
    after_need: Option<String>,
    /// Which ends of --after count: success, failure, either
    #[arg(long, value_name = "CHOICE", value_parser = ["success", "failure", "either"], hide_possible_values = true, requires = "after")]
    after_on: Option<String>,
    /// The time zone of --cron and of a local --at, an IANA name such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// What becomes of a local time that clocks skip: shift, skip, at_transition
    #[arg(long, value_name = "CHOICE", value_parser = ["shift", "skip", "at_transition"], hide_possible_values = true)]
    dst_gap: Option<String>,
    /// Which pass of a local time that clocks show twice counts: first, last, both
    #[arg(long, value_name = "CHOICE", value_parser = ["first", "last", "both"], hide_possible_values = true)]
    dst_fold: Option<String>,
    /// Fire only on days of this calendar; may be repeated, all must agree
    #[arg(long, value_name = "CALENDAR")]
    only: Vec<String>,
    /// Do not fire on days of this calendar; may be repeated
    #[arg(long, value_name = "CALENDAR")]
    minus: Vec<String>,
    /// Where a time on an excluded day goes: none, next, previous, nearest
    #[arg(long, value_name = "CHOICE", value_parser = ["none", "next", "previous", "nearest"], hide_possible_values = true)]
    roll: Option<String>,
    /// Put each time off by a part of this duration
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// Nothing before this instant, in RFC 3339
    #[arg(long, value_name = "INSTANT")]
    start: Option<String>,
    /// Nothing from this instant on, in RFC 3339
    #[arg(long, value_name = "INSTANT")]
    end: Option<String>,
    /// End the schedule after this many runs
    #[arg(long, value_name = "N")]
    max_fires: Option<u64>,
    /// Missed times that make runs: skip, latest, all
    #[arg(long, value_name = "POLICY", value_parser = ["skip", "latest", "all"], hide_possible_values = true)]
    misfire: Option<String>,
    /// The oldest that a missed time may be and still make a run
    #[arg(long, value_name = "DURATION")]
    misfire_window: Option<String>,
}

impl Times {
    pub fn write(&self, keys: &mut Keys) {
        let mut entries = Vec::new();
        entries.extend(self.every.iter().map(|every| json!({"every": every})));
        entries.extend(
            self.cron
                .iter()
                .map(|cron| self.local(json!({"cron": cron}))),
        );
        entries.extend(self.at.iter().map(|at| self.local(json!({"at": at}))));
        entries.extend(
            self.after_end
                .iter()
                .map(|delay| json!({"after_end": delay})),
        );
        // Without an entry that takes them they are still said, so that they are refused and not lost.
        if self.cron.is_empty() && self.at.is_empty() && self.is_local() {
            match entries.first_mut() {
                Some(first) => *first = self.local(first.take()),
                None => entries.push(self.local(json!({}))),
            }
        }
        if !entries.is_empty() {
            keys.insert("schedule".to_owned(), Value::Array(entries));
        }
        group(
            keys,
            "after",
            [
                ("jobs", some(&self.after)),
                ("need", self.after_need.clone().map(Value::from)),
                ("on", self.after_on.clone().map(Value::from)),
            ],
        );
        group(
            keys,
            "calendar",
            [
                ("only", some(&self.only)),
                ("minus", some(&self.minus)),
                ("roll", self.roll.clone().map(Value::from)),
            ],
        );
        group(
            keys,
            "bounds",
            [
                ("start", self.start.clone().map(Value::from)),
                ("end", self.end.clone().map(Value::from)),
                ("max_fires", self.max_fires.map(Value::from)),
            ],
        );
        group(
            keys,
            "misfire",
            [
                ("policy", self.misfire.clone().map(Value::from)),
                ("window", self.misfire_window.clone().map(Value::from)),
            ],
        );
        text(keys, "jitter", self.jitter.as_ref());
    }

    fn is_local(&self) -> bool {
        self.timezone.is_some() || self.dst_gap.is_some() || self.dst_fold.is_some()
    }

    /// An entry with the flags that say how its local time is read.
    fn local(&self, mut entry: Value) -> Value {
        let given = [
            ("timezone", &self.timezone),
            ("dst_gap", &self.dst_gap),
            ("dst_fold", &self.dst_fold),
        ];
        for (key, value) in given {
            if let Some(value) = value {
                entry[key] = json!(value);
            }
        }
        entry
    }
}

/// What it does.
#[derive(Args, Debug)]
#[command(next_help_heading = "Task")]
pub struct Action {
    /// A function that a worker registered under this name, instead of a program
    #[arg(long, value_name = "NAME", conflicts_with_all = ["shell", "http", "command", "env", "cwd", "user", "stdin"])]
    handler: Option<String>,
    /// A line for `sh`, with pipes and variables, instead of a program
    #[arg(long, value_name = "LINE", conflicts_with_all = ["http", "command"])]
    shell: Option<String>,
    /// A request to this address, instead of a program
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "env", "cwd", "user", "stdin"])]
    http: Option<String>,
    /// The method of the request; GET unless given
    #[arg(long, value_name = "METHOD", requires = "http", ignore_case = true,
          value_parser = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], hide_possible_values = true)]
    method: Option<String>,
    /// A header of the request; may be repeated
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "http")]
    headers: Vec<String>,
    /// The body of the request; the parameters as JSON unless given
    #[arg(long, value_name = "TEXT", requires = "http")]
    body: Option<String>,
    /// A variable of the program's environment; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// The working directory on the worker; an empty one of its own unless given
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// The user to run it as; needs a worker that runs as root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Text on the program's standard input
    #[arg(long, value_name = "TEXT")]
    stdin: Option<String>,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Action {
    pub fn task(&self) -> Result<Value> {
        if let Some(name) = &self.handler {
            return Ok(json!({"handler": {"name": name}}));
        }
        if let Some(url) = &self.http {
            return self.request(url);
        }
        let mut exec = Keys::new();
        match &self.shell {
            Some(line) => exec.insert("shell".to_owned(), json!(line)),
            None if self.command.is_empty() => {
                return Err(Failure::usage(
                    "what shall it run? give a program after `--`, a line for the shell with --shell, an address with --http, or a handler with --handler",
                )
                .remedy("drumtower job create hello --every 10s -- echo hello"));
            }
            None => exec.insert("argv".to_owned(), json!(self.command)),
        };
        let env = pairs("--env", &self.env)?;
        if !env.is_empty() {
            exec.insert("env".to_owned(), Value::Object(env));
        }
        text(&mut exec, "cwd", self.cwd.as_ref());
        text(&mut exec, "user", self.user.as_ref());
        text(&mut exec, "stdin", self.stdin.as_ref());
        Ok(json!({"exec": exec}))
    }

    fn request(&self, url: &str) -> Result<Value> {
        let mut http = Keys::new();
        http.insert("url".to_owned(), json!(url));
        let headers = pairs("--header", &self.headers)?;
        if !headers.is_empty() {
            http.insert("headers".to_owned(), Value::Object(headers));
        }
        let method = self.method.as_ref().map(|method| method.to_uppercase());
        text(&mut http, "method", method.as_ref());
        text(&mut http, "body", self.body.as_ref());
        Ok(json!({"http": http}))
    }

    /// A whole line given as one word is rarely the name of a program.
    pub fn warning(&self) -> Option<String> {
        let [program] = self.command.as_slice() else {
            return None;
        };
        let shells =
            program.contains(char::is_whitespace) || program.contains(['|', '>', ';', '&']);
        shells.then(|| {
            format!("`{program}` is taken as the name of one program: if it is a line for the shell, use --shell")
        })
    }
}

/// Everything else.
#[derive(Args, Debug)]
#[command(next_help_heading = "Job")]
pub struct Traits {
    /// What the job is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A label to find it by; may be repeated
    #[arg(short, long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// A parameter, as text; may be repeated
    #[arg(
        short,
        long = "param",
        value_name = "KEY=VALUE",
        conflicts_with = "params"
    )]
    param: Vec<String>,
    /// All parameters, as JSON
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// How long an attempt may run, such as `30s` or `1h30m`; an hour unless given
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How long an attempt may go without a word of progress, such as `5m`; for ever unless given
    #[arg(long, value_name = "DURATION")]
    progress_timeout: Option<String>,
    /// How often a run that fails is tried in all, 1 for once; 3 unless given
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// When it is due while a run of it has not ended: skip, allow, queue, cancel_old, fail
    #[arg(long, value_name = "CHOICE", value_parser = ["skip", "allow", "queue", "cancel_old", "fail"], hide_possible_values = true)]
    overlap: Option<String>,
    /// Which runs go first, from 0 to 9, the most urgent; 5 unless given
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
    /// How much of a worker's capacity one run takes; 1 unless given
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// How a worker is chosen: round_robin, least_loaded
    #[arg(long, value_name = "CHOICE", value_parser = ["round_robin", "least_loaded"], hide_possible_values = true)]
    placement: Option<String>,
    /// How long finished runs are kept: 1d, 7d, 30d, keep
    #[arg(long, value_name = "CHOICE", value_parser = ["1d", "7d", "30d", "keep"], hide_possible_values = true)]
    retention: Option<String>,
}

impl Traits {
    pub fn write(&self, keys: &mut Keys) -> Result<()> {
        let labels = pairs("--label", &self.labels)?;
        if !labels.is_empty() {
            keys.insert("labels".to_owned(), Value::Object(labels));
        }
        let params = pairs("--param", &self.param)?;
        if let Some(text) = &self.params {
            let params = crate::params::parse(text)?;
            keys.insert("params".to_owned(), params);
        } else if !params.is_empty() {
            keys.insert("params".to_owned(), Value::Object(params));
        }
        text(keys, "description", self.description.as_ref());
        text(keys, "timeout", self.timeout.as_ref());
        text(keys, "progress_timeout", self.progress_timeout.as_ref());
        group(
            keys,
            "retry",
            [("max_attempts", self.max_attempts.map(Value::from))],
        );
        text(keys, "overlap", self.overlap.as_ref());
        text(keys, "placement", self.placement.as_ref());
        text(keys, "retention", self.retention.as_ref());
        for (key, number) in [("priority", self.priority), ("weight", self.weight)] {
            if let Some(number) = number {
                keys.insert(key.to_owned(), json!(number));
            }
        }
        Ok(())
    }
}

/// `KEY=VALUE` words; a key may be given once.
pub fn pairs(flag: &str, given: &[String]) -> Result<Keys> {
    let mut pairs = Keys::new();
    for pair in given {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::usage(format!(
                "{flag} `{pair}` is not of the form key=value"
            )));
        };
        if pairs.insert(key.to_owned(), json!(value)).is_some() {
            return Err(Failure::usage(format!(
                "{flag}: `{key}` is given twice: remove one"
            )));
        }
    }
    Ok(pairs)
}

fn text(keys: &mut Keys, key: &str, value: Option<&String>) {
    if let Some(value) = value {
        keys.insert(key.to_owned(), json!(value));
    }
}

/// A key with keys of its own, if any of them is given.
fn group<const N: usize>(keys: &mut Keys, key: &str, given: [(&str, Option<Value>); N]) {
    let given = given
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let given: Keys = given.collect();
    if !given.is_empty() {
        keys.insert(key.to_owned(), Value::Object(given));
    }
}

fn some(names: &[String]) -> Option<Value> {
    (!names.is_empty()).then(|| json!(names))
}
