//! Settings of the installation on two servers, and what each server tells of itself.

use drumtower_e2e::{Api, Cli, Site, eventually, shell};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::world::{Database, Member, await_shared, jobs_in};

/// The timeout that a job has when it is put at this server.
fn timeout_of(api: &Api, job: &str) -> Option<Value> {
    let path = format!("/api/v1/namespaces/default/jobs/{job}");
    let put = api.call(Method::PUT, &path, Some(&shell(job, "true")));
    let put = put.ok().filter(|answer| answer.is_success())?;
    Some(put.body["spec"]["timeout"].clone())
}

#[test]
fn settings_hold_at_each_server_and_each_server_tells_of_itself() {
    const SETTING: &str = "/api/v1/settings/jobs";
    let (site, database) = (Site::new(), Database::start());
    let start = |name: &str| {
        let named = [("DRUMTOWER_NAME", name.to_owned())];
        let mut member = Member::launch(&site, &database, name, "http", &named);
        member.await_ready();
        member
    };
    let (one, two) = (start("one"), start("two"));
    let shares = await_shared(&[&one, &two]);
    let [of_one] = jobs_in(&shares.of(&one));
    let [of_two] = jobs_in(&shares.of(&two));
    for (asked, timeout) in [(&one, "11m"), (&two, "12m")] {
        let settings = json!({"defaults": {"timeout": timeout}});
        let put = asked
            .server
            .api()
            .call(Method::PUT, SETTING, Some(&settings));
        assert!(put.expect("an answer").is_success());
        for (reader, job) in [
            (&one, &of_one),
            (&one, &of_two),
            (&two, &of_one),
            (&two, &of_two),
        ] {
            eventually("the default holds", || {
                (timeout_of(&reader.server.api(), job)? == timeout).then_some(())
            });
        }
    }
    for asked in [&one, &two] {
        let api = asked.server.api();
        let cluster = eventually("both tell of themselves", || {
            let told = api.call(Method::GET, "/api/v1/cluster", None).ok()?.body;
            let servers = told["servers"].as_array()?.iter();
            let all = servers.clone().all(|server| server["answered"] == true);
            all.then_some(told)
        });
        let servers = cluster["servers"].as_array().expect("servers");
        let mut names: Vec<&str> = servers
            .iter()
            .filter_map(|it| it["name"].as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["one", "two"], "{cluster}");
        for server in servers {
            assert_eq!(server["answered"], true, "{cluster}");
            let told = ["started", "skew_ms", "lag_ms", "commit_p50_ms", "tied"];
            assert!(told.iter().all(|key| !server[*key].is_null()), "{server}");
        }
    }
    let data = one.server.data().display().to_string();
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", data);
    let told = cli.json(&["doctor", "--only", "cluster", "--only", "backup"]);
    let findings = told["findings"].as_array().expect("findings");
    let of = |check: &str| findings.iter().find(|it| it["check"] == check);
    assert_eq!(of("cluster").expect("a finding")["state"], "ok", "{told}");
    let backup = of("backup").expect("a finding");
    assert_eq!(backup["state"], "ok", "{told}");
    assert!(backup["words"].to_string().contains("pg_dump"), "{told}");
}
