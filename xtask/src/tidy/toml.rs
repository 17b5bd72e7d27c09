//! As much of TOML as the checks need: which names stand under which table of a `Cargo.toml`.
//!
//! Cargo itself rejects a malformed manifest long before this reads it, so what is not understood is skipped.

/// A key with the table it stands in: `[dependencies] serde = …` is ("dependencies", "serde").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub table: String,
    pub key: String,
    pub line: usize,
}

/// Every key of the file. `[dependencies.serde]` counts as the key `serde` of `dependencies`.
pub fn entries(text: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut table = String::new();
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let content = line.trim();
        if let Some(header) = content
            .strip_prefix('[')
            .and_then(|it| it.split(']').next())
        {
            table = header.trim_matches(['[', ' ']).to_owned();
            if let Some((outer, key)) = table.rsplit_once('.')
                && outer.ends_with("dependencies")
            {
                found.push(entry(outer, key, line_number));
            }
            continue;
        }
        if content.starts_with('#') {
            continue;
        }
        if let Some((left, _)) = content.split_once('=') {
            // `version.workspace = true` speaks of the key `version`.
            let key = left.trim().split('.').next().unwrap_or_default();
            found.push(entry(&table, key, line_number));
        }
    }
    found
}

fn entry(table: &str, key: &str, line: usize) -> Entry {
    Entry {
        table: table.to_owned(),
        key: key.trim_matches('"').trim().to_owned(),
        line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        entries(text)
            .into_iter()
            .map(|it| (it.table, it.key))
            .collect()
    }

    #[test]
    fn keys_are_found_under_their_tables() {
        let text = "[dependencies]\n# comment = 1\nserde = { workspace = true }\nlibc.workspace = true\n\n\
                    [target.'cfg(unix)'.dependencies]\nnix = \"1\"\n\n[dependencies.tokio]\nversion = \"1\"\n";
        let found = pairs(text);
        for (table, key) in [
            ("dependencies", "serde"),
            ("dependencies", "libc"),
            ("target.'cfg(unix)'.dependencies", "nix"),
            ("dependencies", "tokio"),
        ] {
            assert!(
                found.contains(&(table.to_owned(), key.to_owned())),
                "{table} {key} in {found:?}"
            );
        }
        assert!(!found.iter().any(|(_, key)| key.contains("comment")));
    }
}
