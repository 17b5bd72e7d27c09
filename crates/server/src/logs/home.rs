//! The name of a directory of output: drawn when it is first needed, kept in it, and moved with it.

use std::io::{self, ErrorKind};
use std::path::Path;

use drumtower_core::model::Home;

const FILE: &str = "home";

pub(super) fn of(directory: &Path) -> io::Result<Home> {
    let path = directory.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let number = u64::from_str_radix(text.trim(), 16);
            let wrong = |_| {
                let words = format!(
                    "{} does not hold the name of this directory, sixteen hexadecimal digits: remove it, and a new name is drawn; output of runs until now is then not found any more",
                    path.display()
                );
                io::Error::new(ErrorKind::InvalidData, words)
            };
            number.map(Home).map_err(wrong)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => draw(directory),
        Err(error) => Err(error),
    }
}

fn draw(directory: &Path) -> io::Result<Home> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let number = u64::from_le_bytes(bytes);
    // Renamed into place, so that a crash leaves no name or a whole one.
    let begun = directory.join("home.new");
    std::fs::write(&begun, format!("{number:016x}\n"))?;
    std::fs::File::open(&begun)?.sync_all()?;
    std::fs::rename(&begun, directory.join(FILE))?;
    std::fs::File::open(directory)?.sync_all()?;
    Ok(Home(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_name() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = of(one.path()).unwrap();
        assert_eq!(of(one.path()).unwrap(), name);
        assert_ne!(of(other.path()).unwrap(), name);
        std::fs::write(one.path().join(FILE), "somewhere").unwrap();
        let error = of(one.path()).unwrap_err().to_string();
        assert!(error.contains("sixteen hexadecimal digits"), "{error}");
    }
}
