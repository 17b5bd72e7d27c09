//! A server and a user at its command line.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use drumtower_e2e::{Cli, Server, Site};
use serde_json::Value;

pub struct World {
    pub site: Site,
    pub server: Server,
    pub cli: Cli,
}

pub fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    World { site, server, cli }
}

impl World {
    /// A user whose editor is this shell script; the file is `$1`.
    pub fn editing(&self, script: &str) -> Cli {
        let file = self
            .site
            .file("editor.sh", &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a script");
        self.cli.clone().env("EDITOR", file.display().to_string())
    }

    #[track_caller]
    pub fn create(&self, arguments: &[&str]) -> String {
        self.cli.ok(&[&["job", "create"], arguments].concat())
    }

    pub fn spec(&self, name: &str) -> Value {
        self.cli.json(&["job", "show", name])["spec"].clone()
    }

    pub fn revision(&self, name: &str) -> Value {
        self.cli.json(&["job", "show", name])["revision"].clone()
    }
}

pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
