//! `drumtower lock`: what only one may do at a time.

mod guard;
mod run;

use std::time::Duration;

use clap::{Args, Subcommand};
use drumtower_core::model::NamespaceName;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::duration;
use crate::failure::Result;
use crate::output::{self, Cell, Column, Output, View, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(run::Run),
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    List(List),
    Show(Show),
}

/// Take a lock for a while and print its fence
///
/// Exit code 4 if another holds it. The fence is a number that grows with every hold: hand
/// it to what the lock guards, so that it can refuse a holder whose time was over. The same
/// --owner gets the same hold again.
///
///     FENCE=$(drumtower lock acquire import --owner "$HOSTNAME" --ttl 5m)
///     drumtower lock release import --fence "$FENCE"
///
/// `drumtower lock run` does all of it around a command.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Acquire {
    #[command(flatten)]
    lock: Lock,
    /// Who asks; different for each that asks
    #[arg(long)]
    owner: String,
    /// How long it is held unless renewed
    #[arg(long, value_parser = duration::parse, default_value = "30s", value_name = "DURATION")]
    ttl: Duration,
    /// How long to wait while another holds it, up to 5m
    #[arg(long, value_parser = duration::parse, default_value = "0s", value_name = "DURATION")]
    wait: Duration,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Hold a lock for another while
///
/// Exit code 4 if it is lost: stop what it guards.
///
///     drumtower lock renew import --fence "$FENCE"
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Renew {
    #[command(flatten)]
    lock: Lock,
    /// The fence that acquiring it gave
    #[arg(long)]
    fence: String,
    /// How long from now on; as before unless given
    #[arg(long, value_parser = duration::parse, value_name = "DURATION")]
    ttl: Option<Duration>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Give a lock back
///
/// With --force it is taken from whoever holds it, which the audit log tells of.
///
///     drumtower lock release import --fence "$FENCE"
///     drumtower lock release import --force
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Release {
    #[command(flatten)]
    lock: Lock,
    /// The fence that acquiring it gave
    #[arg(long, required_unless_present = "force")]
    fence: Option<String>,
    /// Whoever holds it
    #[arg(long, conflicts_with = "fence")]
    force: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// List the locks that are held, and how many wait for each
///
///     drumtower lock list
///     drumtower lock list -n billing
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Only locks of this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show who holds a lock, and how many wait for it
///
///     drumtower lock show import
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    #[command(flatten)]
    lock: Lock,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Clone, Debug)]
pub struct Lock {
    /// The lock's name
    name: String,
    /// The namespace of the lock
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
}

impl Lock {
    fn path(&self) -> String {
        let (namespace, name) = (&self.namespace, segment(&self.name));
        format!("/api/v1/namespaces/{namespace}/locks/{name}")
    }

    fn call(&self, verb: &str, body: Value) -> Call {
        Call::post(format!("{}/{verb}", self.path())).json(body)
    }
}

/// A request to acquire; the answer may take as long as the wait.
fn acquiring(lock: &Lock, owner: &str, ttl: Duration, wait: Duration) -> Call {
    let body = json!({
        "owner": owner,
        "ttl": duration::words(ttl),
        "wait": duration::words(wait),
    });
    lock.call("acquire", body).endless()
}

const COLUMNS: &[Column] = &[
    Column {
        head: "NAMESPACE",
        cell: |lock| Cell::text(lock, "namespace"),
    },
    Column {
        head: "NAME",
        cell: |lock| Cell::text(lock, "name"),
    },
    Column {
        head: "OWNER",
        cell: |lock| Cell::text(lock, "owner"),
    },
    Column {
        head: "ACQUIRED",
        cell: |lock| Cell::time(lock, "acquired"),
    },
    Column {
        head: "TTL",
        cell: |lock| Cell::Text(ttl(lock)),
    },
    Column {
        head: "WAITING",
        cell: |lock| Cell::text(lock, "waiting"),
    },
    Column {
        head: "BY",
        cell: |lock| Cell::text(lock, "actor"),
    },
    Column {
        head: "FENCE",
        cell: |lock| Cell::text(lock, "fence"),
    },
];

fn ttl(lock: &Value) -> String {
    let ms = lock["ttl_ms"].as_u64().unwrap_or(0);
    duration::words(Duration::from_millis(ms))
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Run(run) => run.run(),
        Command::Acquire(acquire) => acquire.run(),
        Command::Renew(renew) => renew.run(),
        Command::Release(release) => release.run(),
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
    }
}

fn fence(lock: &Value) -> String {
    format!("{}\n", text(lock, "fence"))
}

impl Acquire {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let call = acquiring(&self.lock, &self.owner, self.ttl, self.wait);
        let held = client.value(call)?;
        self.output.one(&held, |_| fence(&held))
    }
}

impl Renew {
    fn run(self) -> Result<()> {
        let body = json!({"fence": self.fence, "ttl": self.ttl.map(duration::words)});
        let held = Client::new(&self.connect)?.value(self.lock.call("renew", body))?;
        self.output.one(&held, |_| fence(&held))
    }
}

impl Release {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let call = match &self.fence {
            Some(fence) => self.lock.call("release", json!({"fence": fence})),
            None => Call::new(Method::DELETE, self.lock.path()),
        };
        client.value(call)?;
        let released = json!({"namespace": self.lock.namespace, "name": self.lock.name});
        let (namespace, name) = (&self.lock.namespace, &self.lock.name);
        self.output
            .one(&released, |_| format!("lock {namespace}/{name} released\n"))
    }
}

impl List {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let page = || Call::get("/api/v1/locks").maybe("namespace", self.namespace.as_ref());
        let items = client.list(page, None)?;
        self.output.list(items, COLUMNS, "no lock is held")
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let lock = Client::new(&self.connect)?.value(Call::get(self.lock.path()))?;
        self.output.one(&lock, |view| shown(&lock, view))
    }
}

fn shown(lock: &Value, view: View) -> String {
    output::pairs(&[
        ("lock", text(lock, "name")),
        ("namespace", text(lock, "namespace")),
        ("owner", text(lock, "owner")),
        ("acquired", Cell::time(lock, "acquired").words(view)),
        ("ttl", ttl(lock)),
        ("waiting", text(lock, "waiting")),
        ("by", text(lock, "actor")),
        ("fence", text(lock, "fence")),
    ])
}
