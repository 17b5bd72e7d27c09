//! The packages, made from the debug binary, unpacked and tried as on a machine that has nothing else.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use xtask::cargo::binary_under_test;
use xtask::dist::{Choice, make};

/// Packages made once for all tests; `None` without a binary.
fn packages() -> Option<&'static Path> {
    static MADE: OnceLock<Option<TempDir>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let binary = binary_under_test().expect("a binary, if one is named");
        let Some(binary) = binary else {
            eprintln!("skipped: there is no debug build of drumtower to package");
            return None;
        };
        let out = tempfile::tempdir().expect("a directory");
        make(&Choice {
            binary: Some(binary),
            target: None,
            out: Some(out.path().to_owned()),
        })
        .expect("the packages are made");
        Some(out)
    });
    made.as_ref().map(TempDir::path)
}

fn package(out: &Path, ending: &str) -> PathBuf {
    let entries = fs::read_dir(out).expect("a directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(ending));
    found.unwrap_or_else(|| panic!("no package ends with {ending}"))
}

/// What a program prints, when it succeeds.
#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {said}{complaint}"
    );
    said
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path is text")
}

/// A server that goes with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_sums_hold() {
    let Some(out) = packages() else { return };
    let mut check = Command::new("sha256sum");
    check.args(["-c", "SHA256SUMS"]).current_dir(out);
    let output = check.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert!(!out.join("work").exists(), "nothing else is left");
}

#[test]
fn the_tarball_starts_from_an_empty_home() {
    let Some(out) = packages() else { return };
    let place = tempfile::tempdir().expect("a directory");
    run(
        "tar",
        &[
            "-xzf",
            text(&package(out, ".tar.gz")),
            "-C",
            text(place.path()),
        ],
    );
    let mut entries = fs::read_dir(place.path()).expect("a directory");
    let unpacked = entries.next().expect("one directory").expect("it").path();
    assert!(
        entries.next().is_none(),
        "one directory and nothing beside it"
    );
    for file in [
        "README.md",
        "LICENSE",
        "THIRD-PARTY-LICENSES.txt",
        "drumtower.toml",
    ] {
        assert!(unpacked.join(file).is_file(), "{file}");
    }
    let home = tempfile::tempdir().expect("a directory");
    let drumtower = |arguments: &[&str]| {
        let mut command = Command::new(unpacked.join("drumtower"));
        command.args(arguments).env_clear().env("HOME", home.path());
        command.current_dir(home.path()).stdin(Stdio::null());
        command
    };
    let mut dev = drumtower(&["dev", "--demo", "--listen", "127.0.0.1:0"]);
    dev.stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Running(dev.spawn().expect("it starts"));
    let since = Instant::now();
    loop {
        let listed = drumtower(&["job", "list", "-o", "json"])
            .output()
            .expect("it starts");
        if listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("greet") {
            break;
        }
        assert!(
            server.0.try_wait().expect("a child").is_none(),
            "the server ended"
        );
        assert!(since.elapsed() < Duration::from_secs(60), "{listed:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_debian_package_installs_upgrades_and_goes() {
    let Some(out) = packages() else { return };
    let deb = package(out, ".deb");
    let fields = run("dpkg-deb", &["--field", text(&deb)]);
    for field in ["Package: drumtower", "Section: admin", "Architecture: "] {
        assert!(fields.contains(field), "{fields}");
    }
    let root = tempfile::tempdir().expect("a directory");
    let admin = root.path().join("var/lib/dpkg");
    for directory in ["info", "updates", "triggers", "parts"] {
        fs::create_dir_all(admin.join(directory)).expect("a directory");
    }
    for file in ["status", "available"] {
        fs::write(admin.join(file), "").expect("a file");
    }
    let rooted = format!("--root={}", root.path().display());
    let log = format!("--log={}", root.path().join("dpkg.log").display());
    let dpkg = |arguments: &[&str]| {
        let force = "--force-script-chrootless,not-root,depends,bad-path,unsafe-io";
        run("dpkg", &[&[&rooted, &log, force], arguments].concat())
    };
    dpkg(&["--install", text(&deb)]);
    let configuration = root.path().join("etc/drumtower/drumtower.toml");
    fs::write(&configuration, "# mine\n").expect("it is written");
    dpkg(&["--install", text(&deb)]);
    assert_eq!(
        fs::read_to_string(&configuration).expect("it is read"),
        "# mine\n"
    );
    let binary = root.path().join("usr/bin/drumtower");
    assert_eq!(
        fs::metadata(&binary).expect("it").permissions().mode() & 0o777,
        0o755
    );
    run(text(&binary), &["--version"]);
    let data = root.path().join("var/lib/drumtower");
    fs::create_dir_all(data.join("backups/one")).expect("a directory");
    fs::write(data.join("drumtower.db"), "").expect("a file");
    dpkg(&["--remove", "drumtower"]);
    assert!(!binary.exists() && configuration.exists());
    assert!(data.join("drumtower.db").exists(), "removal keeps data");
    dpkg(&["--purge", "drumtower"]);
    assert!(!configuration.exists());
    assert!(!data.join("drumtower.db").exists(), "a purge removes data");
    assert!(data.join("backups/one").exists(), "and keeps backups");
}

#[test]
fn the_units_are_sound() {
    let Some(out) = packages() else { return };
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        return eprintln!("skipped: there is no systemd-analyze");
    }
    let root = tempfile::tempdir().expect("a directory");
    run(
        "dpkg-deb",
        &["-x", text(&package(out, ".deb")), text(root.path())],
    );
    let units = root.path().join("lib/systemd/system");
    let entries = fs::read_dir(&units).expect("a directory");
    let mut checked = 0;
    for entry in entries {
        let path = entry.expect("an entry").path();
        // The commands are not where the units look for them; all else is checked as it is.
        let unit = fs::read_to_string(&path).expect("a unit");
        let found = unit.replace(
            "/usr/bin/drumtower",
            text(&root.path().join("usr/bin/drumtower")),
        );
        fs::write(&path, found).expect("it is written");
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no"]).arg(&path);
        let output = verify.output().expect("it starts");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!complaint.contains("drumtower"), "{complaint}");
        checked += 1;
    }
    assert_eq!(checked, 2);
}

#[test]
fn the_container_file_copies_what_exists_and_starts_what_it_copies() {
    let root = xtask::tree::root();
    let file = fs::read_to_string(root.join("deploy/Containerfile")).expect("it is there");
    let mut sources = 0;
    for line in file.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0].starts_with("--from") {
            continue;
        }
        for source in &words[..words.len() - 1] {
            assert!(
                root.join(source).exists(),
                "{source} is copied and does not exist"
            );
            sources += 1;
        }
    }
    assert!(sources > 3);
    the_console_is_built_into_it(&file);
    let Some(binary) = binary_under_test().expect("a binary, if one is named") else {
        return;
    };
    let checks = |stage: &str| -> Vec<String> {
        let stage = file.split("\nFROM ").find(|part| {
            let first = part.lines().next().unwrap_or_default();
            first.ends_with(&format!(" AS {stage}"))
        });
        let lines = stage.expect("the stage is there").lines();
        let lines = lines.filter(|line| line.starts_with("HEALTHCHECK"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(checks("worker"), ["HEALTHCHECK NONE"]);
    let server = file.rfind("AS server").expect("the server");
    assert!(
        !file[server..].contains("\nFROM "),
        "the last stage is built"
    );
    let health = checks("server").pop().expect("one");
    let list = health.split_once("CMD ").expect("a command").1;
    let words: Vec<String> = serde_json::from_str(list).expect("a list of words");
    let (program, arguments) = words.split_first().expect("a program");
    assert_eq!(program, "drumtower");
    assert_eq!(arguments, ["ready"], "listings answer without a commit");
    let mut help: Vec<&str> = arguments.iter().map(String::as_str).collect();
    help.push("--help");
    run(text(&binary), &help);
}

/// The console is built before the program, from a stage of its own, and lies where the build of the server looks for it.
fn the_console_is_built_into_it(file: &str) {
    let place = |line: &str| {
        let found = file.lines().position(|it| it == line);
        found.unwrap_or_else(|| panic!("no line is `{line}`"))
    };
    let install = place("RUN npm ci");
    let build = place("RUN npm run build");
    let copy = place("COPY --from=console /src/console/embedded console/embedded");
    let program = file
        .lines()
        .position(|it| it.starts_with("RUN cargo build"));
    let program = program.expect("the program is built");
    assert!(install < build && build < copy && copy < program);
    // What it is built with is in the image, whatever lies beside it on the machine.
    let stage = file.lines().take(build);
    let copied: Vec<&str> = stage
        .filter_map(|line| line.strip_prefix("COPY "))
        .flat_map(str::split_whitespace)
        .collect();
    let files = xtask::tree::files(&xtask::tree::root());
    let inside = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("console/"));
    let names: BTreeSet<&str> = inside.filter_map(|path| path.split('/').next()).collect();
    assert!(names.contains("src"), "{names:?}");
    for name in names {
        // It is made by the build.
        if name == "embedded" {
            continue;
        }
        let source = format!("console/{name}");
        assert!(copied.contains(&source.as_str()), "{source} is not copied");
    }
}

#[test]
fn the_image_is_built_without_what_builds_leave_behind() {
    let root = xtask::tree::root();
    let ignored = fs::read_to_string(root.join(".containerignore")).expect("it is there");
    for name in ["**/node_modules", "target", ".git"] {
        assert!(ignored.lines().any(|line| line == name), "{name}");
    }
}

#[test]
fn the_units_allow_what_the_program_needs() {
    let root = xtask::tree::root();
    let unit = |name: &str| {
        let path = root.join("deploy/systemd").join(name);
        fs::read_to_string(path).expect("a unit")
    };
    let server = unit("drumtower.service");
    let families = server
        .lines()
        .find_map(|line| line.strip_prefix("RestrictAddressFamilies="));
    let families: Vec<&str> = families.expect("families").split(' ').collect();
    assert!(families.contains(&"AF_NETLINK"), "{families:?}");
    let worker = unit("drumtower-worker.service");
    assert!(worker.lines().any(|line| line == "Delegate=yes"));
}

/// The compose file as JSON.
fn compose(root: &Path) -> serde_json::Value {
    let mut python = Command::new("python3");
    let program = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    python
        .args(["-c", program])
        .arg(root.join("deploy/compose.yaml"));
    let output = python.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_compose_file_refers_to_what_exists() {
    let root = xtask::tree::root();
    let file = compose(&root);
    let names = |of: &serde_json::Value| -> Vec<String> {
        let map = of.as_object().expect("a map");
        map.keys().cloned().collect()
    };
    let services = names(&file["services"]);
    for wanted in [
        "postgres",
        "drumtower-1",
        "drumtower-2",
        "drumtower-3",
        "worker",
        "nginx",
    ] {
        assert!(services.iter().any(|name| name == wanted), "{services:?}");
    }
    // Whatever a program is told by a variable is a key of its configuration.
    let known = fs::read_to_string(root.join("docs/reference/configuration.md")).expect("a page");
    for (name, service) in file["services"].as_object().expect("a map") {
        let variables = names(service.get("environment").unwrap_or(&serde_json::json!({})));
        for variable in variables.iter().filter(|it| it.starts_with("DRUMTOWER_")) {
            assert!(known.contains(&**variable), "{name}: {variable}");
        }
        let needed = match &service["depends_on"] {
            serde_json::Value::Array(list) => list
                .iter()
                .map(|it| it.as_str().expect("a name").to_owned())
                .collect(),
            serde_json::Value::Null => Vec::new(),
            map => names(map),
        };
        assert!(needed.iter().all(|it| services.contains(it)), "{needed:?}");
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let source = volume.as_str().and_then(|it| it.split(':').next());
            let source = source.expect("a volume");
            let there = match source.strip_prefix("./") {
                Some(path) => root.join("deploy").join(path).exists(),
                None => names(&file["volumes"]).iter().any(|it| it == source),
            };
            assert!(there, "{name}: {source}");
        }
    }
    // Each server is reached by others, and by nginx, under the name that it has here.
    let nginx = fs::read_to_string(root.join("deploy/nginx/compose.conf")).expect("it is there");
    for server in ["drumtower-1", "drumtower-2", "drumtower-3"] {
        let advertised = &file["services"][server]["environment"]["DRUMTOWER_ADVERTISE"];
        assert_eq!(advertised, &format!("http://{server}:7070"));
        assert!(nginx.contains(&format!("server {server}:7070 ")));
    }
}
