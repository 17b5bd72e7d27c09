//! A small real HTTP server: one request a connection, remembered as it came.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct Web {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Web {
    /// Answers each request with what the function makes of it: a whole answer, or nothing, which keeps the connection open
    /// for ever.
    pub fn start(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noted, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &noted, &*answer));
            }
        });
        Self { address, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn count(&self) -> usize {
        self.seen.lock().expect("a list").len()
    }

    /// Every request, head and body, oldest first.
    pub fn all(&self) -> Vec<String> {
        self.seen.lock().expect("a list").clone()
    }

    /// The last request, head and body.
    pub fn last(&self) -> String {
        let seen = self.seen.lock().expect("a list");
        seen.last().cloned().unwrap_or_default()
    }
}

/// A whole answer.
pub fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    format!("HTTP/1.1 {status} Said\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: &(impl Fn(&str) -> Option<String> + ?Sized),
) {
    // One that was cut off, as by a caller that was killed, is none.
    let Some(request) = read(&mut stream) else {
        return;
    };
    seen.lock().expect("a list").push(request.clone());
    match answer(&request) {
        Some(answer) => drop(stream.write_all(answer.as_bytes())),
        // Until the other end hangs up.
        None => drop(stream.read(&mut [0])),
    }
}

/// The head, and as much of a body as it says; `None` when the connection ends before that.
fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
    }
}
