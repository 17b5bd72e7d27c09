//! Every module opens with what it owns.

use super::Finding;
use crate::tree::File;

pub fn check(files: &[File]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| is_module(&file.path))
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| {
            let message = "must start with a `//!` comment: what it owns, its invariants, what it leaves to others";
            Finding::new(&file.path, 1, message)
        })
        .collect()
}

fn is_module(path: &str) -> bool {
    let mut parts = path.split('/');
    let inside = match parts.next() {
        Some("crates") => parts.nth(1) == Some("src"),
        Some("xtask") => parts.next() == Some("src"),
        _ => false,
    };
    inside && path.ends_with(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_an_opening_comment_is_found() {
        let bad = File::new("crates/core/src/wheel/mod.rs", "use std::mem;\n");
        assert_eq!(check(&[bad]).len(), 1);
    }

    #[test]
    fn opened_modules_tests_and_build_scripts_pass() {
        let good = File::new("crates/core/src/lib.rs", "//! The pure heart.\n");
        let test = File::new("crates/core/tests/wheel.rs", "fn main() {}\n");
        assert!(check(&[good, test]).is_empty());
    }
}
