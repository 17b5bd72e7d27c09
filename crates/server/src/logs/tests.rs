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
        .map(|(_, place)| chain.load(*place).unwrap().unwrap());
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
async fn the_oldest_files_go_when_all_of_them_outgrow_their_bound() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        max_bytes: Some(4000),
        ..small()
    };
    let logs = Logs::open(directory.path(), options).unwrap();
    for seq in 1..=200 {
        logs.append(vec![chunk(1, seq, "words that fill a file\n")])
            .await;
    }
    let left = files::numbers(directory.path()).unwrap();
    let bytes: u64 = left
        .iter()
        .map(|number| {
            fs::metadata(files::path(directory.path(), *number))
                .unwrap()
                .len()
        })
        .sum();
    assert!(left[0] > 1 && bytes <= 4000, "{left:?}: {bytes}");
    assert!(
        read(&logs, 1)
            .unwrap()
            .ends_with("words that fill a file\n")
    );
}

fn stamped(seq: u64, wall: i64) -> Chunk {
    Chunk {
        wall: WallMs(wall),
        ..chunk(1, seq, &format!("{seq} "))
    }
}

#[tokio::test]
async fn a_reader_that_wants_the_end_does_not_walk_to_the_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), Options::default()).unwrap();
    for seq in 1..=100 {
        logs.append(vec![stamped(seq, seq as i64 * 10_000)]).await;
    }
    let locator = logs.locator(source(1)).unwrap();
    let end = Place {
        file: locator.file,
        offset: locator.offset,
    };
    let mut seen = Vec::new();
    let mut chain = logs.chain(source(1));
    chain
        .back(end, |record| {
            seen.push(String::from_utf8(record.data).unwrap());
            seen.len() < 3
        })
        .unwrap()
        .unwrap();
    assert_eq!(seen, ["100 ", "99 ", "98 "]);
    assert!(
        chain.advance(end).unwrap().unwrap().places.is_empty(),
        "all of it counts as found"
    );
    // The beginning is damaged: whoever does not go there does not see it.
    fs::write(files::path(directory.path(), 1), {
        let mut bytes = fs::read(files::path(directory.path(), 1)).unwrap();
        bytes[..64].fill(0);
        bytes
    })
    .unwrap();
    let mut chain = logs.chain(source(1)).since(Some(WallMs(950_000)));
    let found = chain.advance(end).unwrap().unwrap();
    assert_eq!((found.places.len(), found.beginning_expired), (6, false));
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

#[tokio::test]
async fn the_end_of_an_attempt_that_no_row_tells_is_found_in_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), small()).unwrap();
    for seq in 1..60 {
        logs.append(vec![chunk(1 + seq % 2, seq, "some output\n")])
            .await;
    }
    for run in [1, 2] {
        let known = logs.locator(source(run)).unwrap();
        let found = logs.search(source(run), WallMs(0)).unwrap().unwrap();
        assert_eq!((found.file, found.offset), (known.file, known.offset));
        assert!(found.file > 3, "the files are small");
    }
    assert_eq!(logs.search(source(3), WallMs(0)).unwrap(), None);
    let later = SystemTime::now() + Duration::from_secs(3_600);
    let later = later.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let later = WallMs(i64::try_from(later.as_millis()).unwrap());
    assert_eq!(logs.search(source(1), later).unwrap(), None);
}

#[tokio::test]
async fn a_part_comes_to_another_server_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let logs = Logs::open(directory.path(), small()).unwrap();
    logs.append(vec![chunk(1, 3, "three"), chunk(2, 1, "x")])
        .await;
    logs.append(vec![chunk(1, 7, "seven")]).await;
    let end = logs.search(source(1), WallMs(0)).unwrap().unwrap();
    let part = Part::read(&mut logs.chain(source(1)), end).unwrap();
    let told = |part: &Part| {
        let records = part.records.iter();
        let text = |it: &Numbered| (it.seq, String::from_utf8(it.record.data.clone()).unwrap());
        records.map(text).collect::<Vec<_>>()
    };
    assert_eq!(told(&part), [(3, "three".into()), (7, "seven".into())]);
    let bytes = part.encode(source(1));
    assert_eq!(Part::decode(source(1), &bytes), Some(part));
    assert_eq!(Part::decode(source(2), &bytes), None, "of another attempt");
    assert_eq!(Part::decode(source(1), &bytes[..bytes.len() - 1]), None);
    let mut damaged = bytes;
    damaged[80] ^= 1;
    assert_eq!(Part::decode(source(1), &damaged), None);
    let gone = Place {
        file: 99,
        offset: 0,
    };
    let part = Part::read(&mut logs.chain(source(1)), gone).unwrap();
    assert!(part.expired && part.records.is_empty());
}
