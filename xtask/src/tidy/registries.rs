//! No file names the host of a package registry: where packages come from is the builder's configuration.

use super::{Finding, numbered};
use crate::tree::File;

/// Cargo writes the source of each package into its lock file by itself.
const EXEMPT: &[&str] = &["Cargo.lock"];

/// Put together from pieces, so that this file does not object to itself.
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
    concat!("npm", "mirror.com"),
    concat!("registry.", "yarnpkg"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("ruby", "gems.org"),
    concat!("repo1.", "maven.org"),
    concat!("repo.", "maven.apache.org"),
    concat!("proxy.", "golang.org"),
];

pub fn check(files: &[File]) -> Vec<Finding> {
    let checked = files
        .iter()
        .filter(|file| !EXEMPT.contains(&file.path.as_str()));
    checked
        .flat_map(|file| numbered(file).filter_map(|(line, text)| complain(file, line, text)))
        .collect()
}

fn complain(file: &File, line: usize, text: &str) -> Option<Finding> {
    let lower = text.to_lowercase();
    let host = HOSTS.iter().find(|host| lower.contains(**host))?;
    Some(Finding::new(
        &file.path,
        line,
        format!("names the package registry {host}; leave that to the builder"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_is_found_in_any_file() {
        for host in HOSTS {
            let file = File::new(
                "docs/guide.md",
                format!("see https://{}/x\n", host.to_uppercase()),
            );
            assert_eq!(check(&[file]).len(), 1, "{host}");
        }
    }

    #[test]
    fn the_lock_file_is_exempt() {
        assert!(
            check(&[
                File::new("Cargo.lock", HOSTS[0]),
                File::new("a.rs", "fn a() {}\n")
            ])
            .is_empty()
        );
    }
}
