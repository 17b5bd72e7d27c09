//! Who is told, of what, and when.

use drumtower_e2e::mail::Mail;
use drumtower_e2e::web::{Web, reply};
use drumtower_e2e::{Site, eventually};
use serde_json::{Value, json};

use super::world::{World, world_on};

/// A world whose server may reach this machine and sends mail to it.
fn telling() -> (World, Web, Mail) {
    let site = Site::new();
    let mail = Mail::start(&site);
    let config = format!(
        "[outbound]\nallow = [\"127.0.0.1\"]\n[smtp]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nfrom = \"d@example.com\"\n",
        mail.port
    );
    site.dir("data");
    site.file("data/drumtower.toml", &config);
    let web = Web::start(|_| Some(reply(200, &[], "")));
    (world_on(site), web, mail)
}

/// Paths and types of what came, in order.
fn told(web: &Web) -> Vec<(String, String)> {
    let read = |request: &String| {
        let path = request.split(' ').nth(1).expect("a path").to_owned();
        let body = request.split("\r\n\r\n").nth(1).expect("a body");
        let body: Value = serde_json::from_str(body).expect("JSON");
        (path, body["type"].as_str().expect("a type").to_owned())
    };
    web.all().iter().map(read).collect()
}

fn failing(rules: Value) -> Value {
    json!({"name": "fails", "task": {"exec": {"argv": ["false"]}}, "notify": {"rules": rules}})
}

/// Each rule gets what it is for, by the way that it names.
pub fn rules() {
    let (world, web, mail) = telling();
    let world = world.agent(4);
    let rules = json!([
        {"on": ["failure"], "webhook": web.url("/failure")},
        {"on": ["recovery", "late"], "webhook": web.url("/other")},
        {"on": ["failure"], "email": ["a@example.com", "b@example.com"]},
    ]);
    world.ended(failing(rules));
    eventually("it is told", || {
        (web.count() == 1 && mail.all().len() == 2).then_some(())
    });
    assert_eq!(told(&web), [("/failure".to_owned(), "failure".to_owned())]);
    let mails = mail.all().join("");
    assert!(mails.contains("RCPT a@example.com") && mails.contains("RCPT b@example.com"));
}

pub fn late_after() {
    let (world, web, _mail) = telling();
    let rules = json!([
        {"on": ["late"], "webhook": web.url("/soon"), "late_after": "1s"},
        {"on": ["late"], "webhook": web.url("/never"), "late_after": "10h"},
    ]);
    world.job(failing(rules));
    world.api.trigger("fails", &json!({}));
    eventually("it is told", || (web.count() > 0).then_some(()));
    assert_eq!(told(&web), [("/soon".to_owned(), "late".to_owned())]);
}

pub fn group_for() {
    let (world, web, _mail) = telling();
    let world = world.agent(4);
    let rules = json!([
        {"on": ["failure"], "webhook": web.url("/short"), "group_for": "1s"},
        {"on": ["failure"], "webhook": web.url("/long"), "group_for": "10h"},
    ]);
    world.ended(failing(rules));
    for _ in 0..3 {
        let run = world.api.trigger("fails", &json!({}));
        world.api.ended(&run);
    }
    let of = |path: &str| {
        let all = told(&web).into_iter();
        all.filter(|(to, _)| to == path).count()
    };
    eventually("the rest of the short one is told", || {
        (of("/short") >= 2).then_some(())
    });
    assert_eq!(of("/long"), 1);
}
