//! What can go wrong in a store, as the driver must tell it apart.

/// Being fenced is not here: it is an expected outcome of a commit.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The commit was sent and no answer came: it may or may not have happened.
    #[error("the outcome of the commit is unknown: {0}")]
    Unknown(String),
    /// Nothing was changed; the same change set may be sent again.
    #[error("the store is busy: {0}")]
    Busy(String),
    /// Nothing was changed; there is no room.
    #[error("the store's disk is full: {0}; free some space, writing goes on by itself")]
    Full(String),
    /// A row was not as the change set expects. Nothing was changed.
    #[error("broken invariant in the store: {0}")]
    Invariant(String),
    /// The data cannot be understood.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A newer Drumtower has written here.
    #[error(
        "the store has schema version {found}, this program knows {known}: start a newer drumtower, or go back with `drumtower restore DIR/backups/before-upgrade-…`"
    )]
    Newer { found: u32, known: u32 },
    /// The backup that an upgrade begins with could not be made. Nothing was changed.
    #[error(
        "the store has schema version {found} and was not brought to {known}, because it could not be backed up first: {why} (--no-upgrade-backup does without)"
    )]
    NotUpgraded { found: u32, known: u32, why: String },
    /// Another process owns the data directory.
    #[error(
        "{0} is in use by another drumtower process: stop it, or choose another directory with --data"
    )]
    Locked(String),
    /// Anything else that input and output can do.
    #[error("{0}")]
    Io(String),
}
