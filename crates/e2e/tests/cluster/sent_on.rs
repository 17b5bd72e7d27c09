//! Requests that one server sends on to another: what becomes of one that is cut off, and that all of it goes over TLS.

use drumtower_e2e::{Answer, Api, Authority, Cli, Process, Site, Way, eventually, shell};
use serde_json::json;
use ureq::http::Method;

use crate::world::{Database, Member, await_shared, jobs_in};

/// Triggers a run through another server, and cuts the way to the owner when it has made the run.
fn cut_off(asked: &Api, owner: &Member, runs: &str, key: Option<&str>) -> Answer {
    let direct = owner.server.api();
    let before = direct.runs("").len();
    owner.to_it.hold(Way::Down, true);
    let (asked, runs) = (asked.clone(), runs.to_owned());
    let key = key.map(str::to_owned);
    let asking = std::thread::spawn(move || {
        let headers: Vec<(&str, &str)> = key.iter().map(|it| ("idempotency-key", &**it)).collect();
        let body = json!({});
        let answer = asked.call_with(Method::POST, &runs, Some(&body), &headers);
        answer.expect("an answer")
    });
    eventually("the owner has made the run", || {
        (direct.runs("").len() > before).then_some(())
    });
    owner.to_it.cut();
    owner.to_it.hold(Way::Down, false);
    asking.join().expect("it is answered")
}

#[test]
fn a_request_that_is_cut_off_is_told_as_unknown_unless_its_key_lets_it_be_repeated() {
    let (site, database) = (Site::new(), Database::start());
    let mut owner = Member::launch(&site, &database, "a", "http", &[]);
    owner.await_ready();
    let mut other = Member::launch(&site, &database, "b", "http", &[]);
    other.await_ready();
    let [job] = jobs_in(&await_shared(&[&owner, &other]).of(&owner));
    let runs = format!("/api/v1/namespaces/default/jobs/{job}/runs");
    let api = other.server.api();
    // Nobody carries it out, so runs only add up.
    api.put_job(&shell(&job, "true"));
    let unknown = cut_off(&api, &owner, &runs, None);
    assert_eq!(unknown.code(), "outcome_unknown", "{unknown:?}");
    let repeated = cut_off(&api, &owner, &runs, Some("order-7"));
    assert!(repeated.is_success(), "{repeated:?}");
    assert_eq!(repeated.body["repeated"], true, "{repeated:?}");
    let made = owner.server.api().runs("");
    assert_eq!(made.len(), 2);
    assert_eq!(repeated.body["id"], made[0]["id"], "the newest first");
    let key = [("idempotency-key", "order-7")];
    let again = api.call_with(Method::POST, &runs, Some(&json!({})), &key);
    let again = again.expect("an answer");
    assert!(again.is_success(), "{again:?}");
    assert_eq!(again.body["id"], repeated.body["id"]);
    assert_eq!(api.runs("").len(), 2, "nothing was doubled");
}

/// Servers that encrypt, with certificates of one authority.
pub struct Encrypted {
    pub members: Vec<Member>,
    pub authority: Authority,
}

impl Encrypted {
    #[track_caller]
    pub fn start(site: &Site, database: &Database, names: &[&str]) -> Self {
        let authority = Authority::new(site.path(), "servers");
        let mut members = Vec::new();
        for name in names {
            let hosts = ["127.0.0.1", "drumtower.example"];
            let issued = authority.issue(site.path(), name, &hosts, 2090);
            let text = |path: &std::path::Path| path.display().to_string();
            let env = [
                ("DRUMTOWER_TLS_CERT", text(&issued.cert)),
                ("DRUMTOWER_TLS_KEY", text(&issued.key)),
                ("DRUMTOWER_PEER_CA", text(&authority.file)),
            ];
            let member = Member::launch(site, database, name, "https", &env);
            let cli = beside(site, &member);
            eventually(&format!("{name} is ready"), || {
                let told = cli.run(&["ready", "-o", "json"]);
                told.stdout.contains("ready").then_some(())
            });
            members.push(member);
        }
        Self { members, authority }
    }
}

/// Commands on the machine of a server.
pub fn beside(site: &Site, member: &Member) -> Cli {
    let data = member.server.data().display().to_string();
    Cli::new(site.path()).env("DRUMTOWER_DATA", data)
}

/// An agent that dials `url`.
pub fn agent(site: &Site, url: &str, ca: &std::path::Path, token: &str) -> Process {
    let mut command = Cli::new(site.path()).command(&["work", "--name", "agent"]);
    command
        .arg("--scratch")
        .arg(site.path().join("agent.scratch"))
        .env("DRUMTOWER_URL", url)
        .env("DRUMTOWER_CA", ca)
        .env("DRUMTOWER_TOKEN", token);
    Process::spawn(command, &site.path().join("agent.log"))
}

pub fn manifest(site: &Site, name: &str, script: &str) -> String {
    let path = site.path().join(format!("{name}.json"));
    std::fs::write(&path, shell(name, script).to_string()).expect("written");
    path.display().to_string()
}

#[test]
fn requests_and_streams_are_sent_on_over_tls() {
    let (site, database) = (Site::new(), Database::start());
    let world = Encrypted::start(&site, &database, &["a", "b"]);
    let cli = beside(&site, &world.members[1]);
    cli.ok(&["apply", "-f", &manifest(&site, "greet", "echo hello")]);
    let token = cli.ok(&["token", "create", "agents", "--role", "worker"]);
    let url = world.members[1].server.url().replacen("http", "https", 1);
    let _agent = agent(&site, &url, &world.authority.file, token.trim());
    let run = cli.ok(&["job", "trigger", "greet"]);
    let run = run.trim();
    assert_eq!(cli.ok(&["run", "logs", run, "-f"]), "hello\n");
    let owner = beside(&site, &world.members[0]);
    assert_eq!(owner.ok(&["run", "logs", run]), "hello\n");
}
