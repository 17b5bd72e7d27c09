//! Finds the built console, if there is one, and writes the table of its files that the server embeds.
//!
//! `cargo xtask console` puts it into `console/embedded`, each file beside its compressed forms. Without it the table is
//! empty, and the server says how to get the console.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let embedded = here.join("../../console/embedded");
    println!("cargo::rerun-if-changed={}", embedded.display());
    let mut names: Vec<String> = names(&embedded)?;
    names.sort();
    let plain = names
        .iter()
        .filter(|name| !name.ends_with(".br") && !name.ends_with(".gz") && !name.starts_with('.'));
    let mut table = String::from("&[\n");
    for name in plain {
        let path = |suffix: &str| embedded.join(format!("{name}{suffix}"));
        let packed = |suffix: &str| match names.contains(&format!("{name}{suffix}")) {
            true => format!("Some(include_bytes!({:?}))", path(suffix)),
            false => "None".to_owned(),
        };
        let (brotli, gzip, whole) = (packed(".br"), packed(".gz"), path(""));
        let _ = writeln!(
            table,
            "File {{ name: {name:?}, whole: include_bytes!({whole:?}), brotli: {brotli}, gzip: {gzip} }},"
        );
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("console_files.rs"), table)
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory)?;
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}
