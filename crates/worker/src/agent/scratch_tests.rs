//! Roots that are used and roots that are refused, and what is left of processes that were killed.

use std::os::unix::fs::{chown, symlink};

use super::*;

fn refused(root: &Path) -> String {
    Scratch::prepare(root).expect_err("refused")
}

fn entries(root: &Path) -> usize {
    fs::read_dir(root).unwrap().count()
}

#[test]
fn a_root_of_our_own_is_used_and_left_empty() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("a/b");
    let (one, other) = (
        Scratch::prepare(&root).unwrap(),
        Scratch::prepare(&root).unwrap(),
    );
    assert_ne!(one.directory(), other.directory());
    let mode = fs::metadata(one.directory()).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o711);
    drop((one, other));
    assert_eq!(entries(&root), 0);
}

#[test]
fn a_root_that_others_can_write_to_is_refused() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o1777)).unwrap();
    let why = refused(place.path());
    assert!(why.contains("1777") && why.contains("chmod"), "{why}");
}

#[test]
fn a_root_that_is_no_plain_directory_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (real, link) = (place.path().join("real"), place.path().join("link"));
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
    symlink(&real, &link).unwrap();
    assert!(refused(&link).contains("link"));
    assert!(refused(Path::new(&format!("{}/", link.display()))).contains("link"));
    symlink("/nowhere/at/all", place.path().join("dangling")).unwrap();
    assert!(refused(&place.path().join("dangling")).contains("link"));
    fs::write(place.path().join("file"), "").unwrap();
    assert!(refused(&place.path().join("file")).contains("not a directory"));
    assert_eq!(entries(&real), 0);
}

/// Only root can make a directory that belongs to somebody else; another user looks at one of root.
#[test]
fn a_root_of_somebody_else_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let root = if effective_user() == 0 {
        chown(place.path(), Some(65_534), None).unwrap();
        place.path()
    } else {
        Path::new("/usr")
    };
    let why = refused(root);
    assert!(why.contains("belongs to user"), "{why}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_root_where_nothing_can_be_made_is_refused_at_once() {
    let place = tempfile::tempdir().unwrap();
    let root = if effective_user() == 0 {
        Path::new("/proc")
    } else {
        fs::set_permissions(place.path(), Permissions::from_mode(0o500)).unwrap();
        place.path()
    };
    let why = refused(root);
    assert!(why.contains("no directory can be made"), "{why}");
}

#[test]
fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
    let left = place.path().join("1-0");
    fs::create_dir_all(left.join("run_1-1/deep")).unwrap();
    fs::write(left.join("run_1-1/deep/file"), "x").unwrap();
    fs::write(left.with_extension(LOCK), "").unwrap();
    let foreign = place.path().join("kept");
    fs::create_dir(&foreign).unwrap();
    let alive = Scratch::prepare(place.path()).unwrap();
    fs::create_dir(alive.directory().join("run_2-1")).unwrap();
    let _later = Scratch::prepare(place.path()).unwrap();
    // The lock goes last.
    while left.with_extension(LOCK).exists() {
        std::thread::yield_now();
    }
    assert!(!left.exists());
    assert!(foreign.exists(), "it is not known whose that is");
    assert!(alive.directory().join("run_2-1").exists());
}
