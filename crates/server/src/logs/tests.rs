//! The log files as a whole: what goes in comes out, also after a crash in the middle of a write.

use std::fs;
use std::time::{Duration, SystemTime};

use drumtower_core::model::Limits;

use super::*;

fn source(run: u64) -> Source {
    Source {
        run: RunId(run),
        attempt: 1,
    }
}

fn chunk(run: u64, seq: u64, data: &str) -> Chunk {
    let data = Bytes::copy_from_slice(data.as_bytes());
    Chunk {
        source: source(run),
        seq,
        stream: Stream::Stdout,
        wall: WallMs(seq as i64),
        data,
    }
}

fn read(logs: &Logs, run: u64) -> Result<String, Expired> {
    let locator = logs.locator(source(run)).unwrap();
    read_from(logs, run, locator)
}

fn read_from(logs: &Logs, run: u64, locator: LogLocator) -> Result<String, Expired> {
    let mut chain = logs.chain(source(run));
    let found = chain
        .advance(Place {
            file: locator.file,
            offset: locator.offset,
        })
        .unwrap()?;
    let records = found
        .places
        .iter()
        .map(|place| chain.load(*place).unwrap().unwrap());
    Ok(records
        .map(|record| String::from_utf8(record.data).unwrap())
        .collect())
}

fn small() -> Options {
    Options {
        file_bytes: 1000,
        ..Options::default()
    }
}

#[tokio::test]
async fn attempts_share_files_and_read_back_apart() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), small()).unwrap();
    for seq in 1..=40 {
        logs.append(vec![
            chunk(1, seq, &format!("a{seq} ")),
            chunk(2, seq, &format!("b{seq} ")),
        ])
        .await;
    }
    let expected = |letter: char| {
        (1..=40)
            .map(|seq| format!("{letter}{seq} "))
            .collect::<String>()
    };
    assert_eq!(read(&logs, 1), Ok(expected('a')));
    assert_eq!(read(&logs, 2), Ok(expected('b')));
    assert!(
        files::numbers(directory.path()).unwrap().len() > 3,
        "it rolled"
    );
    assert_eq!(
        logs.locator(source(3)),
        None,
        "a silent attempt has no place"
    );
}

#[tokio::test]
async fn a_repeated_chunk_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), Options::default()).unwrap();
    logs.append(vec![
        chunk(1, 1, "one "),
        chunk(1, 2, "two "),
        chunk(1, 1, "one "),
    ])
    .await;
    logs.append(vec![chunk(1, 2, "two "), chunk(1, 3, "three")])
        .await;
    assert_eq!(read(&logs, 1), Ok("one two three".to_owned()));
    assert_eq!(logs.locator(source(1)).unwrap().bytes, 13);
}

#[tokio::test]
async fn a_torn_end_is_cut_off_and_writing_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), Options::default()).unwrap();
    logs.append(vec![chunk(1, 1, "kept ")]).await;
    logs.append(vec![chunk(1, 2, "torn")]).await;
    drop(logs);
    let path = files::path(directory.path(), 1);
    let length = fs::metadata(&path).unwrap().len();
    for cut in 1..=67 {
        let copy = tempfile::tempdir().unwrap();
        fs::copy(&path, files::path(copy.path(), 1)).unwrap();
        fs::File::options()
            .write(true)
            .open(files::path(copy.path(), 1))
            .unwrap()
            .set_len(length - cut)
            .unwrap();
        let logs = Logs::open(copy.path(), Options::default()).unwrap();
        assert_eq!(read(&logs, 1), Ok("kept ".to_owned()), "cut by {cut}");
        logs.append(vec![chunk(1, 2, "again")]).await;
        assert_eq!(read(&logs, 1), Ok("kept again".to_owned()), "cut by {cut}");
    }
}

#[tokio::test]
async fn a_restart_finds_the_tails_again() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), small()).unwrap();
    logs.append((1..=20).map(|seq| chunk(1, seq, "x")).collect())
        .await;
    let before = logs.locator(source(1));
    drop(logs);
    let logs = Logs::open(directory.path(), small()).unwrap();
    assert_eq!(logs.locator(source(1)), before);
    logs.append(vec![chunk(1, 20, "repeated"), chunk(1, 21, "y")])
        .await;
    assert_eq!(read(&logs, 1), Ok(format!("{}y", "x".repeat(20))));
}

#[tokio::test]
async fn output_beyond_the_bound_is_dropped_and_said_so() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), Options::default()).unwrap();
    let line = "x".repeat(Limits::LOG_LINE_BYTES);
    let lines = Limits::LOG_ATTEMPT_BYTES / line.len() as u64;
    logs.append((1..=lines).map(|seq| chunk(1, seq, &line)).collect())
        .await;
    let full = logs.locator(source(1)).unwrap();
    assert_eq!(
        (full.bytes, full.truncated),
        (Limits::LOG_ATTEMPT_BYTES, false)
    );
    logs.append(vec![chunk(1, lines + 1, "more")]).await;
    let over = logs.locator(source(1)).unwrap();
    assert_eq!(
        (over.bytes, over.truncated, over.offset),
        (full.bytes, true, full.offset)
    );
    logs.append(vec![chunk(2, 1, &format!("{line}tail"))]).await;
    let long = logs.locator(source(2)).unwrap();
    assert_eq!(
        (long.bytes, long.truncated),
        (Limits::LOG_LINE_BYTES as u64, true)
    );
}

#[tokio::test]
async fn old_files_go_and_their_logs_read_as_expired() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), small()).unwrap();
    logs.append(vec![chunk(1, 1, "early "), chunk(2, 1, "only")])
        .await;
    let only = logs.locator(source(2)).unwrap();
    for seq in 2..=30 {
        logs.append(vec![chunk(1, seq, "late ")]).await;
    }
    let first = files::path(directory.path(), 1);
    let long_ago = SystemTime::now() - Duration::from_secs(31 * 86_400);
    fs::File::options()
        .write(true)
        .open(&first)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    logs.sweep().await;
    assert!(!first.exists());
    assert_eq!(read_from(&logs, 2, only), Err(Expired));
    let locator = logs.locator(source(1)).unwrap();
    let found = logs
        .chain(source(1))
        .advance(Place {
            file: locator.file,
            offset: locator.offset,
        })
        .unwrap()
        .unwrap();
    assert!(found.beginning_expired && !found.places.is_empty());
}

#[tokio::test]
async fn a_place_of_another_attempt_reads_as_expired() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), Options::default()).unwrap();
    logs.append(vec![chunk(1, 1, "secret")]).await;
    let locator = logs.locator(source(1)).unwrap();
    assert_eq!(read_from(&logs, 2, locator), Err(Expired));
    assert_eq!(
        read_from(
            &logs,
            1,
            LogLocator {
                offset: 7,
                ..locator
            }
        ),
        Err(Expired)
    );
}

#[tokio::test]
async fn a_reader_goes_on_where_it_stood_and_is_woken() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), Options::default()).unwrap();
    let mut watch = logs.watch(RunId(1));
    logs.append(vec![chunk(1, 1, "one")]).await;
    watch.changed().await;
    let place = |logs: &Logs| {
        logs.locator(source(1))
            .map(|it| Place {
                file: it.file,
                offset: it.offset,
            })
            .unwrap()
    };
    let mut chain = logs.chain(source(1));
    assert_eq!(
        chain.advance(place(&logs)).unwrap().unwrap().places.len(),
        1
    );
    assert_eq!(
        chain.advance(place(&logs)).unwrap().unwrap().places.len(),
        0
    );
    logs.append(vec![chunk(1, 2, "two"), chunk(1, 3, "three")])
        .await;
    watch.changed().await;
    assert_eq!(
        chain.advance(place(&logs)).unwrap().unwrap().places.len(),
        2
    );
}
