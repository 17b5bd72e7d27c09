//! The first hour with Drumtower: an empty home, one command, and what the README says to type.

use std::path::{Path, PathBuf};
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

/// The commands and the manifest of the README, typed in order.
#[test]
fn what_the_readme_says_works() {
    let user = user();
    let readme = std::fs::read_to_string(repository().join("README.md")).expect("a README");
    let manifest = blocks(&readme, "yaml")
        .into_iter()
        .next()
        .expect("a first job in the README");
    std::fs::write(user.home.join("nightly-report.yaml"), manifest).expect("a file");
    let lines: Vec<String> = blocks(&readme, "sh")
        .iter()
        .flat_map(|block| block.lines().map(str::to_owned))
        .collect();
    // Server and worker run already, and a token would have to be put into the next line by hand.
    let others = ["drumtower serve", "drumtower work", "drumtower token"];
    let typed = lines.iter().filter(|line| line.starts_with("drumtower "));
    let typed: Vec<&String> = typed
        .filter(|line| !others.iter().any(|other| line.starts_with(other)))
        .collect();
    assert!(typed.len() >= 5, "{typed:?}");
    let mut run = String::new();
    for line in typed {
        let printed = user.types(&line.replace("RUN", &run));
        if line.contains("job trigger") {
            run = printed
                .split_whitespace()
                .find(|word| word.starts_with("run_"))
                .unwrap_or_default()
                .to_owned();
        }
    }
    let job = user.cli.json(&["job", "show", "nightly-report"]);
    assert_eq!(job["spec"]["schedule"][0]["timezone"], "Asia/Shanghai");
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The contents of the fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    text.split(&opening)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()))
        .collect()
}
