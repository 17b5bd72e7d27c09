//! Requests that one server sends on to another: what becomes of one that is cut off, and that all of it goes over TLS.

use std::collections::BTreeSet;

use drumtower_e2e::{Api, Authority, Cli, Process, Site, Way, eventually, shell};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::world::{Database, Member, await_shared, jobs_in};

/// Asks one server for what the other owns, and cuts the way between them `then`, once that one has done it.
fn cut_off<T: Send>(
    owner: &mut Member,
    ask: impl FnOnce() -> T + Send,
    is_done: impl Fn(&Api) -> bool,
    then: impl FnOnce(&mut Member),
) -> T {
    let direct = owner.server.api();
    owner.to_it.hold(Way::Down, true);
    std::thread::scope(|scope| {
        let asking = scope.spawn(ask);
        eventually("the owner has done it", || is_done(&direct).then_some(()));
        then(owner);
        owner.to_it.cut();
        owner.to_it.hold(Way::Down, false);
        asking.join().expect("it is answered")
    })
}

fn nothing(_: &mut Member) {}

#[test]
fn a_request_that_is_cut_off_is_sent_again_where_that_does_no_harm() {
    let (site, database) = (Site::new(), Database::start());
    let mut owner = Member::launch(&site, &database, "a", "http", &[]);
    owner.await_ready();
    let mut other = Member::launch(&site, &database, "b", "http", &[]);
    other.await_ready();
    let shares = await_shared(&[&owner, &other]);
    let [job, more] = jobs_in(&shares.of(&owner));
    let [near] = jobs_in(&shares.of(&other));
    let path = |job: &str| format!("/api/v1/namespaces/default/jobs/{job}");
    let runs = format!("{}/runs", path(&job));
    let api = other.server.api();
    // Nobody carries them out, so runs only add up.
    for job in [&job, &more, &near] {
        api.put_job(&shell(job, "true"));
    }
    let post = |path: &str, body: Value, headers: &[(&str, &str)]| {
        let answer = api.call_with(Method::POST, path, Some(&body), headers);
        answer.expect("an answer")
    };
    let made = |count: usize| move |owner: &Api| owner.runs("").len() >= count;

    // Whoever gave no key sees a delay, and neither a key nor a repetition.
    let trigger = || post(&runs, json!({}), &[]);
    let first = cut_off(&mut owner, trigger, made(1), nothing);
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(first.body["repeated"], false, "{first:?}");
    let known = api.runs("");
    assert_eq!(known.len(), 1, "nothing was doubled");
    assert_eq!(first.body["id"], known[0]["id"]);
    assert_eq!(known[0]["idempotency_key"], Value::Null);

    let key = [("idempotency-key", "order-7")];
    let trigger = || post(&runs, json!({}), &key);
    let keyed = cut_off(&mut owner, trigger, made(2), nothing);
    assert!(keyed.is_success(), "{keyed:?}");
    let again = post(&runs, json!({}), &key);
    assert_eq!(again.body["id"], keyed.body["id"]);
    assert_eq!(api.runs("").len(), 2, "nothing was doubled");

    // What is here, what is there, and what has a key of its own beside that of the batch.
    let batch = json!({"runs": [
        {"job": job}, {"job": near}, {"job": more, "idempotency_key": "own"}, {"job": job},
    ]});
    let key = [("idempotency-key", "of-all")];
    let trigger = || post("/api/v1/runs:batch", batch, &key);
    let told = cut_off(&mut owner, trigger, made(6), nothing);
    let told = told.body["runs"].as_array().expect("a list").clone();
    let ids: BTreeSet<String> = told.iter().map(|it| it["id"].to_string()).collect();
    assert_eq!(ids.len(), 4, "{told:?}");
    assert_eq!(api.runs("").len(), 6, "nothing was doubled");

    let run = format!("/api/v1/runs/{}", known[0]["id"].as_str().expect("an id"));
    let is_cancelled = |owner: &Api| owner.get(&run)["state"] == "CANCELLED";
    let cancel = || post(&format!("{run}/cancel"), json!({}), &[]);
    let cancelled = cut_off(&mut owner, cancel, is_cancelled, nothing);
    assert_eq!(cancelled.body["state"], "CANCELLED", "{cancelled:?}");
    let is_paused = |owner: &Api| !owner.get(&path(&job))["paused"].is_null();
    let pause = || post(&format!("{}/pause", path(&job)), json!({}), &[]);
    let paused = cut_off(&mut owner, pause, is_paused, nothing);
    assert!(!paused.body["paused"].is_null(), "{paused:?}");

    // A second time would be refused, so it is for the caller to look.
    let is_gone = |owner: &Api| {
        let shown = owner.call(Method::GET, &path(&more), None);
        shown.is_ok_and(|shown| shown.status == 404)
    };
    let delete = || api.call(Method::DELETE, &path(&more), None);
    let unknown = cut_off(&mut owner, delete, is_gone, nothing).expect("an answer");
    assert_eq!(unknown.code(), "outcome_unknown", "{unknown:?}");

    // The owner dies: the one that takes its work over knows what it had done.
    let trigger = || post(&runs, json!({"params": {"last": true}}), &[]);
    let kill = |owner: &mut Member| owner.server.kill();
    let last = cut_off(&mut owner, trigger, made(7), kill);
    assert_eq!(last.status, 201, "{last:?}");
    assert_eq!(last.body["repeated"], false, "{last:?}");
    assert_eq!(api.runs("").len(), 7, "nothing was doubled");
}

#[test]
fn who_watches_is_told_that_something_may_not_have_come_across() {
    let (site, database) = (Site::new(), Database::start());
    let mut one = Member::launch(&site, &database, "a", "http", &[]);
    one.await_ready();
    let mut other = Member::launch(&site, &database, "b", "http", &[]);
    other.await_ready();
    let [known, missed, after] = jobs_in(&await_shared(&[&one, &other]).of(&one));
    let (direct, watching) = (one.server.api(), other.server.api());
    let (out, lines) = std::sync::mpsc::channel();
    // It ends when nobody listens, or with its server.
    std::thread::spawn(move || {
        let mut lines = watching.lines("/api/v1/changes");
        lines.find(|line| out.send(line.clone()).is_err())
    });
    let heard = |wanted: &str| {
        eventually(&format!("{wanted} is heard"), || {
            lines.try_iter().find(|line| line.contains(wanted))
        });
    };
    heard("event: ready");
    direct.put_job(&shell(&known, "true"));
    heard(&known);
    // Nothing comes any more of what the one tells the other, and nobody has to wait for that until it tells again.
    one.to_it.hold(Way::Down, true);
    direct.put_job(&shell(&missed, "true"));
    one.to_it.cut();
    heard("event: resync");
    one.to_it.cut();
    one.to_it.hold(Way::Down, false);
    heard("event: resync");
    direct.put_job(&shell(&after, "true"));
    heard(&after);
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
