//! Servers that share a database, each with ways to it and to itself that a test can break.

use std::time::Duration;

use drumtower_e2e::{Api, Proxy, Server, ServerOptions, Site, eventually, free_port};
use drumtower_testpg::{Cluster, Purpose, ROLE};
use ureq::http::Method;

/// Time for a busy machine, over leases and their margins.
pub const CALM: Duration = Duration::from_secs(180);

/// A PostgreSQL server of this test's own, which it may restart.
pub struct Database {
    pub cluster: Cluster,
    pub url: String,
}

impl Database {
    pub fn start() -> Self {
        let cluster = Cluster::start(Purpose::Test).expect("a PostgreSQL server starts");
        let url = cluster.database().expect("a database");
        Self { cluster, url }
    }

    /// The same database through a way that can be broken.
    fn through(&self, way: &Proxy) -> String {
        let port = way.url().rsplit(':').next().and_then(|it| it.parse().ok());
        let name = self.url.rsplit('/').next().expect("a name");
        let port = port.expect("a port");
        self.cluster.url_at(port, ROLE, "let me in", name)
    }
}

/// One of the servers.
pub struct Member {
    pub server: Server,
    pub options: ServerOptions,
    /// Its way to the database.
    pub to_database: Proxy,
    /// The way of others to it.
    pub to_it: Proxy,
}

impl Member {
    /// Starts a server that others reach through a proxy, over `scheme`.
    pub fn launch(
        site: &Site,
        database: &Database,
        name: &str,
        scheme: &str,
        more: &[(&'static str, String)],
    ) -> Self {
        let to_database = Proxy::start(&format!("127.0.0.1:{}", database.cluster.port()));
        // The server's port is not known before it is started, so the way to it is made of a port that it is then given.
        let port = free_port();
        let to_it = Proxy::start(&format!("127.0.0.1:{port}"));
        let advertised = to_it.url().replacen("http", scheme, 1);
        let mut env = vec![
            ("DRUMTOWER_STORE", database.through(&to_database)),
            ("DRUMTOWER_ADVERTISE", advertised),
        ];
        env.extend_from_slice(more);
        let options = ServerOptions {
            env,
            ..Default::default()
        };
        let log = site.path().join(format!("{name}.log"));
        let server = Server::launch_at(&site.dir(name), &log, port, &options);
        Self {
            server,
            options,
            to_database,
            to_it,
        }
    }

    /// Starts it again after it ended.
    pub fn respawn(&mut self) {
        self.server.respawn(&self.options);
    }

    /// What `/readyz` says, once it has announced itself.
    pub fn status(&mut self) -> Option<String> {
        if let Some(ended) = self.server.process().ended() {
            let log = self.server.process().log();
            panic!("the server ended with {ended}:\n{log}");
        }
        if !self.server.data().join("server.url").exists() {
            return None;
        }
        let answer = Api::new(self.server.url(), None).call(Method::GET, "/readyz", None);
        answer.ok()?.body["status"].as_str().map(str::to_owned)
    }

    #[track_caller]
    pub fn await_status(&mut self, wanted: &str) {
        eventually(&format!("the server is {wanted}"), || {
            (self.status()? == wanted).then_some(())
        });
    }
}

/// Waits until one of the servers owns the work, and says which; `but` is not looked at.
#[track_caller]
pub fn await_owner(members: &mut [Member], but: Option<usize>) -> usize {
    eventually("a server owns the work", || {
        let mut numbered = members.iter_mut().enumerate();
        numbered.find_map(|(number, member)| {
            let ready = Some(number) != but && member.status().as_deref() == Some("ready");
            ready.then_some(number)
        })
    })
}
