//! The packages, made from the debug binary, unpacked and tried as on a machine that has nothing else.

#![cfg(target_os = "linux")]

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
