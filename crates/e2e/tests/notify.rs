//! People are told of failures, recoveries and lateness: by webhook and by mail, once, and not too often.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use drumtower_e2e::mail::{Mail, PASSWORD, USER};
use drumtower_e2e::web::{Web, reply};
use drumtower_e2e::{Api, Authority, Cli, Server, Site, Worker, eventually, once};
use ring::hmac;
use serde_json::{Value, json};
use ureq::http::Method;

const REACH_SELF: &str = "[outbound]\nallow = [\"127.0.0.1\"]\n";

/// A server with this configuration in its data directory.
fn server(site: &Site, config: &str) -> Server {
    let file = site.data().join("drumtower.toml");
    std::fs::create_dir_all(site.data()).expect("made");
    std::fs::write(file, config).expect("written");
    Server::start(site)
}

fn web() -> Web {
    Web::start(|_| Some(reply(200, &[], "")))
}

fn cli(site: &Site, server: &Server) -> Cli {
    Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string())
}

/// A job that fails until the file is there.
fn wants(site: &Site, name: &str, notify: Value) -> Value {
    let file = site.path().join(name).display().to_string();
    let argv = ["test", "-e", &file];
    once(json!({"kind": "Job", "name": name, "task": {"exec": {"argv": argv}}, "notify": notify}))
}

fn rule(on: &[&str], webhook: &str) -> Value {
    json!({"rules": [{"on": on, "webhook": webhook}]})
}

fn trigger(api: &Api, job: &str) -> Value {
    let run = api.trigger(job, &json!({}));
    api.ended(&run)
}

/// Head and body of a request whose signature is that of the server's key.
#[track_caller]
fn verified(server: &Server, request: &str) -> Value {
    let (head, body) = request.split_once("\r\n\r\n").expect("a request");
    let header = |name: &str| {
        let mut lines = head.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("{name} in {head}")).trim()
    };
    let key = std::fs::read_to_string(server.data().join("webhook.key")).expect("a key");
    let key = STANDARD.decode(key.trim().strip_prefix("whsec_").expect("a prefix"));
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key.expect("base 64"));
    let (id, time) = (header("webhook-id"), header("webhook-timestamp"));
    let signature = header("webhook-signature").strip_prefix("v1,").expect("v1");
    let signature = STANDARD.decode(signature).expect("base 64");
    let signed = format!("{id}.{time}.{body}");
    hmac::verify(&key, signed.as_bytes(), &signature).expect("the signature fits");
    assert_eq!(header("content-type"), "application/json");
    let message: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(
        (&message["id"], &message["version"]),
        (&json!(id), &json!(1))
    );
    message
}

fn messages(server: &Server, web: &Web) -> Vec<Value> {
    let all = web.all();
    all.iter().map(|it| verified(server, it)).collect()
}

fn deliveries(api: &Api, state: &str) -> Vec<Value> {
    let found = api.get(&format!("/api/v1/notifications?state={state}&limit=1000"));
    found["items"].as_array().expect("items").clone()
}

#[track_caller]
fn delivered(api: &Api, count: usize) -> Vec<Value> {
    eventually("the messages are delivered", || {
        let all = deliveries(api, "delivered");
        (all.len() >= count).then_some(all)
    })
}

#[test]
fn a_failure_and_the_recovery_arrive_once_by_webhook_and_by_mail() {
    let site = Site::new();
    let (mail, web) = (Mail::start(&site), web());
    let smtp = format!(
        "[smtp]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nfrom = \"Drumtower <drumtower@example.com>\"\n",
        mail.port
    );
    let server = server(&site, &format!("{REACH_SELF}{smtp}"));
    let _worker = Worker::start(&site, &server, "agent");
    let api = server.api();
    let rules = json!({"rules": [{
        "on": ["failure", "recovery"],
        "webhook": web.url("/hook?secret"),
        "email": ["ops@example.com"],
    }]});
    api.put_job(&wants(&site, "nightly", rules));
    let failed = trigger(&api, "nightly");
    delivered(&api, 2);
    std::fs::write(site.path().join("nightly"), "").expect("written");
    trigger(&api, "nightly");
    trigger(&api, "nightly");
    let log = delivered(&api, 4);
    assert_eq!(
        (log.len(), deliveries(&api, "pending").len()),
        (4, 0),
        "{log:#?}"
    );
    let told = messages(&server, &web);
    let kinds: Vec<&Value> = told.iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["failure", "recovery"]);
    assert_eq!(told[0]["events"][0]["run"], failed["id"]);
    assert_eq!(told[0]["events"][0]["exit_code"], 1);
    assert_eq!(told[0]["job"], "nightly");
    let mails = mail.all();
    assert_eq!(mails.len(), 2, "{mails:#?}");
    let run = failed["id"].as_str().expect("an id");
    for part in [
        "RCPT ops@example.com",
        "Subject: [drumtower] default/nightly failed",
        "From: Drumtower <drumtower@example.com>",
        "A run of default/nightly failed.",
        &format!("drumtower run logs {run}"),
    ] {
        assert!(mails[0].contains(part), "{part} in {}", mails[0]);
    }
    assert!(
        mails[1].contains("default/nightly recovered"),
        "{}",
        mails[1]
    );
    let shown = cli(&site, &server).ok(&["notify", "log"]);
    assert!(
        !shown.contains("secret") && shown.contains("ops@example.com"),
        "{shown}"
    );
    let metrics = api.get("/metrics");
    let line = "drumtower_notifications_total{channel=\"email\",state=\"delivered\"} 2";
    assert!(metrics.as_str().expect("text").contains(line), "{metrics}");
}

#[test]
fn a_run_that_no_worker_takes_is_told_to_be_late_once() {
    let site = Site::new();
    let web = web();
    let server = server(&site, REACH_SELF);
    let api = server.api();
    let mut rules = rule(&["late"], &web.url("/"));
    rules["rules"][0]["late_after"] = json!("1s");
    api.put_job(&wants(&site, "slow", rules));
    let run = api.trigger("slow", &json!({}));
    delivered(&api, 1);
    let _worker = Worker::start(&site, &server, "agent");
    api.ended(&run);
    // What is told of a later run comes after whatever could still be told of this one.
    let failing = rule(&["failure"], &web.url("/"));
    api.put_job(&wants(&site, "other", failing));
    trigger(&api, "other");
    delivered(&api, 2);
    let told = messages(&server, &web);
    let kinds: Vec<&Value> = told.iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["late", "failure"]);
    assert_eq!(told[0]["events"][0]["run"], json!(run));
    assert_eq!(told[0]["events"][0]["started"], Value::Null);
}

#[test]
fn five_hundred_failures_make_a_few_messages() {
    let site = Site::new();
    let web = web();
    let server = server(&site, &format!("{REACH_SELF}[notify]\nper_hour = 600\n"));
    let _worker = Worker::start(&site, &server, "agent");
    let api = server.api();
    let mut rules = rule(&["failure"], &web.url("/"));
    rules["rules"][0]["group_for"] = json!("5s");
    for job in 0..10 {
        api.put_job(&wants(&site, &format!("job-{job}"), Value::Null));
    }
    let path = "/api/v1/namespaces/default/settings/notify";
    api.send(Method::PUT, path, Some(&rules));
    let runs: Vec<Value> = (0..500)
        .map(|run| json!({"job": format!("job-{}", run % 10)}))
        .collect();
    api.post("/api/v1/runs:batch", &json!({"runs": runs}));
    let told = eventually("all failures are told", || {
        let told = messages(&server, &web);
        let failures = told.iter().map(|it| it["counts"]["failure"].as_u64());
        let total: u64 = failures.map(|count| count.expect("a count")).sum();
        assert!(total <= 500, "{told:#?}");
        (total == 500).then_some(told)
    });
    // Five at once, then one summary in six seconds for as long as the runs take.
    assert!(told.len() <= 25, "{}", told.len());
}

#[test]
fn what_was_on_its_way_when_the_server_died_arrives_after_it_is_back() {
    let site = Site::new();
    let open = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&open);
    let web = Web::start(move |_| opened.load(Ordering::SeqCst).then(|| reply(200, &[], "")));
    let mut server = server(&site, REACH_SELF);
    let _worker = Worker::start(&site, &server, "agent");
    server
        .api()
        .put_job(&wants(&site, "job", rule(&["failure"], &web.url("/"))));
    let run = trigger(&server.api(), "job");
    eventually("it is being sent", || (web.count() > 0).then_some(()));
    server.kill();
    open.store(true, Ordering::SeqCst);
    server.restart();
    delivered(&server.api(), 1);
    let told = messages(&server, &web);
    assert!(told.len() >= 2, "{told:#?}");
    for message in &told {
        assert_eq!(
            message["id"], told[0]["id"],
            "a repetition can be recognised"
        );
        assert_eq!(message["events"][0]["run"], run["id"]);
    }
}

#[test]
fn a_failure_right_before_the_server_died_is_found_in_the_store() {
    let site = Site::new();
    let web = web();
    let mut server = server(&site, REACH_SELF);
    let _worker = Worker::start(&site, &server, "agent");
    let state = server.data().join("notifications.json");
    for job in ["a", "b", "c"] {
        let rules = rule(&["failure"], &web.url("/"));
        server.api().put_job(&wants(&site, job, rules));
        let before = eventually("the state is kept", || std::fs::read(&state).ok());
        let run = trigger(&server.api(), job)["id"].clone();
        server.kill();
        // As if nothing had been heard of it.
        std::fs::write(&state, before).expect("written");
        let known = web.count();
        server.restart();
        let of_run = |message: &Value| message["events"][0]["run"] == run;
        eventually("it is told", || {
            let told = messages(&server, &web);
            told.get(known..)?.iter().any(of_run).then_some(())
        });
        let told = messages(&server, &web);
        let mut ids: Vec<&Value> = told
            .iter()
            .filter(|it| of_run(it))
            .map(|it| &it["id"])
            .collect();
        ids.dedup();
        assert_eq!(ids.len(), 1, "a repetition can be recognised: {told:#?}");
    }
}

#[test]
fn addresses_that_are_not_public_are_not_reached_unless_allowed() {
    let site = Site::new();
    let web = web();
    let server = server(&site, "");
    let _worker = Worker::start(&site, &server, "agent");
    let (api, cli) = (server.api(), cli(&site, &server));
    let done = cli.run(&["notify", "test", "--webhook", &web.url("/")]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains("is a loopback address"), "{done:?}");
    let done = cli.run(&["notify", "test", "--email", "ops@example.com"]);
    assert!(done.code == 1 && done.stdout.contains("[smtp]"), "{done:?}");
    api.put_job(&wants(&site, "job", rule(&["failure"], &web.url("/"))));
    trigger(&api, "job");
    let failed = eventually("it is given up", || deliveries(&api, "failed").pop());
    let error = failed["error"].as_str().expect("an error");
    assert!(error.contains("--allow-outbound 127.0.0.1"), "{error}");
    assert_eq!(web.count(), 0);
}

#[test]
fn mail_goes_over_starttls_with_a_login() {
    let site = Site::new();
    let authority = Authority::new(site.path(), "mail");
    let certificate = authority.issue(site.path(), "mail", &["localhost"], 2096);
    let mail = Mail::start_guarded(&site, &certificate);
    let password = site.path().join("password");
    std::fs::write(&password, format!("{PASSWORD}\n")).expect("written");
    let config = |password: &std::path::Path| {
        format!(
            "[smtp]\nhost = \"localhost\"\nport = {}\nfrom = \"d@example.com\"\nusername = \"{USER}\"\npassword_file = \"{}\"\nca = \"{}\"\n",
            mail.port,
            password.display(),
            authority.file.display()
        )
    };
    let mut server = server(&site, &config(&password));
    let test = ["notify", "test", "--email", "ops@example.com"];
    cli(&site, &server).ok(&test);
    let mails = mail.all();
    assert!(
        mails.len() == 1 && mails[0].contains("test message"),
        "{mails:#?}"
    );
    server.stop();
    let wrong = site.path().join("wrong");
    std::fs::write(&wrong, "guess\n").expect("written");
    std::fs::write(site.data().join("drumtower.toml"), config(&wrong)).expect("written");
    server.restart();
    let done = cli(&site, &server).run(&test);
    assert!(done.code == 1 && done.stdout.contains("535"), "{done:?}");
    assert_eq!(mail.all().len(), 1);
}

#[test]
fn rules_are_set_shown_and_taken_back_and_a_job_has_its_own() {
    let site = Site::new();
    let (web, own) = (web(), web());
    let server = server(&site, REACH_SELF);
    let _worker = Worker::start(&site, &server, "agent");
    let (api, cli) = (server.api(), cli(&site, &server));
    let yaml = format!("rules:\n  - on: [failure]\n    webhook: {}\n", web.url("/"));
    let done = cli.run_with_input(&["notify", "set", "-f", "-"], &yaml);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        cli.ok(&["notify", "show"]),
        format!("on failure: {}\n", web.url("/"))
    );
    let done = cli.run_with_input(&["notify", "set", "-f", "-"], "rules:\n  - on: [never]\n");
    assert!(done.failed(2).contains("never"));
    api.put_job(&wants(&site, "of-namespace", Value::Null));
    api.put_job(&wants(
        &site,
        "of-its-own",
        rule(&["failure"], &own.url("/")),
    ));
    api.put_job(&wants(&site, "silent", json!({"rules": []})));
    cli.ok(&["notify", "test", "--job", "of-its-own"]);
    assert_eq!(verified(&server, &own.last())["type"], "test");
    cli.fails(1, &["notify", "test", "--job", "silent"]);
    cli.fails(3, &["notify", "test", "--job", "missing"]);
    for job in ["silent", "of-its-own", "of-namespace"] {
        trigger(&api, job);
    }
    delivered(&api, 2);
    cli.ok(&["notify", "unset"]);
    trigger(&api, "of-namespace");
    std::fs::write(site.path().join("silent"), "").expect("written");
    let of = |web: &Web| -> Vec<Value> {
        let all = messages(&server, web).into_iter();
        all.map(|it| it["job"].clone()).collect()
    };
    assert_eq!(of(&web), ["of-namespace"]);
    assert_eq!(of(&own), [Value::Null, json!("of-its-own")]);
    let key = cli.ok(&["notify", "key"]);
    assert!(key.starts_with("whsec_"), "{key}");
}
