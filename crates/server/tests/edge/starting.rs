//! What keeps a server from starting, in words that say what to do.

use std::net::SocketAddr;

use drumtower_server::serve::{self, Error, Options};

use crate::server::Server;

async fn refused(data: &std::path::Path, listen: SocketAddr) -> Error {
    let options = Options::new(data.to_owned(), listen);
    let started = |_| panic!("it must not start");
    serve::run(options, started, std::future::pending())
        .await
        .unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn other_machines_are_not_served_unencrypted_by_accident() {
    let data = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = refused(data.path(), address.parse().unwrap()).await;
        assert!(matches!(error, Error::NotLoopback(_)), "{error}");
        assert!(error.to_string().contains("--insecure"), "{error}");
    }
    assert_eq!(
        std::fs::read_dir(data.path()).unwrap().count(),
        0,
        "nothing was made"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_costs_nothing() {
    let server = Server::start().await;
    let data = tempfile::tempdir().unwrap();
    let taken = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let error = refused(data.path(), taken).await;
    assert!(matches!(error, Error::InUse(_)), "{error}");
    assert!(error.to_string().contains("--listen"), "{error}");
    assert_eq!(
        std::fs::read_dir(data.path()).unwrap().count(),
        0,
        "nothing was made"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_in_use_is_left_alone() {
    let server = Server::start().await;
    let error = refused(server.data(), ([127, 0, 0, 1], 0).into()).await;
    assert!(
        matches!(error, Error::Store(drumtower_store::Error::Locked(_))),
        "{error}"
    );
    server.admin().get("/api/v1/tokens").await.expect(200);
    server.stop().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn others_read_nothing_even_in_a_directory_that_is_open_to_them() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let server = Server::start_in(directory).await;
    let secret = [
        "drumtower.db",
        "drumtower.db-wal",
        "local.token",
        "bootstrap.token",
        "logs/00000001.log",
    ];
    for name in secret {
        let mode = std::fs::metadata(server.file(name))
            .expect(name)
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
    server.stop().await;
}
