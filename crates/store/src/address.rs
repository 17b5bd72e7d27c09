//! Where a server's state is to be kept, as a person writes it: `sqlite`, or a URL of PostgreSQL.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::{Read, Store};

/// The database of a server.
#[derive(Clone, Debug, Default)]
pub enum Address {
    /// Embedded, in the data directory.
    #[default]
    Sqlite,
    /// A server of PostgreSQL, which other servers may share.
    #[cfg(feature = "postgres")]
    Postgres(crate::postgres::Target),
}

impl fmt::Display for Address {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => f.write_str("sqlite"),
            #[cfg(feature = "postgres")]
            Self::Postgres(target) => target.fmt(f),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// What is refused is not repeated beyond its scheme: it may hold a password.
    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match scheme {
            "sqlite" if rest.is_empty() => Ok(Self::Sqlite),
            "sqlite" => Err(
                "the embedded store lies in the data directory: write `sqlite`, and give the directory with `data`"
                    .to_owned(),
            ),
            "postgres" | "postgresql" => postgres(text),
            _ if text.contains(':') => Err(format!(
                "`{scheme}:` is no kind of store: write `sqlite` or postgres://USER:PASSWORD@HOST:PORT/DATABASE"
            )),
            _ => Err(
                "that is no store: write `sqlite` or postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned(),
            ),
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(text: &str) -> Result<Address, String> {
    let target = text.parse::<crate::postgres::Target>();
    target
        .map(Address::Postgres)
        .map_err(|error| error.to_string())
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<Address, String> {
    Err(
        "this drumtower was built without PostgreSQL: build it with `--features postgres`"
            .to_owned(),
    )
}

/// What a table takes, all its partitions together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSize {
    pub name: String,
    /// As the database estimates them.
    pub rows: u64,
    /// Those that were deleted or replaced and are not removed yet.
    pub dead_rows: u64,
    /// How often the database has removed dead rows by itself.
    pub vacuums: u64,
    pub table_bytes: u64,
    pub index_bytes: u64,
}

impl TableSize {
    pub fn bytes(&self) -> u64 {
        self.table_bytes + self.index_bytes
    }
}

/// A writer and a reader of one store.
pub type Opened = (Box<dyn Store>, std::sync::Arc<dyn Read>);

impl Address {
    /// Opens the store, which lies in `data` if it is embedded.
    pub fn open(
        &self,
        data: &std::path::Path,
        embedded: crate::sqlite::Options,
    ) -> Result<Opened, Error> {
        match self {
            Self::Sqlite => {
                let (writer, reader) = crate::sqlite::open(data, embedded)?;
                Ok((Box::new(writer), std::sync::Arc::new(reader)))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(target) => {
                let options = crate::postgres::Options::default();
                let (writer, reader) = crate::postgres::open(target, options)?;
                Ok((Box::new(writer), std::sync::Arc::new(reader)))
            }
        }
    }

    /// What the tables of a shared database take, the largest first; nothing of an embedded one, which is one file.
    pub fn tables(&self) -> Result<Vec<TableSize>, Error> {
        match self {
            Self::Sqlite => Ok(Vec::new()),
            #[cfg(feature = "postgres")]
            Self::Postgres(target) => crate::postgres::tables(target),
        }
    }

    /// Whether it lies in the data directory.
    pub fn is_embedded(&self) -> bool {
        matches!(self, Self::Sqlite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_store_is_refused_without_what_it_hides() {
        let refused = |text: &str| text.parse::<Address>().expect_err("it is refused");
        assert!("sqlite".parse::<Address>().is_ok_and(|it| it.is_embedded()));
        assert!(refused("mysql://ann:geheim@db/jobs").contains("`mysql:` is no kind of store"));
        assert!(refused("sqlite:/elsewhere").contains("with `data`"));
        assert!(refused("elsewhere").contains("that is no store"));
        for hidden in ["mysql://ann:geheim@db/jobs", "postgres://ann:geheim@db"] {
            assert!(!refused(hidden).contains("geheim"));
        }
    }
}
