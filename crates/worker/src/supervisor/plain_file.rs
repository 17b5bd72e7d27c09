//! Files that a command leaves for us. It owns the directory they lie in and may put anything there, while the reader may be
//! root: only a plain file with one name is read, and a link is not followed.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.nlink() != 1 {
        return Err(io::Error::other("it is not a plain file"));
    }
    Ok((file, about))
}

/// The whole file, if it has at most so many bytes.
pub fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let (file, about) = open(path)?;
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let length = about.len();
        let message = format!("it has {length} bytes, the limit is {most}");
        return Err(io::Error::other(message));
    }
    Ok(bytes)
}
