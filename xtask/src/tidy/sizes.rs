//! How long a file may grow.
//!
//! Past 500 lines a file is named aloud, past 800 the test fails. Performers of effects stay under 300: the
//! place where decisions turn into acts must be readable in one sitting.

use super::Finding;
use crate::tree::File;

const SOURCES: &[&str] = &["rs", "ts", "tsx", "py"];
const WARN_LINES: usize = 500;
const MAX_LINES: usize = 800;
const MAX_PERFORMER_LINES: usize = 300;

/// Files that turn the engine's effects into acts.
const PERFORMERS: &[&str] = &[
    "crates/server/src/driver/perform.rs",
    "crates/sim/src/server/perform.rs",
];

#[derive(Debug, Default)]
pub struct Report {
    pub warnings: Vec<Finding>,
    pub findings: Vec<Finding>,
}

pub fn check(files: &[File]) -> Report {
    let mut report = Report::default();
    for file in files.iter().filter(|file| file.has_extension(SOURCES)) {
        let lines = file.text.lines().count();
        let limit = if PERFORMERS.contains(&file.path.as_str()) {
            MAX_PERFORMER_LINES
        } else {
            MAX_LINES
        };
        if lines > limit {
            let message = format!("{lines} lines, at most {limit}; split it by what it owns");
            report.findings.push(Finding::new(&file.path, 0, message));
        } else if lines > WARN_LINES {
            let message = format!("{lines} lines; past {MAX_LINES} the test fails");
            report.warnings.push(Finding::new(&file.path, 0, message));
        }
    }
    report.findings.extend(absent_performers(files));
    report
}

/// A performer that was renamed would escape its limit in silence.
fn absent_performers(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for performer in PERFORMERS {
        let directory = performer
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory);
        let begun = files
            .iter()
            .any(|file| file.path.starts_with(&format!("{directory}/")));
        if begun && !files.iter().any(|file| file.path == *performer) {
            let message = "listed as a performer of effects and absent; name the right file in xtask/src/tidy/sizes.rs";
            findings.push(Finding::new(performer, 0, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> File {
        File::new(path, "x\n".repeat(lines))
    }

    #[test]
    fn long_files_warn_and_longer_ones_fail() {
        let report = check(&[
            file("a.rs", 500),
            file("b.py", 501),
            file("c.ts", 800),
            file("d.rs", 801),
            file("e.md", 9_000),
        ]);
        let warned: Vec<&str> = report.warnings.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(warned, ["b.py", "c.ts"]);
        assert_eq!(report.findings.len(), 1);
        assert_eq!(report.findings[0].path, "d.rs");
    }

    #[test]
    fn a_performer_has_the_smaller_limit() {
        assert!(check(&[file(PERFORMERS[0], 300)]).findings.is_empty());
        assert_eq!(check(&[file(PERFORMERS[0], 301)]).findings.len(), 1);
    }

    #[test]
    fn a_renamed_performer_is_missed() {
        assert_eq!(
            check(&[file("crates/server/src/driver/mod.rs", 10)])
                .findings
                .len(),
            1
        );
    }
}
