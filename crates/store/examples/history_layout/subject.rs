//! One layout under test: its file, its writer connection, what it cost so far.

use std::collections::VecDeque;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::{Connection, params};

use crate::layout::{self, Layout};
use crate::measure::{Counters, Spent, quantile};
use crate::workload::{Load, Random, Run, Workload};

const CHECKPOINT_PAGES: u32 = 4_000;
const CACHE_KIB: i32 = 65_536;
const LIST: usize = 50;
const LOOKUPS: usize = 4_000;
const SAMPLE_EVERY: usize = 499;
const LATE_SAMPLE_EVERY: usize = 19;
const LATE_MS: i64 = 120_000;

pub struct Subject {
    name: String,
    path: PathBuf,
    conn: Connection,
    layout: Box<dyn Layout>,
    workload: Workload,
    spent: Spent,
    commits_ns: Vec<u64>,
    reported: u64,
    /// Every 499th finished run that retention has not reached.
    sample: VecDeque<Run>,
    /// Every 19th of those that took more than two minutes.
    late: VecDeque<Run>,
    finished: usize,
}

impl Subject {
    pub fn open(
        name: &str,
        dir: &Path,
        page_size: u32,
        load: Load,
    ) -> Result<Self, Box<dyn Error>> {
        let layout =
            layout::by_name(name, load.keep_rows).ok_or_else(|| format!("no layout {name}"))?;
        let path = dir.join(format!("{name}.db"));
        remove(&path);
        let conn = Connection::open(&path)?;
        conn.set_prepared_statement_cache_capacity(64);
        conn.pragma_update(None, "page_size", page_size)?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.pragma_update(
            None,
            "wal_autocheckpoint",
            CHECKPOINT_PAGES * 4_096 / page_size,
        )?;
        conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
        layout::create(&conn, layout.as_ref())?;
        Ok(Self {
            name: name.to_owned(),
            path,
            conn,
            layout,
            workload: Workload::new(load),
            spent: Spent::default(),
            commits_ns: Vec::new(),
            reported: 0,
            sample: VecDeque::new(),
            late: VecDeque::new(),
            finished: 0,
        })
    }

    pub fn load_to(&mut self, rows: u64) -> Result<(), Box<dyn Error>> {
        while self.workload.made() < rows {
            let batch = self.workload.next_batch();
            let before = Counters::read();
            layout::commit(&mut self.conn, self.layout.as_mut(), &batch)?;
            let spent = Counters::read() - before;
            self.commits_ns.push(spent.wall_ns);
            self.spent.add(spent);
            for &run in &batch.finished {
                self.finished += 1;
                if self.finished.is_multiple_of(SAMPLE_EVERY) {
                    self.sample.push_back(run);
                }
                if batch.now_ms - run.created_ms() > LATE_MS
                    && self.finished.is_multiple_of(LATE_SAMPLE_EVERY)
                {
                    self.late.push_back(run);
                }
            }
            self.late.retain(|run| run.id >= batch.cutoff_id);
            self.sample.retain(|run| run.id >= batch.cutoff_id);
        }
        Ok(())
    }

    pub fn report_load(&mut self) {
        let rows = (self.workload.made() - self.reported) as f64;
        let spent = self.spent;
        let running_ns = spent.wall_ns.saturating_sub(spent.queued_ns);
        println!(
            "{:>6} {:>7.0} rows/s  {:>7.0} without queueing  cpu {:>5.2} us/row  {:>5.0} B/row  commit p50 {:>5.1} p99 {:>6.1} max {:>6.1} ms",
            self.name,
            rows * 1e9 / spent.wall_ns as f64,
            rows * 1e9 / running_ns as f64,
            spent.cpu_ns as f64 / rows / 1e3,
            spent.written_bytes as f64 / rows,
            quantile(&mut self.commits_ns, 0.5) as f64 / 1e6,
            quantile(&mut self.commits_ns, 0.99) as f64 / 1e6,
            quantile(&mut self.commits_ns, 1.0) as f64 / 1e6,
        );
        self.reported = self.workload.made();
        self.spent = Spent::default();
        self.commits_ns.clear();
    }

    /// Times lists and lookups, checks their answers, then deletes the file.
    pub fn read_back(self, jobs: u32) -> Result<(), Box<dyn Error>> {
        self.conn
            .pragma_update(None, "wal_checkpoint", "TRUNCATE")?;
        let megabytes = fs::metadata(&self.path)?.len() / 1_000_000;
        let mut random = Random(11);
        let hot: Vec<u32> = (0..LOOKUPS).map(|_| random.skewed(jobs)).collect();
        let any: Vec<u32> = (0..LOOKUPS)
            .map(|_| random.below(u64::from(jobs)) as u32)
            .collect();
        let recent: Vec<i64> = self
            .sample
            .iter()
            .rev()
            .take(LOOKUPS / 10)
            .map(|run| run.id)
            .collect();
        let old: Vec<i64> = (0..LOOKUPS)
            .map(|_| self.sample[random.below(self.sample.len() as u64) as usize].id)
            .collect();
        let late: Vec<i64> = self.late.iter().map(|run| run.id).collect();
        // Another segment in the same millisecond: an id that could exist and does not.
        let unknown: Vec<i64> = old.iter().map(|id| id ^ 0x3F_F000).collect();
        println!("{:>6} file {megabytes} MB, microseconds p50/p99", self.name);
        println!(
            "       list often-run job {}",
            self.time(&hot, |job| self.list(*job).map(|_| ()))?
        );
        println!(
            "       list any job       {}",
            self.time(&any, |job| self.list(*job).map(|_| ()))?
        );
        println!(
            "       find recent        {}",
            self.time(&recent, |id| self.find(*id, true))?
        );
        println!(
            "       find any           {}",
            self.time(&old, |id| self.find(*id, true))?
        );
        println!(
            "       find late          {}",
            self.time(&late, |id| self.find(*id, true))?
        );
        println!(
            "       find unknown       {}",
            self.time(&unknown, |id| self.find(*id, false))?
        );
        let start = Instant::now();
        if let Some(rows) = self.layout.replay(&self.conn)? {
            println!(
                "       replay of {rows} rows {} ms",
                start.elapsed().as_millis()
            );
        }
        self.check_lists(&hot[..4])?;
        let path = self.path.clone();
        drop(self);
        remove(&path);
        Ok(())
    }

    /// Warm: the second of two passes, as p50/p99 in microseconds.
    fn time<T>(
        &self,
        inputs: &[T],
        call: impl Fn(&T) -> Result<(), Box<dyn Error>>,
    ) -> Result<String, Box<dyn Error>> {
        let mut took = Vec::with_capacity(inputs.len());
        for pass in 0..2 {
            for input in inputs {
                let start = Instant::now();
                call(input)?;
                if pass == 1 {
                    took.push(start.elapsed().as_nanos() as u64);
                }
            }
        }
        Ok(format!(
            "{}/{}",
            quantile(&mut took, 0.5) / 1_000,
            quantile(&mut took, 0.99) / 1_000
        ))
    }

    fn list(&self, job: u32) -> Result<Vec<i64>, Box<dyn Error>> {
        Ok(self.layout.list(&self.conn, job, LIST)?.unwrap_or_default())
    }

    fn find(&self, id: i64, exists: bool) -> Result<(), Box<dyn Error>> {
        if self.layout.find(&self.conn, id)? == exists {
            return Ok(());
        }
        Err(format!(
            "{}: run {id} should exist: {exists}, and the lookup disagrees",
            self.name
        )
        .into())
    }

    fn check_lists(&self, jobs: &[u32]) -> Result<(), Box<dyn Error>> {
        let Some(sql) = self.layout.list_slowly() else {
            return Ok(());
        };
        for &job in jobs {
            let mut select = self.conn.prepare(sql)?;
            let expected: Vec<i64> = select
                .query_map(params![job, LIST as i64], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            if self.list(job)? != expected {
                return Err(format!("{}: the list of job {job} is wrong", self.name).into());
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        // A file that is not there is what is wanted.
        let _ = fs::remove_file(file);
    }
}
