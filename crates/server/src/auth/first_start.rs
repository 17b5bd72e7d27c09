//! The two tokens that make themselves, and the files they are found in.
//!
//! `bootstrap.token`: made when there is no admin for all namespaces; its row is an ordinary token. It dies, row and file,
//! when the first such admin is made. A crash between the two is mended at the next start.
//! `local.token`: drawn at every start, known only in memory, for the command line on the same machine. `server.url`
//! stands beside it. All of them are readable by the owner of the data directory alone and replaced whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use drumtower_core::engine::{Command, NewToken, Refusal};
use drumtower_core::model::{Actor, Role, TokenRow};
use drumtower_store::Read;

use super::Secret;
use crate::driver::{Handle, Unavailable};
use crate::tls::SERVER_CERTIFICATE;

pub const BOOTSTRAP_FILE: &str = "bootstrap.token";
pub const LOCAL_FILE: &str = "local.token";
pub const URL_FILE: &str = "server.url";

/// The name of the bootstrap token's row.
pub const BOOTSTRAP: &str = "bootstrap";

/// Names of parts of the system; no token made by people may carry one.
pub const RESERVED: [&str; 4] = [BOOTSTRAP, "local", "server", "schedule"];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error("no random bits from the operating system: {0}")]
    Random(#[source] io::Error),
    #[error(transparent)]
    Store(#[from] drumtower_store::Error),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("the bootstrap token could not be made: {0}")]
    Refused(Refusal),
}

/// What a start found or did about the bootstrap token.
#[derive(Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// Made by this start; print it.
    Made(Secret),
    /// Made by an earlier start; it lies in its file.
    Waiting,
    /// There is an admin, or another server that shares the store has made one.
    NotNeeded,
}

/// How long the owner of the tokens is looked for, and how often.
const OWNER_WITHIN: Duration = Duration::from_secs(15);
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Sees to it that there is a way in: an admin, or a bootstrap token in its file. Where the store is `shared`, the file may
/// be another server's.
pub async fn prepare(
    data: &Path,
    handle: &Handle,
    reader: &Arc<dyn Read>,
    shared: bool,
) -> Result<Bootstrap, Error> {
    let until = Instant::now() + OWNER_WITHIN;
    loop {
        let tokens = tokens(Arc::clone(reader)).await?;
        let nobody_may_enter = !tokens.iter().any(is_free_admin);
        match prepare_once(data, handle, tokens, shared).await? {
            // Whoever keeps the tokens was on the point of giving them to another, or to this one: see who has them next.
            None if nobody_may_enter && Instant::now() < until => {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            None => return Ok(Bootstrap::NotNeeded),
            Some(bootstrap) => return Ok(bootstrap),
        }
    }
}

/// `None` when another server keeps the tokens.
async fn prepare_once(
    data: &Path,
    handle: &Handle,
    tokens: Vec<TokenRow>,
    shared: bool,
) -> Result<Option<Bootstrap>, Error> {
    let file = data.join(BOOTSTRAP_FILE);
    let bootstrap = tokens.iter().find(|token| is_bootstrap(token));
    if tokens
        .iter()
        .any(|token| is_free_admin(token) && !is_bootstrap(token))
    {
        retire(data, handle, &tokens).await?;
        return Ok(Some(Bootstrap::NotNeeded));
    }
    if let Some(row) = bootstrap {
        let kept = fs::read_to_string(&file)
            .ok()
            .map(|text| super::digest(text.trim()));
        if kept == Some(row.hash) {
            return Ok(Some(Bootstrap::Waiting));
        }
        if shared {
            return Ok(Some(Bootstrap::NotNeeded));
        }
        revoke(handle, row).await?;
    }
    let secret = Secret::draw().map_err(Error::Random)?;
    // The file first: a secret that only the store knows would be of use to nobody.
    write_private(&file, secret.text())?;
    let token = NewToken {
        name: BOOTSTRAP.to_owned(),
        role: Role::Admin,
        namespace: None,
        hash: secret.digest(),
    };
    match handle
        .command(Actor::new("server"), Command::CreateToken { token })
        .await?
    {
        Ok(_) => Ok(Some(Bootstrap::Made(secret))),
        Err(Refusal::Elsewhere(_)) => {
            remove(&file)?;
            Ok(None)
        }
        Err(refusal) => Err(Error::Refused(refusal)),
    }
}

/// Ends the bootstrap token. To be called when an admin for all namespaces has been made.
pub async fn retire(data: &Path, handle: &Handle, tokens: &[TokenRow]) -> Result<(), Error> {
    for row in tokens.iter().filter(|token| is_bootstrap(token)) {
        revoke(handle, row).await?;
    }
    remove(&data.join(BOOTSTRAP_FILE))
}

fn remove(file: &Path) -> Result<(), Error> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::File(file.to_owned(), error))
        }
        _ => Ok(()),
    }
}

/// As [`retire`], with the rows as the store has them.
pub async fn retire_stored(
    data: &Path,
    handle: &Handle,
    reader: Arc<dyn Read>,
) -> Result<(), Error> {
    retire(data, handle, &tokens(reader).await?).await
}

async fn tokens(reader: Arc<dyn Read>) -> Result<Vec<TokenRow>, Error> {
    let read = tokio::task::spawn_blocking(move || reader.tokens()).await;
    Ok(read.map_err(|error| drumtower_store::Error::Io(error.to_string()))??)
}

async fn revoke(handle: &Handle, row: &TokenRow) -> Result<(), Error> {
    match handle
        .command(Actor::new("server"), Command::RevokeToken { id: row.id })
        .await?
    {
        Ok(_) | Err(Refusal::NoSuchToken(_) | Refusal::Elsewhere(_)) => Ok(()),
        Err(refusal) => Err(Error::Refused(refusal)),
    }
}

fn is_bootstrap(token: &TokenRow) -> bool {
    !token.revoked && token.name == BOOTSTRAP
}

/// An admin for all namespaces.
pub fn is_free_admin(token: &TokenRow) -> bool {
    !token.revoked && token.role == Role::Admin && token.namespace.is_none()
}

/// Writes what the command line on this machine needs.
pub fn announce(data: &Path, local: &Secret, url: &str) -> Result<(), Error> {
    write_private(&data.join(LOCAL_FILE), local.text())?;
    write_private(&data.join(URL_FILE), url)
}

/// Takes the announcement back when the server ends.
pub fn withdraw(data: &Path) {
    for name in [LOCAL_FILE, URL_FILE, SERVER_CERTIFICATE] {
        let _ = fs::remove_file(data.join(name));
    }
}

/// Writes one line that only the owner can read, in place of what was there.
pub(crate) fn write_private(path: &Path, line: &str) -> Result<(), Error> {
    let beside = path.with_extension(format!("{}.part", std::process::id()));
    let wrong = |error| Error::File(path.to_owned(), error);
    let _ = fs::remove_file(&beside);
    let mut file = create_private(&beside).map_err(wrong)?;
    let written = writeln!(file, "{line}")
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map_err(wrong)
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_files_are_private_and_replaced_whole() {
        let data = tempfile::tempdir().unwrap();
        let secret = Secret::draw().unwrap();
        announce(data.path(), &secret, "http://127.0.0.1:1").unwrap();
        announce(data.path(), &secret, "http://127.0.0.1:2").unwrap();
        assert_eq!(
            fs::read_to_string(data.path().join(LOCAL_FILE))
                .unwrap()
                .trim(),
            secret.text()
        );
        assert_eq!(
            fs::read_to_string(data.path().join(URL_FILE)).unwrap(),
            "http://127.0.0.1:2\n"
        );
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 2);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(data.path().join(LOCAL_FILE))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        withdraw(data.path());
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0);
    }
}
