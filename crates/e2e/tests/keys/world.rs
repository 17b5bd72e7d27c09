//! A server with the workers that a check asks for.

use drumtower_e2e::{Answer, Api, Server, Site, Worker, WorkerOptions, once};
use serde_json::{Value, json};
use ureq::http::Method;

pub struct World {
    // Workers go before the server they dial.
    _workers: Vec<Worker>,
    pub server: Server,
    pub api: Api,
    pub site: Site,
}

pub fn world() -> World {
    world_on(Site::new())
}

/// On a site that is prepared already.
pub fn world_on(site: Site) -> World {
    let server = Server::start(&site);
    World {
        _workers: Vec::new(),
        api: server.api(),
        server,
        site,
    }
}

impl World {
    /// Adds an agent of this capacity.
    pub fn agent(self, capacity: u32) -> Self {
        let arguments = vec!["--capacity".into(), capacity.to_string()];
        self.worker(
            "agent",
            WorkerOptions {
                arguments,
                ..Default::default()
            },
        )
    }

    /// Adds an agent with these flags.
    pub fn agent_with(self, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        self.worker(
            "agent",
            WorkerOptions {
                arguments,
                ..Default::default()
            },
        )
    }

    /// Adds a worker with the handlers `journal` and `echo`.
    pub fn handlers(self, name: &str) -> Self {
        let journal = self.site.dir("journal").display().to_string();
        let options = WorkerOptions {
            program: Some(env!("CARGO_BIN_EXE_journal-handlers").into()),
            arguments: vec![name.into(), journal],
            ..Default::default()
        };
        self.worker(name, options)
    }

    fn worker(mut self, name: &str, options: WorkerOptions) -> Self {
        let worker = Worker::start_with(&self.site, &self.server, name, options);
        self._workers.push(worker);
        self
    }

    /// Makes the job from these keys over a plain one, and answers with it.
    #[track_caller]
    pub fn job(&self, keys: Value) -> Value {
        self.api.put_job(&over_plain(keys))
    }

    /// As [`World::job`], whatever the answer.
    pub fn try_job(&self, keys: Value) -> Answer {
        let spec = over_plain(keys);
        let path = format!(
            "/api/v1/namespaces/default/jobs/{}",
            spec["name"].as_str().expect("a name")
        );
        self.api
            .call(Method::PUT, &path, Some(&spec))
            .expect("an answer")
    }

    /// Makes the job, triggers it and waits for the end of the run.
    #[track_caller]
    pub fn ended(&self, keys: Value) -> Value {
        let job = self.job(keys);
        let run = self
            .api
            .trigger(job["name"].as_str().expect("a name"), &json!({}));
        self.api.ended(&run)
    }
}

fn over_plain(keys: Value) -> Value {
    let mut spec =
        once(json!({"kind": "Job", "name": "plain", "task": {"exec": {"argv": ["true"]}}}));
    let keys = keys.as_object().expect("keys");
    spec.as_object_mut().expect("a job").extend(keys.clone());
    spec
}

pub fn id(run: &Value) -> &str {
    run["id"].as_str().expect("an id")
}
