//! A job's task in the protocol's words.

use drumtower_core::model::{Http, Process, Task};
use drumtower_proto::worker::v1 as wire;

pub fn write(task: Task) -> wire::assign::Task {
    match task {
        Task::Exec(exec) => {
            let process = process(exec.process());
            wire::assign::Task::Exec(wire::ExecTask {
                argv: exec.argv,
                shell: exec.shell.unwrap_or_default(),
                process,
            })
        }
        Task::Script(script) => {
            let process = process(script.process());
            wire::assign::Task::Script(wire::ScriptTask {
                body: script.body,
                interpreter: script.interpreter,
                process,
            })
        }
        Task::Http(request) => wire::assign::Task::Http(http(*request)),
        Task::Handler(handler) => {
            wire::assign::Task::Handler(wire::HandlerTask { name: handler.name })
        }
    }
}

/// `None` for a command about which nothing special is said: the most common one, at tens of thousands a second.
fn process(process: Process<'_>) -> Option<wire::Process> {
    let limits = process.limits;
    let plain = process.env.is_empty()
        && process.cwd.is_none()
        && process.user.is_none()
        && process.stdin.is_none()
        && process.success_codes == [0]
        && limits.is_none();
    if plain {
        return None;
    }
    Some(wire::Process {
        env: process.env.clone().into_iter().collect(),
        cwd: process.cwd.unwrap_or_default().to_owned(),
        user: process.user.unwrap_or_default().to_owned(),
        stdin: process.stdin.map(str::to_owned),
        success_codes: process.success_codes.to_vec(),
        limits: (!limits.is_none()).then(|| wire::ResourceLimits {
            memory_bytes: limits.memory_bytes().unwrap_or(0),
            cpu_milli: limits.cpu.map_or(0, |cores| cores.0),
            open_files: limits.open_files.unwrap_or(0),
            processes: limits.processes.unwrap_or(0),
        }),
    })
}

fn http(request: Http) -> wire::HttpTask {
    // A job is checked before it is kept, so its duration is one.
    let timeout_ms = request
        .parsed_timeout("")
        .unwrap_or(Http::DEFAULT_TIMEOUT_MS);
    wire::HttpTask {
        method: request.method.name().to_owned(),
        url: request.url,
        headers: request.headers.into_iter().collect(),
        body: request.body,
        expect_status: request
            .expect
            .status
            .iter()
            .map(|pattern| {
                let (first, last) = pattern.range();
                wire::StatusRange {
                    first: first.into(),
                    last: last.into(),
                }
            })
            .collect(),
        expect_body: request.expect.body.unwrap_or_default(),
        timeout_ms,
        follow_redirects: request.follow_redirects,
        params_as_body: request.method.sends_params(),
    }
}

/// About how much of a frame it takes.
pub fn expected_bytes(task: &wire::assign::Task) -> usize {
    const SMALL: usize = 64;
    let words = |list: &[String]| list.iter().map(|word| word.len() + 4).sum::<usize>();
    let pairs = |map: &std::collections::HashMap<String, String>| {
        map.iter()
            .map(|(key, value)| key.len() + value.len() + 8)
            .sum::<usize>()
    };
    let process = |process: &Option<wire::Process>| {
        process.as_ref().map_or(0, |process| {
            2 * SMALL
                + pairs(&process.env)
                + process.cwd.len()
                + process.stdin.as_ref().map_or(0, String::len)
        })
    };
    match task {
        wire::assign::Task::Exec(exec) => {
            words(&exec.argv) + exec.shell.len() + process(&exec.process)
        }
        wire::assign::Task::Script(script) => {
            script.body.len() + words(&script.interpreter) + process(&script.process)
        }
        wire::assign::Task::Http(http) => {
            4 * SMALL
                + http.url.len()
                + pairs(&http.headers)
                + http.body.as_ref().map_or(0, String::len)
                + http.expect_body.len()
        }
        wire::assign::Task::Handler(_) => SMALL,
    }
}
