//! How should finished runs be keyed in SQLite? Loads the same runs into one file per layout, taking turns so
//! that a noisy machine is noisy for all, then reads them back.
//!
//! `cargo run --release -p drumtower-store --example history_layout -- --rows 10000000 --layouts none,b,e`
//!
//! Options: `--rows N`, `--layouts none,index,a,b,c,d,e`, `--keep ROWS` (retention; default 60 %), `--late PERCENT`,
//! `--short MS` (mean duration of the others), `--jobs N`, `--rate RUNS` (per virtual second), `--page-size BYTES`, `--turn ROWS`, `--dir PATH`.

mod by_finish;
mod by_id;
mod id_chunks;
mod layout;
mod measure;
mod postings;
mod subject;
mod workload;

use std::error::Error;
use std::path::PathBuf;
use std::str::FromStr;

use subject::Subject;
use workload::Load;

struct Options {
    rows: u64,
    turn: u64,
    page_size: u32,
    dir: PathBuf,
    layouts: Vec<String>,
    load: Load,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let load = Load {
            jobs: 10_000,
            keep_rows: 0,
            short_ms: 2_000.0,
            late_percent: 1.0,
            runs_per_second: 2_000,
            seed: 7,
        };
        let mut options = Self {
            rows: 4_000_000,
            turn: 250_000,
            page_size: 4_096,
            dir: PathBuf::from("/tmp/history_layout"),
            layouts: layout::NAMES.map(String::from).to_vec(),
            load,
        };
        let mut args = args;
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--rows" => options.rows = number(&flag, &value)?,
                "--turn" => options.turn = number(&flag, &value)?,
                "--page-size" => options.page_size = number(&flag, &value)?,
                "--dir" => options.dir = PathBuf::from(value),
                "--layouts" => options.layouts = value.split(',').map(String::from).collect(),
                "--jobs" => options.load.jobs = number(&flag, &value)?,
                "--keep" => options.load.keep_rows = number(&flag, &value)?,
                "--late" => options.load.late_percent = number(&flag, &value)?,
                "--short" => options.load.short_ms = number(&flag, &value)?,
                "--rate" => options.load.runs_per_second = number(&flag, &value)?,
                _ => return Err(format!("{flag} is not an option; see the top of main.rs").into()),
            }
        }
        if options.load.keep_rows == 0 {
            options.load.keep_rows = options.rows * 6 / 10;
        }
        Ok(options)
    }
}

fn number<T: FromStr>(flag: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{flag} {value} is not a number"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    std::fs::create_dir_all(&options.dir)?;
    let mut subjects = Vec::new();
    for name in &options.layouts {
        subjects.push(Subject::open(
            name,
            &options.dir,
            options.page_size,
            options.load.clone(),
        )?);
    }
    println!(
        "{} rows, {} kept, {} % late, others {} ms, page {}, SQLite {}",
        options.rows,
        options.load.keep_rows,
        options.load.late_percent,
        options.load.short_ms,
        options.page_size,
        rusqlite::version()
    );
    let mut target = 0;
    while target < options.rows {
        target = (target + options.turn).min(options.rows);
        for subject in &mut subjects {
            subject.load_to(target)?;
        }
        if target % 1_000_000 == 0 || target == options.rows {
            println!("-- {target}");
            subjects.iter_mut().for_each(Subject::report_load);
        }
    }
    println!("-- reading");
    for subject in subjects {
        subject.read_back(options.load.jobs)?;
    }
    Ok(())
}
