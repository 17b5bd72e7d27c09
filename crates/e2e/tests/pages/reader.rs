//! Someone with an empty home who types what a page says.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use drumtower_e2e::{PATIENCE, Process, Site, drumtower, eventually, free_port, within};

use crate::page::{Block, Note, Page};

pub struct Reader {
    home: PathBuf,
    blocks: PathBuf,
    pieces: usize,
    path: String,
    port: u16,
    shell: Shell,
    terminals: Vec<Terminal>,
}

/// What was done with the blocks of a page.
#[derive(Default)]
pub struct Followed {
    pub run: usize,
    /// Line and reason.
    pub not_run: Vec<(usize, String)>,
}

/// A program that stays in the foreground of a terminal of its own.
struct Terminal {
    line: String,
    process: Process,
}

/// One shell for a whole page, so that a later block knows the variables of an earlier one.
struct Shell {
    child: Child,
    input: ChildStdin,
    log: PathBuf,
}

impl Reader {
    pub fn new(site: &Site) -> Self {
        let (home, bin) = (site.dir("home"), site.dir("bin"));
        std::os::unix::fs::symlink(drumtower(), bin.join("drumtower")).expect("a link");
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let port = free_port();
        let mut sh = Command::new("/bin/sh");
        at(&mut sh, &home, &path, port);
        let shell = Shell::start(sh, site.path().join("shell.log"));
        let blocks = site.dir("blocks");
        Self {
            home,
            blocks,
            pieces: 0,
            path,
            port,
            shell,
            terminals: Vec::new(),
        }
    }

    #[track_caller]
    pub fn follow(&mut self, page: &Page) -> Followed {
        let mut followed = Followed::default();
        for block in &page.blocks {
            let place = format!("{}:{}", page.path, block.line);
            match &block.note {
                Some(Note::NotRun(reason)) => followed.not_run.push((block.line, reason.clone())),
                Some(Note::File(name)) => {
                    let path = self.home.join(name);
                    std::fs::write(path, self.here(&block.text)).expect("a file in the home");
                }
                note if block.is_typed() => {
                    let stopped = *note == Some(Note::Stopped);
                    self.type_in(block, &place, stopped);
                    followed.run += 1;
                }
                _ => {}
            }
        }
        followed
    }

    #[track_caller]
    fn type_in(&mut self, block: &Block, place: &str, stopped: bool) {
        let away: Vec<String> = if stopped { self.stop() } else { Vec::new() };
        let mut lines = String::new();
        for line in self.here(&block.typed()).lines() {
            if block.language == "console" && stays(line) {
                self.shell(&std::mem::take(&mut lines), place);
                self.open(line, place);
            } else {
                lines.push_str(line);
                lines.push('\n');
            }
        }
        self.shell(&lines, place);
        for line in away {
            self.open(&line, place);
        }
    }

    #[track_caller]
    fn shell(&mut self, lines: &str, place: &str) {
        if !lines.is_empty() {
            self.pieces += 1;
            let file = self.blocks.join(format!("{}.sh", self.pieces));
            std::fs::write(&file, lines).expect("a block in the site");
            self.shell.source(&file, place, lines);
        }
    }

    /// What a page calls by the names of a real machine, by those of this test.
    fn here(&self, text: &str) -> String {
        let root = self.home.with_file_name("root");
        let text = text.replace("7070", &self.port.to_string());
        ["/var/lib/drumtower", "/mnt/backups"]
            .iter()
            .fold(text, |text, path| {
                text.replace(path, &format!("{}{path}", root.display()))
            })
    }

    /// Starts a server or a worker in a terminal of its own and waits until it is at work. There is one port: a server
    /// takes the place of the one before it.
    #[track_caller]
    pub fn open(&mut self, line: &str, place: &str) {
        let serves = !line.starts_with("drumtower work");
        if serves {
            self.stop();
        }
        self.pieces += 1;
        let log = format!("terminal-{}.log", self.pieces);
        let log = self.home.with_file_name(log);
        let mut command = Command::new("/bin/sh");
        at(&mut command, &self.home, &self.path, self.port);
        command.args(["-c", &format!("exec {line}")]);
        let mut process = Process::spawn(command, &log);
        let ready = if serves {
            "drumtower serves"
        } else {
            "connected"
        };
        eventually(&format!("{place}: `{line}` is at work"), || {
            let said = process.log();
            assert!(process.ended().is_none(), "{place}: `{line}` ended: {said}");
            said.contains(ready).then_some(())
        });
        self.terminals.push(Terminal {
            line: line.to_owned(),
            process,
        });
    }

    /// Ctrl-C in every other terminal; what ran there.
    fn stop(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(mut terminal) = self.terminals.pop() {
            let end = terminal.process.stop();
            assert!(end.success(), "`{}`: {end}", terminal.line);
            lines.insert(0, terminal.line);
        }
        lines
    }
}

/// Whether a command stays in the foreground until Ctrl-C.
fn stays(line: &str) -> bool {
    ["dev", "serve", "work"]
        .iter()
        .any(|verb| line.split_whitespace().take(2).eq(["drumtower", verb]))
}

fn at(command: &mut Command, home: &Path, path: &str, port: u16) {
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("DRUMTOWER_LISTEN", format!("127.0.0.1:{port}"))
        .current_dir(home);
}

impl Shell {
    fn start(mut command: Command, log: PathBuf) -> Self {
        let file = std::fs::File::create(&log).expect("a log");
        let again = file.try_clone().expect("the log once more");
        command.stdin(Stdio::piped()).stdout(file).stderr(again);
        let mut child = command.spawn().expect("a shell");
        let input = child.stdin.take().expect("a pipe");
        let mut shell = Self { child, input, log };
        // The first command that fails ends the shell.
        shell.send("set -e\n");
        shell
    }

    fn send(&mut self, line: &str) {
        self.input
            .write_all(line.as_bytes())
            .expect("a shell that listens");
    }

    /// Runs a file of commands in this shell; nobody is there to answer questions.
    #[track_caller]
    fn source(&mut self, file: &Path, place: &str, lines: &str) {
        let done = file.with_extension("done");
        self.send(&format!(
            ". {} < /dev/null\n: > {}\n",
            file.display(),
            done.display()
        ));
        within(PATIENCE + Duration::from_secs(60), place, || {
            if done.exists() {
                return Some(());
            }
            if let Some(end) = self.child.try_wait().expect("a shell can be asked") {
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                let tail: Vec<&str> = said.lines().rev().take(20).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                panic!("{place} ended with {end}:\n{lines}\n{}", tail.join("\n"));
            }
            None
        });
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
