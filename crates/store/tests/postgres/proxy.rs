//! A connection to the server that a test can cut or hold where it hurts most.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// What happens when COMMIT comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It goes through, and the connection is cut before the answer.
    After,
    /// The connection is cut in front of it.
    Before,
    /// It waits until it is let go.
    Hold,
    /// The connection is cut with the first message of the transaction.
    Begin,
}

pub struct Proxy {
    port: u16,
    armed: Arc<Mutex<Option<At>>>,
    held: Mutex<Receiver<()>>,
    release: Arc<AtomicBool>,
}

impl Proxy {
    /// Listens in front of a port of this machine.
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let armed = Arc::new(Mutex::new(None));
        let release = Arc::new(AtomicBool::new(false));
        let (tell, held) = channel();
        let (armed_here, release_here) = (Arc::clone(&armed), Arc::clone(&release));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", server));
                let Ok(server) = server else { continue };
                let connection = Connection {
                    client,
                    server,
                    armed: Arc::clone(&armed_here),
                    held: tell.clone(),
                    release: Arc::clone(&release_here),
                };
                connection.start();
            }
        });
        Self {
            port,
            armed,
            held: Mutex::new(held),
            release,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Does this to the next COMMIT, once.
    pub fn arm(&self, at: At) {
        *self.armed.lock().expect("no test panicked") = Some(at);
    }

    /// Waits until a COMMIT is held, or the connection was cut.
    pub fn wait(&self) {
        let held = self.held.lock().expect("no test panicked");
        held.recv().expect("a connection");
    }

    pub fn release(&self) {
        self.release.store(true, Ordering::SeqCst);
    }
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
    armed: Arc<Mutex<Option<At>>>,
    held: Sender<()>,
    release: Arc<AtomicBool>,
}

impl Connection {
    fn start(self) {
        let (mut from, mut to) = (
            self.server.try_clone().expect("a stream"),
            self.client.try_clone().expect("a stream"),
        );
        let mute = Arc::new(AtomicBool::new(false));
        let muted = Arc::clone(&mute);
        thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                if muted.load(Ordering::SeqCst) || to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
        thread::spawn(move || self.forward(&mute));
    }

    /// What the client says. A simple query is one message, so it comes in one piece.
    fn forward(mut self, mute: &AtomicBool) {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = self.client.read(&mut bytes) {
            let said = &bytes[..count];
            match self.due(said) {
                Some(At::After) => {
                    mute.store(true, Ordering::SeqCst);
                    let _ = self.server.write_all(said);
                    // The server answers, and nobody hears it.
                    return self.cut();
                }
                Some(At::Before | At::Begin) => return self.cut(),
                Some(At::Hold) => {
                    let _ = self.held.send(());
                    while !self.release.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                }
                None => {}
            }
            if self.server.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = self.server.shutdown(Shutdown::Write);
    }

    fn due(&self, said: &[u8]) -> Option<At> {
        let mut armed = self.armed.lock().expect("no test panicked");
        let word: &[u8] = match *armed {
            Some(At::Begin) => b"BEGIN\0",
            _ => b"COMMIT\0",
        };
        let comes = said.windows(word.len()).any(|window| window == word);
        if comes { armed.take() } else { None }
    }

    fn cut(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.held.send(());
    }
}
