//! A server by a clock that is set while it is down, and jobs that nobody runs.

use drumtower_audit::{Journaled, Options};
use drumtower_core::model::WallMs;
use drumtower_e2e::{Api, Books, Cli, Clock, Server, Site, eventually, shell};
use serde_json::{Value, json};
use ureq::http::Method;

pub struct World {
    pub server: Server,
    pub clock: Clock,
    site: Site,
}

/// `None` where no clock can be set.
pub fn world(instant: &str) -> Option<World> {
    let site = Site::new();
    let clock = Clock::at(&site, instant)?;
    let server = Server::start_by(&site, &clock);
    Some(World {
        server,
        clock,
        site,
    })
}

impl World {
    pub fn api(&self) -> Api {
        self.server.api()
    }

    /// Makes a job that nobody runs, so that all there is to see is what its schedule did.
    #[track_caller]
    pub fn job(&self, name: &str, keys: Value) {
        let mut job = shell(name, "true");
        job["overlap"] = json!("allow");
        let keys = keys.as_object().expect("keys").clone();
        job.as_object_mut().expect("a job").extend(keys);
        self.api().put_job(&job);
    }

    pub fn calendar(&self, name: &str, keys: Value) {
        let mut calendar = json!({"kind": "Calendar", "name": name});
        let keys = keys.as_object().expect("keys").clone();
        calendar.as_object_mut().expect("a calendar").extend(keys);
        let path = format!("/api/v1/namespaces/default/calendars/{name}");
        self.api().send(Method::PUT, &path, Some(&calendar));
    }

    pub fn ask(&self, job: &str, deed: &str) {
        let path = format!("/api/v1/namespaces/default/jobs/{job}/{deed}");
        self.api().send(Method::POST, &path, None);
    }

    /// Stops the server and starts it again at another time.
    pub fn away_until(&mut self, instant: &str) {
        assert!(
            self.server.stop().success(),
            "{}",
            self.server.process().log()
        );
        self.clock.set(instant);
        self.server.restart();
    }

    /// Waits until a job is past a time.
    pub fn await_through(&self, job: &str, instant: &str) {
        let api = self.api();
        eventually(&format!("{job} is past {instant}"), || {
            let through = api.job(job)["fired_through"].as_str()?.to_owned();
            (through.as_str() >= instant).then_some(())
        });
    }

    pub fn await_fires(&self, job: &str, count: u64) {
        let api = self.api();
        eventually(&format!("{job} has fired {count} times"), || {
            (api.job(job)["fires"].as_u64()? >= count).then_some(())
        });
    }

    pub fn next(&self, job: &str) -> Value {
        self.api().job(job)["next_nominal"].clone()
    }

    /// What became of a job's times in an interval, as a user asks for it: (fate, reason, count).
    pub fn explained(&self, job: &str, from: &str, to: &str) -> Vec<(String, String, u64)> {
        let place = self.server.data().display().to_string();
        let cli = Cli::new(self.site.dir("home")).env("DRUMTOWER_DATA", place);
        let answer = cli.json(&["job", "explain", job, "--from", from, "--to", to]);
        let rows = answer["rows"].as_array().expect("rows").clone();
        let word = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let row = |row: &Value| {
            (
                word(row, "fate"),
                word(row, "reason"),
                row["count"].as_u64().unwrap_or(1),
            )
        };
        rows.iter().map(row).collect()
    }

    /// Stops the server for good and has the audit look at what it left.
    pub fn end(mut self) -> (Books, Site) {
        let now = self.clock.now_ms();
        assert!(
            self.server.stop().success(),
            "{}",
            self.server.process().log()
        );
        let books = Books::open(self.server.data());
        let options = Options {
            now: Some(WallMs(now)),
            grace_ms: 10_000,
            journaled: Journaled::None,
            ..Options::default()
        };
        let report = books.audit(None, &options);
        assert!(report.is_clean(), "{:#?}", report.violations);
        (books, self.site)
    }
}
