//! nginx in front of three servers, with the configuration that is shipped: commands, streams of changes, output that is
//! followed, and workers go through it, also after the owner is gone.

use std::path::Path;
use std::process::Command;

use drumtower_e2e::{Cli, Process, Site, eventually, free_port};

use crate::sent_on::{Encrypted, agent, beside, manifest};
use crate::world::Database;

/// Starts nginx with the shipped configuration, its names and addresses replaced by those of the test.
fn balancer(site: &Site, world: &Encrypted, port: u16) -> Process {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shipped = root.join("deploy/nginx/drumtower.conf");
    let mut text = std::fs::read_to_string(shipped).expect("it is shipped");
    let issued = world
        .authority
        .issue(site.path(), "balancer", &["127.0.0.1"], 2090);
    for (number, member) in (1..).zip(&world.members) {
        let named = format!("drumtower-{number}.example:7070");
        assert!(text.contains(&named), "{text}");
        text = text.replace(&named, member.server.listen());
    }
    let path = |path: &Path| path.display().to_string();
    for (named, real) in [
        ("listen 443 ", format!("listen 127.0.0.1:{port} ")),
        ("/etc/drumtower/balancer.pem", path(&issued.cert)),
        ("/etc/drumtower/balancer.key", path(&issued.key)),
        ("/etc/drumtower/ca.pem", path(&world.authority.file)),
    ] {
        assert!(text.contains(named), "{named}");
        text = text.replace(named, &real);
    }
    let place = path(&site.dir("nginx"));
    let scratch: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|it| format!("{it}_temp_path {place}/{it};\n"))
        .concat();
    let whole = format!(
        "daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{scratch}{text}\n}}\n"
    );
    let file = site.path().join("nginx.conf");
    std::fs::write(&file, whole).expect("written");
    let mut nginx = Command::new("nginx");
    nginx.args(["-e", "stderr", "-p", &place, "-c"]).arg(&file);
    Process::spawn(nginx, &site.path().join("nginx.log"))
}

#[test]
fn everything_goes_through_a_plain_load_balancer() {
    let (site, database) = (Site::new(), Database::start());
    let mut world = Encrypted::start(&site, &database, &["a", "b", "c"]);
    let port = free_port();
    let mut nginx = balancer(&site, &world, port);
    let url = format!("https://127.0.0.1:{port}");
    let admin = beside(&site, &world.members[0]);
    let token = admin.ok(&["token", "create", "people", "--role", "admin"]);
    let cli = Cli::new(site.path())
        .env("DRUMTOWER_URL", &url)
        .env("DRUMTOWER_CA", world.authority.file.display().to_string())
        .env("DRUMTOWER_TOKEN", token.trim());
    eventually("the balancer answers", || {
        assert!(nginx.ended().is_none(), "{}", nginx.log());
        (cli.run(&["ready"]).code == 0).then_some(())
    });
    // REST, by each of the servers in turn.
    for number in 0..6 {
        let name = format!("job-{number}");
        cli.ok(&["apply", "-f", &manifest(&site, &name, "true")]);
    }
    let script = "for i in 1 2 3; do echo $i; sleep 0.1; done";
    cli.ok(&["apply", "-f", &manifest(&site, "counts", script)]);
    // gRPC.
    let workers = admin.ok(&["token", "create", "agents", "--role", "worker"]);
    let agent = agent(&site, &url, &world.authority.file, workers.trim());
    // Server-sent events.
    let command = cli.command(&["watch", "--job", "counts", "-o", "json"]);
    let watcher = Process::spawn(command, &site.path().join("watch.json"));
    let saw = |words: &str| eventually(words, || watcher.log().contains(words).then_some(()));
    saw("\"ready\"");
    let first = cli.ok(&["job", "trigger", "counts"]);
    assert_eq!(cli.ok(&["run", "logs", first.trim(), "-f"]), "1\n2\n3\n");
    saw(first.trim());
    // The owner is gone: nginx leaves it out, and the others have the work.
    world.members[0].server.kill();
    let second = eventually("a run is made after the take-over", || {
        let told = cli.run(&["job", "trigger", "counts", "--key", "second"]);
        (told.code == 0).then(|| told.stdout.trim().to_owned())
    });
    eventually("the run has ended", || {
        let logs = cli.run(&["run", "logs", &second, "-f"]);
        (logs.stdout == "1\n2\n3\n").then_some(())
    });
    saw(&second);
    assert!(nginx.ended().is_none(), "{}", nginx.log());
    drop(agent);
}
