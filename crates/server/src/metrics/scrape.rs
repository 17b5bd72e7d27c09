//! One scrape: everything that a caller may see, as text.

use std::path::Path;
use std::time::Duration;

use drumtower_core::engine::{Figures, WorkerState, WorkerView};
use drumtower_core::model::NamespaceName;

use super::Metrics;
use super::counted::Counted;
use super::jobs::JobFigures;
use super::queues::queues;
use super::text::{Samples, Text};
use crate::api::Edge;
use crate::auth::Principal;
use crate::backup::Status;
use crate::driver::{Health, wall_now};

/// Workers with series of their own; the rest is only counted by state.
const WORKERS: usize = 1000;
/// The engine answers between two batches; a scrape does without it rather than hang.
pub const ENGINE_MAY_TAKE: Duration = Duration::from_secs(2);

/// Everything that `principal` may see.
pub async fn scrape(edge: &Edge, principal: &Principal) -> String {
    let asked = tokio::time::timeout(ENGINE_MAY_TAKE, edge.handle.figures()).await;
    let (figures, fleet) = match asked {
        Ok(Ok((figures, fleet))) => (Some(figures), fleet),
        Ok(Err(_)) | Err(_) => (None, Vec::new()),
    };
    let mut text = Text::default();
    jobs(&mut text, &edge.metrics.drained().counted, principal);
    let seen = |worker: &&WorkerView| {
        let namespace = worker.namespace.as_ref();
        namespace.is_none_or(|namespace| principal.sees(namespace))
    };
    let seen: Vec<&WorkerView> = fleet.iter().filter(seen).collect();
    workers(&mut text, &seen);
    queues(&mut text, edge, principal).await;
    if principal.namespace.is_none() {
        let files = Files::of(edge).await;
        system(&mut text, edge, figures.as_ref());
        disk(&mut text, &files);
        backups(&mut text, &edge.backups.status());
        process(&mut text, &edge.metrics);
    }
    text.take()
}

fn jobs(text: &mut Text, counted: &Counted, principal: &Principal) {
    let other = "_other";
    let own = |namespace: &NamespaceName| principal.sees(namespace);
    let kept = counted.jobs.iter().filter(|(key, _)| own(&key.namespace));
    let mut rows: Vec<(&str, &str, &JobFigures)> = kept
        .map(|(key, figures)| (key.namespace.as_str(), key.name.as_str(), figures))
        .collect();
    if counted.jobs.crowded && principal.namespace.is_none() {
        rows.push((other, other, &counted.jobs.others));
    }
    let mut ended = text.family("drumtower_runs_ended_total");
    for (namespace, job, figures) in &rows {
        let outcomes = [
            ("completed", figures.completed),
            ("failed", figures.failed),
            ("cancelled", figures.cancelled),
        ];
        for (outcome, count) in outcomes {
            let labels = [
                ("namespace", *namespace),
                ("job_name", *job),
                ("outcome", outcome),
            ];
            ended.add(&labels, count as f64);
        }
    }
    let mut each = |name, add: fn(&mut Samples<'_>, &[(&str, &str)], &JobFigures)| {
        let mut samples = text.family(name);
        for (namespace, job, figures) in &rows {
            add(
                &mut samples,
                &[("namespace", namespace), ("job_name", job)],
                figures,
            );
        }
    };
    each("drumtower_unfired_total", |samples, labels, figures| {
        samples.add(labels, figures.unfired as f64);
    });
    each(
        "drumtower_breaker_changes_total",
        |samples, labels, figures| {
            let changes = [
                ("opened", figures.breaker_opened),
                ("closed", figures.breaker_closed),
            ];
            for (change, count) in changes {
                samples.add(&[labels, &[("change", change)]].concat(), count as f64);
            }
        },
    );
    each(
        "drumtower_run_start_delay_seconds",
        |samples, labels, figures| {
            samples.histogram(labels, &figures.start_delay);
        },
    );
    each(
        "drumtower_run_duration_seconds",
        |samples, labels, figures| {
            samples.histogram(labels, &figures.duration);
        },
    );
    each(
        "drumtower_run_cpu_seconds_total",
        |samples, labels, figures| {
            samples.add(labels, figures.cpu_seconds);
        },
    );
    each(
        "drumtower_run_peak_memory_bytes",
        |samples, labels, figures| {
            samples.add(labels, figures.peak_memory_bytes as f64);
        },
    );
    each("drumtower_run_last_failed", |samples, labels, figures| {
        samples.add(labels, f64::from(u8::from(figures.last_failed)));
    });
}

const STATES: [(WorkerState, &str); 5] = [
    (WorkerState::Online, "online"),
    (WorkerState::Busy, "busy"),
    (WorkerState::Maintenance, "maintenance"),
    (WorkerState::Offline, "offline"),
    (WorkerState::Faulty, "faulty"),
];

type WorkerValue = fn(&WorkerView) -> f64;

/// What is told of each worker as it is.
const WORKER_VALUES: &[(&str, WorkerValue)] = &[
    ("drumtower_worker_capacity", |worker| {
        f64::from(worker.capacity)
    }),
    ("drumtower_worker_running_weight", |worker| {
        f64::from(worker.load.running_weight)
    }),
    ("drumtower_worker_attempts", |worker| worker.attempts as f64),
    ("drumtower_worker_losses", |worker| worker.losses as f64),
    ("drumtower_worker_cpu_ratio", |worker| {
        f64::from(worker.load.cpu_permille) / 1e3
    }),
    ("drumtower_worker_memory_used_bytes", |worker| {
        worker.load.memory_used_bytes as f64
    }),
    ("drumtower_worker_memory_bytes", |worker| {
        worker.load.memory_total_bytes as f64
    }),
    ("drumtower_worker_disk_used_bytes", |worker| {
        worker.load.disk_used_bytes as f64
    }),
    ("drumtower_worker_disk_bytes", |worker| {
        worker.load.disk_total_bytes as f64
    }),
    (
        "drumtower_worker_network_received_bytes_per_second",
        |worker| worker.load.network_received_bytes_per_s as f64,
    ),
    ("drumtower_worker_network_sent_bytes_per_second", |worker| {
        worker.load.network_sent_bytes_per_s as f64
    }),
    ("drumtower_worker_clock_offset_seconds", |worker| {
        worker.skew_ms as f64 / 1e3
    }),
];

fn workers(text: &mut Text, fleet: &[&WorkerView]) {
    // Two processes may go by one name; a series may be told only once, by the one that was heard last.
    let mut named: Vec<&WorkerView> = fleet.to_vec();
    named.sort_by(|a, b| (&a.name, b.last_heartbeat).cmp(&(&b.name, a.last_heartbeat)));
    named.dedup_by(|later, kept| later.name == kept.name);
    named.truncate(WORKERS);
    let mut up = text.family("drumtower_worker_up");
    for worker in &named {
        let connected = worker.linked && worker.state != WorkerState::Offline;
        up.add(
            &[("worker", worker.name.as_str())],
            f64::from(u8::from(connected)),
        );
    }
    let mut states = text.family("drumtower_worker_state");
    for worker in &named {
        for (state, name) in STATES {
            let labels = [("worker", worker.name.as_str()), ("state", name)];
            states.add(&labels, f64::from(u8::from(worker.state == state)));
        }
    }
    for (name, value) in WORKER_VALUES {
        let mut samples = text.family(name);
        for worker in &named {
            samples.add(&[("worker", worker.name.as_str())], value(worker));
        }
    }
    let mut counts = text.family("drumtower_workers");
    for (state, name) in STATES {
        let count = fleet.iter().filter(|worker| worker.state == state).count();
        counts.add(&[("state", name)], count as f64);
    }
}

fn system(text: &mut Text, edge: &Edge, figures: Option<&Figures>) {
    let metrics = &edge.metrics;
    text.family("drumtower_build_info")
        .add(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    text.single(
        "drumtower_uptime_seconds",
        metrics.started.elapsed().as_secs_f64(),
    );
    let ready = *edge.handle.health().borrow() == Health::Ready;
    text.single("drumtower_ready", f64::from(u8::from(ready)));
    {
        let shared = metrics.drained();
        text.single("drumtower_runs_made_total", shared.counted.made as f64);
        text.family("drumtower_scheduling_delay_seconds")
            .histogram(&[], &shared.counted.scheduling_delay);
        text.single("drumtower_facts_missed_total", shared.counted.missed as f64);
    }
    let vitals = edge.handle.vitals().read();
    text.single("drumtower_commits_total", vitals.seconds.count() as f64);
    text.single("drumtower_commit_failures_total", vitals.failures as f64);
    text.family("drumtower_commit_seconds")
        .histogram(&[], &vitals.seconds);
    text.family("drumtower_commit_rows")
        .histogram(&[], &vitals.rows);
    let mut ahead = text.family("drumtower_clock_ahead_of_database_seconds");
    if let Some(ms) = vitals.clock_ahead_ms {
        ahead.add(&[], ms as f64 / 1_000.0);
    }
    engine(text, figures);
    text.single("drumtower_inbox_depth", edge.handle.inbox_depth() as f64);
    let refused = metrics
        .refused
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .clone();
    let mut codes = text.family("drumtower_refused_requests_total");
    for (code, count) in refused {
        codes.add(&[("code", code)], count as f64);
    }
    text.single("drumtower_tokens", edge.authority.count() as f64);
    text.single("drumtower_change_streams", edge.streams.open() as f64);
    let mut messages = text.family("drumtower_notifications_total");
    for ((channel, state), count) in edge.notices.totals() {
        messages.add(&[("channel", channel), ("state", state)], count as f64);
    }
    text.single(
        "drumtower_notifications_pending",
        edge.notices.pending() as f64,
    );
}

type EngineValue = fn(&Figures) -> u64;

/// What the engine holds; without samples when it did not answer.
fn engine(text: &mut Text, figures: Option<&Figures>) {
    let mut depths = text.family("drumtower_queue_depth");
    for (priority, depth) in figures
        .iter()
        .flat_map(|figures| figures.waiting.iter().enumerate())
    {
        depths.add(&[("priority", &priority.to_string())], *depth as f64);
    }
    let values: [(&'static str, EngineValue); 3] = [
        ("drumtower_live_runs", |figures| figures.live_runs),
        ("drumtower_parked_runs", |figures| {
            figures.live_runs.saturating_sub(figures.resident_runs)
        }),
        ("drumtower_jobs_in_memory", |figures| figures.resident_jobs),
    ];
    for (name, value) in values {
        let mut samples = text.family(name);
        if let Some(figures) = figures {
            samples.add(&[], value(figures) as f64);
        }
    }
}

/// Sizes of what lies in the data directory.
#[derive(Default)]
struct Files {
    store: u64,
    wal: u64,
    logs: u64,
    disk: Option<(u64, u64)>,
}

impl Files {
    async fn of(edge: &Edge) -> Self {
        let data = edge.data.clone();
        tokio::task::spawn_blocking(move || Self::read(&data))
            .await
            .unwrap_or_default()
    }

    fn read(data: &Path) -> Self {
        let mut files = Self {
            logs: entries(&data.join("logs")).map(|(_, bytes)| bytes).sum(),
            disk: space(data),
            ..Self::default()
        };
        for (name, bytes) in entries(data) {
            if name.ends_with("-wal") {
                files.wal += bytes;
            } else if name.ends_with(".db") {
                files.store += bytes;
            }
        }
        files
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = (String, u64)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        meta.is_file().then_some((name, meta.len()))
    })
}

/// Free and total bytes of the file system under `path`.
fn space(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all fields of `statvfs` are plain integers, for which zero is a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in a zero byte, and the call writes one `statvfs` into valid memory.
    let failed = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0;
    #[allow(clippy::unnecessary_cast)] // The fields are narrower on some systems.
    let (unit, free, all) = (
        stat.f_frsize as u64,
        stat.f_bavail as u64,
        stat.f_blocks as u64,
    );
    (!failed).then(|| (free.saturating_mul(unit), all.saturating_mul(unit)))
}

fn disk(text: &mut Text, files: &Files) {
    text.single("drumtower_store_bytes", files.store as f64);
    text.single("drumtower_wal_bytes", files.wal as f64);
    text.single("drumtower_log_bytes", files.logs as f64);
    let (free, all) = files.disk.unzip();
    for (name, bytes) in [
        ("drumtower_disk_free_bytes", free),
        ("drumtower_disk_bytes", all),
    ] {
        let mut samples = text.family(name);
        if let Some(bytes) = bytes {
            samples.add(&[], bytes as f64);
        }
    }
}

fn backups(text: &mut Text, status: &Status) {
    let mut outcomes = text.family("drumtower_backups_total");
    for (outcome, count) in [("made", status.made), ("failed", status.failed)] {
        outcomes.add(&[("outcome", outcome)], count as f64);
    }
    let mut last = text.family("drumtower_backup_last_success_timestamp_seconds");
    if let Some(at) = status.last_success {
        last.add(&[], at.as_millisecond() as f64 / 1e3);
    }
}

fn process(text: &mut Text, metrics: &Metrics) {
    let usage = usage();
    let mut memory = text.family("process_resident_memory_bytes");
    if let Some((_, bytes)) = usage {
        memory.add(&[], bytes);
    }
    let mut cpu = text.family("process_cpu_seconds_total");
    if let Some((seconds, _)) = usage {
        cpu.add(&[], seconds);
    }
    let started = wall_now().0 as f64 / 1e3 - metrics.started.elapsed().as_secs_f64();
    text.single("process_start_time_seconds", started);
}

/// CPU seconds and resident bytes of this process, where the system tells them in files.
fn usage() -> Option<(f64, f64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may hold anything, so fields are counted from behind it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<f64>().ok();
    // SAFETY: `sysconf` only reads.
    let (ticks, page) = unsafe {
        (
            libc::sysconf(libc::_SC_CLK_TCK),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    Some((
        (number(11)? + number(12)?) / ticks as f64,
        number(21)? * page as f64,
    ))
}
