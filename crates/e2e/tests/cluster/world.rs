//! Servers that share a database, each with ways to it and to itself that a test can break.

use std::collections::BTreeMap;
use std::time::Duration;

use drumtower_core::model::{SegmentId, SegmentSet};
use drumtower_e2e::{Api, Proxy, Server, ServerOptions, Site, eventually, free_port, within};
use drumtower_testpg::{Cluster, Purpose, ROLE};
use serde_json::Value;
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
    /// What it tells the others to be reached by.
    pub address: String,
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
            ("DRUMTOWER_ADVERTISE", advertised.clone()),
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
            address: advertised,
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
    pub fn await_ready(&mut self) {
        eventually("the server is ready", || {
            (self.status()? == "ready").then_some(())
        });
    }
}

/// Who owns what, as a server sees it.
pub struct Shares {
    /// Segments of nobody whose session holds.
    pub unowned: u64,
    /// By the address of the server.
    owned: BTreeMap<String, SegmentSet>,
}

impl Shares {
    /// `None` when the server does not answer.
    pub fn seen_by(api: &Api) -> Option<Self> {
        let answer = api.call(Method::GET, "/api/v1/cluster", None).ok()?;
        let servers = answer.body["servers"].as_array()?;
        let address = |session: &Value| {
            let server = servers.iter().find(|it| it["session"] == *session);
            let holds = server.filter(|it| it["state"] != "gone")?;
            holds["address"].as_str().map(str::to_owned)
        };
        let mut owned = BTreeMap::<String, SegmentSet>::new();
        for range in answer.body["segments"]["ranges"].as_array()? {
            if let Some(address) = address(&range["session"]) {
                let (first, last) = (range["first"].as_u64()?, range["last"].as_u64()?);
                let set = owned.entry(address).or_default();
                (first..=last).for_each(|id| set.insert(SegmentId(id as u16)));
            }
        }
        let unowned = answer.body["segments"]["unowned"].as_u64()?;
        Some(Self { unowned, owned })
    }

    pub fn of(&self, member: &Member) -> SegmentSet {
        let owned = self.owned.get(&member.address);
        owned.copied().unwrap_or_default()
    }

    /// Whether these own everything together, each something.
    fn is_whole(&self, members: &[&Member]) -> bool {
        let all = members.iter().map(|it| self.of(it).len()).sum::<usize>();
        let each = members.iter().all(|it| !self.of(it).is_empty());
        self.unowned == 0 && each && all == SegmentSet::ALL.len()
    }
}

/// Waits until these servers own everything, each something, and all of them see it.
#[track_caller]
pub fn await_shared(members: &[&Member]) -> Shares {
    within(CALM, "the servers share the work", || {
        let seen = members.iter().map(|it| Shares::seen_by(&it.server.api()));
        let seen: Vec<Shares> = seen.collect::<Option<_>>()?;
        let whole = seen.iter().all(|it| it.is_whole(members));
        whole.then(|| seen.into_iter().next_back())?
    })
}

/// The names of jobs in these segments.
pub fn jobs_in<const N: usize>(segments: &SegmentSet) -> [String; N] {
    let names = (0..).map(|number| format!("job-{number}"));
    let is_there = |name: &String| segments.contains(SegmentId::of("default", name));
    let mut names = names.filter(is_there);
    std::array::from_fn(|_| names.next().expect("there are as many"))
}
