//! `drumtower token`: who may do what.
//!
//! With `--data` and no server running there, the commands work on the store itself: the way back in when the last
//! admin's token is lost.

mod offline;

use clap::{Args, Subcommand, ValueEnum};
use drumtower_core::model::{NamespaceName, Role};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Cell, Column, Format, Output, View, say, text};
use offline::Offline;

#[derive(Debug, Subcommand)]
pub enum Command {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Make a token and print its secret, once
///
/// The first admin token without a namespace ends the bootstrap token. With --data and no
/// server running there, the token is written to the store itself.
///
///     drumtower token create ann --role admin
///     drumtower token create ci --role operator --namespace billing
///     drumtower token create agents --role worker
///     drumtower token create rescue --role admin --data /var/lib/drumtower
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Create {
    /// A name for the token, shown as the actor of what is done with it
    name: String,
    /// What it may do
    #[arg(short, long, value_enum)]
    role: Power,
    /// The one namespace it is good for; all unless given
    #[arg(short, long)]
    namespace: Option<NamespaceName>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// List tokens, without their secrets
///
///     drumtower token list
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Revoke tokens, for ever
///
///     drumtower token revoke ci
///     drumtower token revoke tok_06d4ztbp00000
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Revoke {
    /// Names or ids
    #[arg(required = true, value_name = "TOKEN")]
    tokens: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Power {
    /// Everything
    Admin,
    /// Everything but tokens
    Operator,
    /// Looking
    Viewer,
    /// Running tasks, nothing else
    Worker,
}

impl Power {
    fn role(self) -> Role {
        match self {
            Self::Admin => Role::Admin,
            Self::Operator => Role::Operator,
            Self::Viewer => Role::Viewer,
            Self::Worker => Role::Worker,
        }
    }
}

const COLUMNS: &[Column] = &[
    Column {
        head: "ID",
        cell: |token| Cell::text(token, "id"),
    },
    Column {
        head: "NAME",
        cell: |token| Cell::text(token, "name"),
    },
    Column {
        head: "ROLE",
        cell: |token| Cell::text(token, "role"),
    },
    Column {
        head: "NAMESPACE",
        cell: |token| Cell::Text(scope(token)),
    },
    Column {
        head: "CREATED",
        cell: |token| Cell::time(token, "created"),
    },
    Column {
        head: "BY",
        cell: |token| Cell::text(token, "actor"),
    },
];

fn scope(token: &Value) -> String {
    match text(token, "namespace") {
        all if all.is_empty() => "(all)".to_owned(),
        namespace => namespace,
    }
}

/// The server, or the store of a server that is stopped.
enum Door {
    Server(Client),
    Store(Box<Offline>),
}

impl Door {
    fn open(connect: &Connect) -> Result<Self> {
        if connect.url.is_none()
            && let Some(data) = &connect.data
            && let Some(offline) = Offline::open(data)?
        {
            return Ok(Self::Store(Box::new(offline)));
        }
        Client::new(connect).map(Self::Server)
    }

    fn create(&mut self, create: &Create) -> Result<Value> {
        match self {
            Self::Server(client) => {
                let mut body = json!({"name": create.name, "role": create.role.role()});
                if let Some(namespace) = &create.namespace {
                    body["namespace"] = json!(namespace);
                }
                client.value(Call::post("/api/v1/tokens").json(body))
            }
            Self::Store(store) => {
                store.create(&create.name, create.role.role(), create.namespace.clone())
            }
        }
    }

    fn list(&self) -> Result<Vec<Value>> {
        match self {
            Self::Server(client) => client.items(Call::get("/api/v1/tokens")),
            Self::Store(store) => store.list(),
        }
    }

    fn revoke(&mut self, id: &str) -> Result<()> {
        match self {
            Self::Server(client) => client
                .send(Call::new(
                    Method::DELETE,
                    format!("/api/v1/tokens/{}", segment(id)),
                ))
                .map(|_| ()),
            Self::Store(store) => store.revoke(id),
        }
    }
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Create(create) => create.run(),
        Command::List(list) => {
            let tokens = Door::open(&list.connect)?.list()?;
            list.output.list(tokens, COLUMNS, "no tokens")
        }
        Command::Revoke(revoke) => revoke.run(),
    }
}

impl Create {
    fn run(self) -> Result<()> {
        let token = Door::open(&self.connect)?.create(&self)?;
        let secret = text(&token, "secret");
        if self.output.output == Format::Table && View::of_stdout().terminal {
            say(&format!(
                "This is the token of {}. It is not shown again.",
                self.name
            ));
        }
        self.output.one(&token, |_| format!("{secret}\n"))
    }
}

impl Revoke {
    fn run(self) -> Result<()> {
        let mut door = Door::open(&self.connect)?;
        let known = door.list()?;
        for wanted in &self.tokens {
            let named = known
                .iter()
                .find(|token| text(token, "name") == *wanted || text(token, "id") == *wanted);
            let Some(token) = named else {
                let failure = Failure::new(Exit::NotFound, format!("there is no token `{wanted}`"));
                return Err(failure.remedy("drumtower token list"));
            };
            door.revoke(&text(token, "id"))?;
            self.output.one(token, |_| {
                format!("token {} revoked\n", text(token, "name"))
            })?;
        }
        Ok(())
    }
}
