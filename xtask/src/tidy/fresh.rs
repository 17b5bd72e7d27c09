//! Generated files say what their generator says.

use super::Finding;
use crate::generators::Generator;
use crate::tree::File;

/// `print` asks the built binary for what a file should contain.
pub fn check(
    files: &[File],
    generators: &[Generator],
    print: &dyn Fn(&Generator) -> Result<String, String>,
) -> Vec<Finding> {
    generators
        .iter()
        .filter_map(|it| {
            check_one(files, it, print)
                .err()
                .map(|why| Finding::new(it.path, 0, why))
        })
        .collect()
}

fn check_one(
    files: &[File],
    generator: &Generator,
    print: &dyn Fn(&Generator) -> Result<String, String>,
) -> Result<(), String> {
    let expected = print(generator)?;
    let kept = files
        .iter()
        .find(|file| file.path == generator.path)
        .ok_or("missing; run `cargo xtask codegen`")?;
    if kept.text == expected {
        return Ok(());
    }
    let pairs = kept.text.lines().zip(expected.lines());
    let same = pairs.take_while(|(old, new)| old == new).count();
    Err(format!(
        "stale from line {}; run `cargo xtask codegen`",
        same + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATOR: Generator = Generator {
        path: "docs/a.json",
        arguments: &["schema", "a"],
    };

    fn complaint(kept: Option<&str>, printed: Result<&str, &str>) -> Option<String> {
        let files: Vec<File> = kept
            .map(|text| File::new(GENERATOR.path, text))
            .into_iter()
            .collect();
        let print = |_: &Generator| printed.map(str::to_owned).map_err(str::to_owned);
        check(&files, &[GENERATOR], &print)
            .pop()
            .map(|it| it.to_string())
    }

    #[test]
    fn stale_missing_and_unprintable_files_are_found() {
        let stale = complaint(Some("a\nb\n"), Ok("a\nc\n")).unwrap();
        assert!(stale.contains("stale from line 2"), "{stale}");
        assert!(complaint(None, Ok("a\n")).unwrap().contains("missing"));
        assert!(
            complaint(Some("a\n"), Err("no verb schema"))
                .unwrap()
                .contains("no verb schema")
        );
        assert!(
            complaint(Some("a\n"), Ok("a\nb\n")).is_some(),
            "a cut file is stale"
        );
    }

    #[test]
    fn a_fresh_file_passes() {
        assert_eq!(complaint(Some("a\n"), Ok("a\n")), None);
    }
}
