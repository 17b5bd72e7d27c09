//! `drumtower restore`: a backup in the place of a data directory.

use std::path::PathBuf;

use clap::Args;
use drumtower_server::backup::shown;
use drumtower_store::sqlite::backup::{self, Found, Restored};
use serde_json::json;

use crate::backup::show;
use crate::connect::require_data_dir;
use crate::failure::{Failure, Result};
use crate::output::{Output, Progress, exact, pairs, text};

/// Restore a backup into a data directory
///
/// The backup is checked first; the directory is filled whole or not at all. It must be empty
/// unless --replace is given, which moves what is there into a directory `replaced-…` in it.
/// Stop the server before and start it afterwards.
///
/// Times that came due since the backup count as missed: each job's `misfire` policy says
/// what becomes of them. Runs, changes and idempotency keys made since are not known any more.
///
///     drumtower restore /mnt/backups/drumtower-20261116T040000Z --data /var/lib/drumtower
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Restore {
    /// The directory that is the backup
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// The data directory to fill; ~/.local/share/drumtower unless given
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Move aside what is in the directory
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    output: Output,
}

impl Restore {
    pub fn run(self) -> Result<()> {
        let data = require_data_dir(self.data.as_deref())?;
        let absolute = |path: PathBuf| {
            std::path::absolute(&path).map_err(|error| Failure::file(&path, &error))
        };
        let (data, path) = (absolute(data)?, absolute(self.backup)?);
        let bar = Progress::new("copying", 0);
        let restored = backup::restore(&path, &data, self.replace, &mut |it| show(&bar, it))?;
        drop(bar);
        let Restored { manifest, replaced } = restored;
        let name = path.file_name().unwrap_or_default();
        let from = shown(&Found {
            name: name.to_string_lossy().into_owned(),
            path: path.clone(),
            manifest,
        });
        let value = json!({"data": data, "replaced": replaced, "backup": from});
        self.output.one(&value, |_| {
            let mut lines = vec![
                ("restored", data.display().to_string()),
                ("from", path.display().to_string()),
                ("as it was", exact(&text(&from, "created"))),
            ];
            if let Some(aside) = &replaced {
                lines.push(("moved aside", aside.display().to_string()));
            }
            lines.push((
                "start",
                format!("drumtower serve --data {}", data.display()),
            ));
            pairs(&lines)
        })
    }
}
