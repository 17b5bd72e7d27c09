//! A network that tests can break: what goes through a [`Proxy`] can be cut, held up one way, and delayed.
//!
//! Each connection has two threads, one a direction. A direction that is held up keeps what it has read and reads no more,
//! so that its sender sees what a silent network shows: nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::free_port;

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From whoever dialled.
    Up,
    /// To whoever dialled.
    Down,
}

pub struct Proxy {
    listen: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: SocketAddr,
    weather: Mutex<Weather>,
    changed: Condvar,
}

#[derive(Default)]
struct Weather {
    held: [bool; 2],
    delay: Duration,
    /// Both ends of every connection that there is.
    open: Vec<(u64, [TcpStream; 2])>,
    numbers: u64,
    ended: bool,
}

impl Proxy {
    /// Leads to `upstream`, such as `127.0.0.1:7070`, which need not be there yet.
    #[track_caller]
    pub fn start(upstream: &str) -> Self {
        let upstream = upstream.parse().expect("an address and port");
        let listen = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let listener = TcpListener::bind(listen).expect("a free port");
        let shared = Arc::new(Shared {
            upstream,
            weather: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accepting.accept(&listener));
        Self { listen, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// Breaks every connection that there is. What was under way is lost.
    pub fn cut(&self) {
        let mut weather = self.shared.weather();
        for (_, ends) in weather.open.drain(..) {
            close(&ends);
        }
        drop(weather);
        self.shared.changed.notify_all();
    }

    /// Holds up what goes one way, or lets it go on.
    pub fn hold(&self, way: Way, held: bool) {
        self.shared.weather().held[way as usize] = held;
        self.shared.changed.notify_all();
    }

    /// Everything takes so much longer.
    pub fn delay(&self, delay: Duration) {
        self.shared.weather().delay = delay;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.weather().ended = true;
        self.cut();
        // Wakes whoever accepts.
        let _ = TcpStream::connect(self.listen);
    }
}

fn close(ends: &[TcpStream; 2]) {
    for end in ends {
        let _ = end.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn weather(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for near in listener.incoming() {
            if self.weather().ended {
                return;
            }
            let Ok(near) = near else { continue };
            let shared = Arc::clone(&self);
            std::thread::spawn(move || shared.serve(near));
        }
    }

    /// One connection, for as long as both ends live.
    fn serve(self: Arc<Self>, near: TcpStream) {
        // Who is not there refuses at once, and so does this.
        let Ok(far) = TcpStream::connect(self.upstream) else {
            return;
        };
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let ends = [near, far];
        let clones = || {
            let [near, far] = &ends;
            Some([near.try_clone().ok()?, far.try_clone().ok()?])
        };
        let (Some(known), Some([near, far])) = (clones(), clones()) else {
            return;
        };
        let number = {
            let mut weather = self.weather();
            weather.numbers += 1;
            let number = weather.numbers;
            weather.open.push((number, known));
            number
        };
        let other = Arc::clone(&self);
        let [near_up, far_up] = ends;
        let up = std::thread::spawn(move || other.carry(Way::Up, number, near_up, far_up));
        self.carry(Way::Down, number, far, near);
        let _ = up.join();
        self.weather().open.retain(|(it, _)| *it != number);
    }

    fn carry(&self, way: Way, number: u64, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let delay = self.await_passage(way, number);
            std::thread::sleep(delay);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        close(&[from, to]);
    }

    /// Waits while the direction is held up, and says how long everything takes.
    fn await_passage(&self, way: Way, number: u64) -> Duration {
        let mut weather = self.weather();
        while weather.held[way as usize] && weather.open.iter().any(|(it, _)| *it == number) {
            weather = self
                .changed
                .wait(weather)
                .unwrap_or_else(PoisonError::into_inner);
        }
        weather.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that repeats what it hears, and a connection to it through a proxy.
    fn echo() -> (Proxy, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let upstream = listener.local_addr().expect("an address").to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut back = stream.try_clone().expect("the same once more");
                std::thread::spawn(move || std::io::copy(&mut stream, &mut back));
            }
        });
        let proxy = Proxy::start(&upstream);
        let stream = TcpStream::connect(proxy.listen).expect("a connection");
        (proxy, stream)
    }

    fn answer(stream: &mut TcpStream) -> std::io::Result<[u8; 2]> {
        let mut heard = [0; 2];
        stream.read_exact(&mut heard).map(|()| heard)
    }

    #[test]
    fn what_goes_in_comes_out_and_what_is_cut_does_not() {
        let (proxy, mut stream) = echo();
        stream.write_all(b"hi").expect("it is taken");
        assert_eq!(&answer(&mut stream).expect("an echo"), b"hi");
        proxy.cut();
        assert!(answer(&mut stream).is_err(), "the connection is gone");
    }

    #[test]
    fn what_is_held_up_arrives_later_or_never() {
        for way in [Way::Up, Way::Down] {
            let (proxy, mut stream) = echo();
            stream.write_all(b"hi").expect("it is taken");
            assert_eq!(&answer(&mut stream).expect("an echo"), b"hi");
            proxy.hold(way, true);
            stream.write_all(b"ho").expect("it is taken");
            let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
            assert!(answer(&mut stream).is_err(), "{way:?} is held up");
            let _ = stream.set_read_timeout(None);
            proxy.hold(way, false);
            assert_eq!(&answer(&mut stream).expect("an echo"), b"ho");
            proxy.hold(way, true);
            stream.write_all(b"he").expect("it is taken");
            proxy.cut();
            assert!(answer(&mut stream).is_err(), "{way:?} was cut");
        }
    }
}
