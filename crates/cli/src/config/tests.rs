//! The configuration as its users meet it: precedence, faults, and that sample and reference know every key.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::file::parse;
use super::settings::Origin;
use super::*;

const SAMPLE: &str = include_str!("../../../../deploy/drumtower.toml");
const REFERENCE: &str = include_str!("../../../../docs/reference/configuration.md");

fn faults(text: &str) -> Vec<String> {
    let faults = parse(Path::new("/etc/d.toml"), text).expect_err("something is wrong");
    faults.iter().map(ToString::to_string).collect()
}

fn settings(given: Given, variables: &[(&str, &str)], file: &str) -> Settings {
    let find = |name: &str| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let mut settings = Settings::of(given, find).expect("sound");
    let path = Path::new("/etc/d.toml");
    settings.add_file(path.to_owned(), parse(path, file).expect("a sound file"));
    settings
}

#[test]
fn a_flag_wins_over_a_variable_and_that_over_the_file() {
    let file = "listen = \"127.0.0.1:1\"\n[log]\nlevel = \"warn\"\nformat = \"json\"\n";
    let given = Given::default().text("log.level", Some("trace"));
    let settings = settings(
        given,
        &[
            ("DRUMTOWER_LOG", "debug"),
            ("DRUMTOWER_LISTEN", "127.0.0.1:2"),
        ],
        file,
    );
    assert_eq!(settings.text("log.level").as_deref(), Some("trace"));
    assert_eq!(settings.origin("log.level"), Origin::Flag("--log-level"));
    assert_eq!(settings.address("listen").unwrap().port(), 2);
    assert_eq!(
        settings.origin("listen"),
        Origin::Variable("DRUMTOWER_LISTEN")
    );
    assert_eq!(settings.text("log.format").as_deref(), Some("json"));
    assert_eq!(settings.origin("log.format"), Origin::File(4));
    assert_eq!(settings.duration("worker.drain").unwrap().as_secs(), 30);
    assert_eq!(settings.origin("worker.drain"), Origin::Default);
}

#[test]
fn a_flag_that_clap_took_from_the_variable_is_told_as_the_variable() {
    let given = Given::default().text("log.level", Some("debug"));
    let settings = settings(given, &[("DRUMTOWER_LOG", "debug")], "");
    assert_eq!(
        settings.origin("log.level"),
        Origin::Variable("DRUMTOWER_LOG")
    );
}

#[test]
fn every_fault_is_told_with_its_place_and_the_nearest_name() {
    let text = "lisen = \"127.0.0.1:1\"\n\n[log]\n  levle = \"info\"\nformat = \"xml\"\n[worker]\ncapacity = 0\nlabels = \"a\"\n[wroker]\nname = \"a\"\n";
    assert_eq!(
        faults(text),
        [
            "/etc/d.toml:1:1: unknown key `lisen`: did you mean `listen`?",
            "/etc/d.toml:5:10: log.format: unknown value `xml`: there is text, json",
            "/etc/d.toml:4:3: log: unknown key `levle`: did you mean `level`?",
            "/etc/d.toml:7:12: worker.capacity: `0` is not between 1 and 20000",
            "/etc/d.toml:8:10: worker.labels: found `a`, expected a table of texts, such as { zone = \"a\" }",
            "/etc/d.toml:9:2: unknown key `wroker`: did you mean `worker`?",
        ]
    );
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    let faults = faults("listen = \n");
    assert_eq!(faults.len(), 1);
    assert!(faults[0].starts_with("/etc/d.toml:1:10: "), "{faults:?}");
}

#[test]
fn a_section_is_not_a_value_and_a_value_not_a_section() {
    assert_eq!(
        faults("log = 3\n"),
        ["/etc/d.toml:1:1: `log` is a section: write [log] and its keys below"]
    );
    assert_eq!(
        faults("[listen]\n"),
        ["/etc/d.toml:1:1: listen: found a table, expected an address and port in quotes"]
    );
}

#[test]
fn wrong_variables_are_refused_by_name() {
    let find = |name: &str| (name == "DRUMTOWER_WORKER_DRAIN").then(|| "soon".to_owned());
    let failure = Settings::of(Given::default(), find).expect_err("no duration");
    assert!(
        failure
            .to_string()
            .starts_with("error: DRUMTOWER_WORKER_DRAIN: "),
        "{failure}"
    );
}

#[test]
fn paths_of_the_file_are_relative_to_it() {
    let settings = settings(
        Given::default(),
        &[("DRUMTOWER_WORKER_SCRATCH", "here")],
        "[worker]\ntoken_file = \"agents.token\"\n",
    );
    assert_eq!(
        settings.path("worker.token_file"),
        Some(Path::new("/etc/agents.token"))
    );
    assert_eq!(settings.path("worker.scratch"), Some(Path::new("here")));
}

#[test]
fn a_secret_is_never_shown() {
    let settings = settings(Given::default(), &[], "[worker]\ntoken = \"drt_hidden\"\n");
    assert_eq!(settings.text("worker.token").as_deref(), Some("drt_hidden"));
    assert!(!json!(settings.listing()).to_string().contains("drt_hidden"));
}

#[cfg(unix)]
#[test]
fn a_file_with_a_secret_that_others_can_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("drumtower.toml");
    std::fs::write(&path, "[worker]\ntoken = \"drt_x\"\n").expect("written");
    let warned = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        let mut settings = Settings::of(Given::default(), |_| None).expect("sound");
        settings.add_file(path.clone(), file::load(&path).expect("sound"));
        settings.warnings().len()
    };
    assert_eq!(warned(0o600), 0);
    assert_eq!(warned(0o644), 1);
}

#[test]
fn every_default_is_a_value_of_its_kind() {
    for key in keys() {
        if let Some(default) = key.default {
            key.kind
                .read_text(default)
                .unwrap_or_else(|error| panic!("{}: {error}", key.path));
        }
    }
}

/// A line of the sample that gives a key carries no other mark than `#` at its beginning.
fn is_key(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| {
        let name = rest.split(" = ").next().unwrap_or_default();
        rest.contains(" = ") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    })
}

#[test]
fn the_sample_gives_every_key_and_can_be_read() {
    assert_eq!(
        parse(Path::new("/etc/d.toml"), SAMPLE).expect("as it is"),
        Default::default()
    );
    let all: Vec<&str> = SAMPLE
        .lines()
        .map(|line| if is_key(line) { &line[1..] } else { line })
        .collect();
    let said = parse(Path::new("/etc/d.toml"), &all.join("\n")).expect("with every key");
    let missing: Vec<&str> = keys()
        .map(|key| key.path)
        .filter(|path| !said.contains_key(path))
        .collect();
    assert!(
        missing.is_empty(),
        "deploy/drumtower.toml does not show {missing:?}"
    );
}

#[test]
fn the_reference_tells_every_key_and_its_variable() {
    for key in keys() {
        let section = key
            .path
            .rsplit_once('.')
            .map(|(section, _)| format!("## [{section}]"));
        let name = key.path.rsplit('.').next().unwrap_or_default();
        let row = format!("| `{name}` |");
        let part = match &section {
            Some(heading) => REFERENCE.split(heading.as_str()).nth(1).unwrap_or_default(),
            None => REFERENCE,
        };
        let line = part.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("{} has no row", key.path));
        assert!(line.contains(&format!("`{}`", key.variable)), "{line}");
        if let Some(flag) = key.flag {
            assert!(line.contains(&format!("`{flag}`")), "{line}");
        }
    }
}

#[test]
fn what_is_shown_as_a_file_reads_as_the_same_settings() {
    let settings = settings(
        Given::default(),
        &[("DRUMTOWER_WORKER_LABELS", "zone=a,disk=\"big\"")],
        "[log]\nlevel = \"debug\"\n",
    );
    let shown = command::as_toml(&settings.listing());
    let said = parse(Path::new("/etc/d.toml"), &shown)
        .unwrap_or_else(|faults| panic!("{faults:?}\n{shown}"));
    assert_eq!(said["log.level"].0, Value::Text("debug".to_owned()));
    assert_eq!(
        said["worker.labels"].0.json(),
        json!({"zone": "a", "disk": "\"big\""})
    );
    assert!(
        settings
            .listing()
            .iter()
            .all(|item| item["key"] != Json::Null)
    );
}

#[test]
fn an_address_for_other_servers_is_a_url_without_a_path() {
    for sound in [
        "http://127.0.0.1:7070",
        "https://one.example",
        "https://[::1]:7070/",
    ] {
        let settings = settings(Given::default(), &[("DRUMTOWER_ADVERTISE", sound)], "");
        let options = server::options(&settings).expect("sound");
        assert_eq!(options.cluster.advertise.as_deref(), Some(sound));
    }
    for wrong in [
        "one.example:7070",
        "https://",
        "ftp://one",
        "https://one/api",
        "https://a@b",
    ] {
        let text = faults(&format!("advertise = \"{wrong}\"")).join("\n");
        assert!(
            text.contains(wrong) && text.contains("https://HOST:PORT"),
            "{text}"
        );
    }
}
