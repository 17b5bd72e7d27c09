//! Asks the server, off the thread that draws.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{Call, Client};
use crate::failure::{Failure, Result};
use crate::output::{tame, text};

pub enum News {
    Overview(Box<Value>),
    Lost(String),
    /// Lines about a row that was asked about.
    Details(Vec<String>),
}

pub struct Feed {
    news: Receiver<News>,
    questions: Sender<Question>,
}

/// What is shown of one row.
pub enum Question {
    Job { namespace: String, name: String },
    Worker(String),
}

pub fn overview(client: &Client) -> Result<Value> {
    client.value(Call::get("/api/v1/overview"))
}

impl Feed {
    pub fn start(client: Client, every: Duration) -> Result<Self> {
        let (tell, news) = mpsc::channel();
        let (questions, asked) = mpsc::channel();
        std::thread::Builder::new()
            .name("top".to_owned())
            .spawn(move || follow(&client, every, &tell, &asked))
            .map_err(|error| Failure::failed(format!("a thread could not be started: {error}")))?;
        Ok(Self { news, questions })
    }

    pub fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    pub fn ask(&self, question: Question) {
        let _ = self.questions.send(question);
    }
}

/// Ends when nobody listens any more.
fn follow(client: &Client, every: Duration, tell: &Sender<News>, asked: &Receiver<Question>) {
    let mut next = Instant::now() + every;
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        let news = match asked.recv_timeout(wait) {
            Ok(question) => match details(client, &question) {
                Ok(lines) => News::Details(lines),
                Err(failure) => News::Details(vec![tame(failure.message())]),
            },
            Err(RecvTimeoutError::Timeout) => {
                next = Instant::now() + every;
                match overview(client) {
                    Ok(overview) => News::Overview(Box::new(overview)),
                    Err(failure) => News::Lost(tame(failure.message())),
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if tell.send(news).is_err() {
            return;
        }
    }
}

fn details(client: &Client, question: &Question) -> Result<Vec<String>> {
    match question {
        Question::Job { namespace, name } => {
            let call = Call::get("/api/v1/runs")
                .query("namespace", namespace)
                .query("job", name)
                .query("limit", 12);
            let mut lines = vec![format!("{namespace}/{name}: last runs"), String::new()];
            lines.extend(client.items(call)?.iter().map(|run| {
                format!(
                    "{} {:<9} {} {}",
                    text(run, "id"),
                    text(run, "state"),
                    text(run, "created"),
                    text(run, "error").lines().next().unwrap_or_default()
                )
            }));
            Ok(lines.iter().map(|line| tame(line)).collect())
        }
        Question::Worker(name) => {
            let path = format!("/api/v1/workers/{}", crate::client::segment(name));
            let worker = client.value(Call::get(path))?;
            let of =
                |name: &str, field: &str| format!("{name:<10} {}", tame(&text(&worker, field)));
            let mut lines = vec![
                of("worker", "name"),
                of("state", "state"),
                of("host", "host"),
                of("version", "version"),
                of("labels", "labels"),
                of("handlers", "handlers"),
                of("limits by", "limits.by"),
                String::new(),
            ];
            let running = worker.get("running").and_then(Value::as_array);
            lines.extend(running.into_iter().flatten().map(|run| {
                tame(&format!(
                    "{} {} {}",
                    text(run, "run"),
                    text(run, "state"),
                    text(run, "job")
                ))
            }));
            Ok(lines)
        }
    }
}
