//! What the database of a bench uses of this machine: PostgreSQL's processes, found by the port that their server listens on.
//!
//! A connection is a process there, child of the one that listens, so its CPU is that of the listener, of its children, and
//! of those children that have ended. A database on another machine, or one whose processes this user may not look into,
//! tells nothing.

use std::fs;

use ureq::http::Uri;

use super::usage::Cpu;

const DEFAULT_PORT: u16 = 5432;
/// The state of a socket that listens, as the kernel writes it.
const LISTEN: &str = "0A";

pub struct Watch {
    listener: Option<u32>,
}

impl Watch {
    /// The database at this URL, if there is one.
    pub fn of(store: Option<&str>) -> Self {
        let listener = store.and_then(port).and_then(listener);
        Self { listener }
    }

    pub fn cpu(&self) -> Option<Cpu> {
        let listener = self.listener?;
        let own = Cpu::of(listener)?.plus(Cpu::of_ended_children(listener)?);
        // One that ends meanwhile is counted with the ended ones next time.
        let children = children(listener).into_iter().filter_map(Cpu::of);
        Some(children.fold(own, Cpu::plus))
    }
}

fn port(store: &str) -> Option<u16> {
    let uri: Uri = store.parse().ok()?;
    let here = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    here.then(|| uri.port_u16().unwrap_or(DEFAULT_PORT))
}

fn listener(port: u16) -> Option<u32> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let holds = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd"));
        files.into_iter().flatten().flatten().any(|file| {
            let link = fs::read_link(file.path()).unwrap_or_default();
            sockets
                .iter()
                .any(|socket| link.as_os_str() == socket.as_str())
        })
    };
    // Children inherit the socket: the listener is the one whose parent does not hold it.
    let holders: Vec<u32> = processes().filter(holds).collect();
    let apart = |pid: &&u32| parent(**pid).is_none_or(|parent| !holders.contains(&parent));
    holders.iter().find(apart).copied()
}

/// The sockets of a table of the kernel that listen on this port.
fn listening(table: &str, port: u16) -> Vec<String> {
    let end = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace());
    rows.filter_map(|mut fields| {
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?;
        (local.ends_with(&end) && state == LISTEN).then(|| inode.to_owned())
    })
    .collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn children(pid: u32) -> Vec<u32> {
    processes()
        .filter(|child| parent(*child) == Some(pid))
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_a_database_here() {
        let ports = |url| port(url);
        assert_eq!(ports("postgres://a:b@127.0.0.1:6000/d"), Some(6000));
        assert_eq!(ports("postgres://localhost/d?sslmode=disable"), Some(5432));
        assert_eq!(ports("postgres://db.example:6000/d"), None);
    }

    #[test]
    fn who_listens_is_told_by_the_table_of_sockets() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1770 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1\n\
            1: 0100007F:1770 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 4712 1\n\
            2: 0100007F:1771 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4713 1\n";
        assert_eq!(listening(table, 6000), ["4711"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_by_its_port() {
        let held = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = held.local_addr().expect("an address").port();
        assert_eq!(listener(port), Some(std::process::id()));
    }
}
