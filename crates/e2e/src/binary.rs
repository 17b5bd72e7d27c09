//! Where the programs under test are.

use std::path::PathBuf;

/// The binary that is tested: `DRUMTOWER_BIN`, or the debug build beside this test.
pub fn drumtower() -> PathBuf {
    let named = std::env::var_os("DRUMTOWER_BIN").map(PathBuf::from);
    let path = named
        .unwrap_or_else(|| target().join(format!("drumtower{}", std::env::consts::EXE_SUFFIX)));
    assert!(
        path.is_file(),
        "{} is not there: build it with `cargo build --package drumtower --features failpoints`, or run `cargo xtask test`",
        path.display()
    );
    path
}

/// An example of a crate of this workspace.
pub fn example(package: &str, name: &str) -> PathBuf {
    let path = target()
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "{} is not there: build it with `cargo build --package {package} --example {name}`, or run `cargo xtask test`",
        path.display()
    );
    path
}

/// `target/debug`: tests are in `deps` below it.
fn target() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let above = test
        .ancestors()
        .find(|dir| !dir.ends_with("deps") && *dir != test);
    above.expect("a test lies in a directory").to_owned()
}
