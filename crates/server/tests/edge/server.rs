//! A server of one's own, in a directory of its own, on a port of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drumtower_server::auth::first_start::Bootstrap;
use drumtower_server::driver;
use drumtower_server::serve::{self, Options, Started};
use drumtower_store::{Read, Store, sqlite};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Client;

/// Only a hang reaches it.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Server {
    pub url: String,
    pub local: String,
    pub bootstrap: Bootstrap,
    directory: Option<TempDir>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), serve::Error>>,
}

impl Server {
    pub async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap()).await
    }

    pub async fn start_in(directory: TempDir) -> Self {
        Self::start_with(directory, |_| {}).await
    }

    /// With other options than most tests.
    pub async fn start_with(directory: TempDir, choose: impl FnOnce(&mut Options)) -> Self {
        Self::launch(directory, choose, |writer| Box::new(writer)).await
    }

    /// On the embedded store as `wrap` wraps its writer.
    pub async fn start_on(
        directory: TempDir,
        driver: driver::Options,
        wrap: impl FnOnce(sqlite::Writer) -> Box<dyn Store>,
    ) -> Self {
        Self::launch(directory, |options| options.driver = driver, wrap).await
    }

    async fn launch(
        directory: TempDir,
        choose: impl FnOnce(&mut Options),
        wrap: impl FnOnce(sqlite::Writer) -> Box<dyn Store>,
    ) -> Self {
        let open = |options: &Options| {
            let (writer, reader) = sqlite::open(&options.data, options.store.clone()).unwrap();
            (wrap(writer), Arc::new(reader) as Arc<dyn Read>)
        };
        Self::launch_on(directory, choose, open).await
    }

    /// On whatever store `open` opens.
    pub async fn launch_on(
        directory: TempDir,
        choose: impl FnOnce(&mut Options),
        open: impl FnOnce(&Options) -> (Box<dyn Store>, Arc<dyn Read>),
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut options = Options::new(directory.path().to_owned(), address);
        choose(&mut options);
        let listener = TcpListener::bind(address).await.unwrap();
        let (store, reader) = open(&options);
        let task = tokio::spawn(serve::run_on(
            options,
            listener,
            store,
            reader,
            move |started| tell.send(started).unwrap(),
            async {
                let _ = stopped.await;
            },
        ));
        let started = tokio::time::timeout(PATIENCE, told).await.unwrap();
        let Ok(Started {
            url,
            local,
            bootstrap,
            ..
        }) = started
        else {
            panic!("the server did not start: {:?}", task.await);
        };
        Self {
            url,
            local: local.text().to_owned(),
            bootstrap,
            directory: Some(directory),
            stop,
            task,
        }
    }

    /// Ends the server and hands its directory back.
    pub async fn stop(mut self) -> TempDir {
        let _ = self.stop.send(());
        tokio::time::timeout(PATIENCE, self.task)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        self.directory.take().unwrap()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.data().join(name)
    }

    pub fn data(&self) -> &Path {
        self.directory.as_ref().unwrap().path()
    }

    /// A client with the local admin's token.
    pub fn admin(&self) -> Client {
        Client::new(&self.url, Some(&self.local))
    }

    pub fn with(&self, token: Option<&str>) -> Client {
        Client::new(&self.url, token)
    }

    /// A client with a fresh token.
    pub async fn client(&self, role: &str, namespace: Option<&str>) -> Client {
        self.with(Some(&self.token(role, namespace).await))
    }

    pub async fn token(&self, role: &str, namespace: Option<&str>) -> String {
        let name = format!("{role}-{}-{}", namespace.unwrap_or("all"), rand_name());
        let body = json!({"name": name, "role": role, "namespace": namespace});
        let answer = self.admin().post("/api/v1/tokens", &body).await.expect(201);
        answer["secret"].as_str().unwrap().to_owned()
    }
}

/// Asks again and again until there is an answer.
pub async fn eventually<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer,
        Err(_) => panic!("it never came true that {what}"),
    }
}

/// A name that no other call has got.
pub fn rand_name() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("n{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
