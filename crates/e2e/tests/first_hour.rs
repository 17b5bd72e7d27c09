//! The first hour with Drumtower: an empty home and one command. What the pages say to type is tried by `pages`.

use std::path::PathBuf;
use std::process::Command;

use drumtower_e2e::{Cli, Process, Site, drumtower, eventually};
use serde_json::Value;

/// A user with an empty home and `drumtower` on the path, who has started `drumtower dev --demo`.
struct User {
    _dev: Process,
    home: PathBuf,
    cli: Cli,
    path: String,
    _site: Site,
}

fn user() -> User {
    let site = Site::new();
    let (home, bin) = (site.dir("home"), site.dir("bin"));
    std::os::unix::fs::symlink(drumtower(), bin.join("drumtower")).expect("a link");
    let cli = Cli::new(&home);
    // The port is the system's choice, since the usual one may be taken on this machine.
    let command = cli.command(&["dev", "--demo", "--listen", "127.0.0.1:0"]);
    let dev = Process::spawn(command, &site.path().join("dev.log"));
    eventually("it says what to try next", || {
        dev.log()
            .contains("Try, in another terminal:")
            .then_some(())
    });
    let path = format!("{}:/usr/bin:/bin", bin.display());
    User {
        _dev: dev,
        home,
        cli,
        path,
        _site: site,
    }
}

impl User {
    /// Types a line into a shell; what it printed.
    #[track_caller]
    fn types(&self, line: &str) -> String {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", line])
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .current_dir(&self.home);
        let output = shell.output().expect("a shell");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "`{line}`: {}\n{}",
            output.status,
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// The newest run of a job that is what the caller looks for.
    #[track_caller]
    fn run_of(&self, job: &str, found: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{job} has such a run"), || {
            let runs = self.cli.json(&["run", "list", "--job", job]);
            runs.as_array()?.iter().find(|run| found(run)).cloned()
        })
    }
}

#[test]
fn the_demo_fires_and_its_output_can_be_followed() {
    let user = user();
    let run = user.run_of("hello", |_| true);
    assert_eq!(run["origin"], "schedule", "it fires by itself");
    let id = run["id"].as_str().expect("an id");
    assert_eq!(
        user.types(&format!("drumtower run logs -f {id}")),
        format!("hello from {id}\nbye\n")
    );
    user.run_of("hello", |run| run["state"] == "COMPLETED");
    let greeted = user.types("drumtower job trigger greet --params '{\"name\": \"Ada\"}' --wait");
    assert!(greeted.contains("COMPLETED"), "{greeted}");
    let run = user.run_of("greet", |_| true);
    let logs = user.types(&format!(
        "drumtower run logs {}",
        run["id"].as_str().expect("an id")
    ));
    assert_eq!(logs, "my parameters are {\"name\":\"Ada\"}\n");
    let workers = user.cli.json(&["worker", "list"]);
    assert_eq!(workers.as_array().map(Vec::len), Some(1), "{workers}");
}
