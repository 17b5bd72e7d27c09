//! An answer for those who speak plain HTTP where TLS is spoken.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The first byte of every TLS connection: a handshake record.
const HANDSHAKE: u8 = 0x16;
const WORDS: &str = "this port speaks TLS: use https:// instead of http://\n";
/// Of what is sent, at most this much is read before the answer.
const READ_BYTES: usize = 16 * 1024;
const READ_TIMES: usize = 64;

/// Looks at the first byte without taking it.
pub(super) async fn is_tls(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    match socket.peek(&mut first).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(first[0] == HANDSHAKE),
    }
}

/// Says so in the words of the protocol that the other side seems to speak, and ends.
pub(super) async fn refuse(mut socket: TcpStream) -> io::Result<()> {
    let mut start = vec![0; READ_BYTES];
    // What was sent must be taken: closing on unread bytes would throw the answer away.
    let read = socket.read(&mut start).await?;
    let answer = if start[..read].starts_with(b"PRI * HTTP/2") {
        farewell()
    } else {
        let length = WORDS.len();
        format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{WORDS}"
        )
        .into_bytes()
    };
    socket.write_all(&answer).await?;
    socket.shutdown().await?;
    // The other side ends it: one that is cut off may not get to read the answer.
    for _ in 0..READ_TIMES {
        if socket.read(&mut start).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// HTTP/2: empty settings, then GOAWAY with the code for "not secure enough" and the words.
fn farewell() -> Vec<u8> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const INADEQUATE_SECURITY: [u8; 4] = [0, 0, 0, 0x0c];
    let words = WORDS.trim_end().as_bytes();
    let length = u8::try_from(words.len() + 8).unwrap_or(8);
    let mut frames = SETTINGS.to_vec();
    frames.extend([0, 0, length, 7, 0, 0, 0, 0, 0]);
    frames.extend([0, 0, 0, 0]);
    frames.extend(INADEQUATE_SECURITY);
    frames.extend(&words[..usize::from(length) - 8]);
    frames
}
