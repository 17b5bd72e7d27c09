//! The commands of `cargo xtask`: one table that the parser, `--help` and the check of the docs all read.

use std::fmt::Write;

pub struct Command {
    pub name: &'static str,
    pub summary: &'static str,
    /// What follows the name on the usage line.
    pub usage: &'static str,
    pub help: &'static str,
    /// Flags that the command takes itself.
    pub flags: &'static [&'static str],
    /// Flags of its own that are followed by a value.
    pub options: &'static [&'static str],
    /// One word that it takes besides, by the name that its usage line gives it.
    pub operand: Option<&'static str>,
    /// Verbs of `drumtower` that receive every other argument.
    pub passes_to: Option<&'static [&'static str]>,
}

pub const COMMANDS: &[Command] = &[
    Command {
        name: "dev",
        summary: "build, start a server with a worker and demo jobs, say what to try next",
        usage: "[--debug] [ARGUMENTS]...",
        help: "Builds the release binary and becomes `drumtower dev --demo ARGUMENTS`.\n\
               Stop it with Ctrl-C. `drumtower dev --help` lists the arguments.\n\n\
               Options:\n  --debug  build without optimisation: starts sooner, runs slower\n\n\
               Examples:\n  cargo xtask dev\n  cargo xtask dev --listen 127.0.0.1:7171",
        flags: &["--debug"],
        options: &[],
        operand: None,
        passes_to: Some(&["dev"]),
    },
    Command {
        name: "test",
        summary: "check the format, run clippy, build everything, run every test, try the API",
        usage: "[--long]",
        help: "Runs, in this order, and stops at the first failure:\n  \
               format, clippy with warnings denied, the web console, a build of `drumtower` in which tests can choose where it dies,\n  \
               every test of the workspace, the console in a real browser, then schemathesis against the API.\n\
               Tests that start real processes find the binary by DRUMTOWER_BIN.\n\
               Programs the tests call (strace, chromium) are installed by apt-get when missing.\n\n\
               Options:\n  --long  soak sizes: sets DRUMTOWER_LONG=1 for every test\n\n\
               Examples:\n  cargo xtask test\n  cargo xtask test --long",
        flags: &["--long"],
        options: &[],
        operand: None,
        passes_to: None,
    },
    Command {
        name: "console",
        summary: "build the web console, for the server to embed",
        usage: "",
        help: "Installs the packages of console/ as its lock file says, checks the types, builds, and puts the files with their\n\
               compressed forms into console/embedded. The next build of `drumtower` contains them. Needs Node.js 20 or later.\n\
               `npm run dev` in console/ serves it while you edit, against the server that DRUMTOWER_URL names.",
        flags: &[],
        options: &[],
        operand: None,
        passes_to: None,
    },
    Command {
        name: "schemathesis",
        summary: "try the HTTP API with data made from its own description",
        usage: "[--seed N] [--built]",
        help: "Starts a server with a worker in a directory of its own and lets schemathesis call every operation of\n\
               /api/openapi.json: the examples, the edges of the schemas, 200 random requests an operation, and several\n\
               hundred chains of requests along the links. A 5xx, or an answer that the description does not promise, fails it.\n\
               Schemathesis is installed by pip into target/schemathesis.\n\n\
               Options:\n  --seed N  another course of random data than that of CI\n  \
               --built   take the debug build as it is\n\n\
               Examples:\n  cargo xtask schemathesis\n  cargo xtask schemathesis --seed 7",
        flags: &["--built"],
        options: &["--seed"],
        operand: None,
        passes_to: None,
    },
    Command {
        name: "lint",
        summary: "check the format, run clippy and the tidy test",
        usage: "",
        help: "The quick part of `test`, for before a commit. The tidy test asks the debug build of `drumtower`,\n\
               if there is one, whether the commands in the docs exist and the generated files are fresh.",
        flags: &[],
        options: &[],
        operand: None,
        passes_to: None,
    },
    Command {
        name: "bench",
        summary: "build the release binary and measure it",
        usage: "[ARGUMENTS]...",
        help: "Builds the release binary and becomes `drumtower bench ARGUMENTS`.\n\
               `cargo xtask bench help` lists what can be measured.",
        flags: &[],
        options: &[],
        operand: None,
        passes_to: Some(&["bench"]),
    },
    Command {
        name: "bench-compare",
        summary: "measure the working tree and a commit in turn, and print the ratio",
        usage: "COMMIT [--rounds N] [--seconds N] [--rate N] [--path PATH] [--at-least RATIO]",
        help: "Builds COMMIT (in a worktree under target/) and the working tree with the release profile, and runs\n\
               `drumtower bench throughput` of both in turn: old new, new old, and so on. The table goes to the standard error,\n\
               JSON to the standard output: runs a second, delays and CPU of every round, and the median of new over old\n\
               with its spread. By default more is offered than two cores take, so that throughput is the server's own.\n\n\
               Options:\n  --rounds N        how often each is measured; 5 unless given\n  \
               --seconds N       how long load is offered each time; 15 unless given\n  \
               --rate N          runs a second to offer; 150000 unless given\n  \
               --path PATH       batch or schedule; batch unless given\n  \
               --at-least RATIO  fail when the median of new over old is below\n\n\
               Examples:\n  cargo xtask bench-compare HEAD~1\n  \
               cargo xtask bench-compare v0.1.0 --rounds 7 --at-least 0.9 > ratio.json",
        flags: &[],
        options: &["--rounds", "--seconds", "--rate", "--path", "--at-least"],
        operand: Some("COMMIT"),
        passes_to: None,
    },
    Command {
        name: "sim",
        summary: "let worlds in virtual time attack the engine, and say what broke",
        usage: "[--seeds N] [--start SEED] [--trace] [--coverage] [--fault NAME] [--threads N]",
        help: "Builds the simulator with the profile `sim` and lets worlds happen: one for each seed, from SEED on, on every core.\n\
               Each draws servers, workers, jobs, users and what goes wrong. A broken promise fails it, and its replay is printed.\n\
               docs/simulator.md says what is simulated and what is checked.\n\n\
               Options:\n  --seeds N     so many worlds; 1000 unless given\n  \
               --start SEED  the first of them; 0 unless given\n  \
               --trace       only the first, with every line of what happened\n  \
               --coverage    print what was tried under which trouble; printed anyway from 1000 worlds on\n  \
               --fault NAME  break a rule on purpose, to see it found; a wrong name lists them\n  \
               --threads N   instead of all cores\n\n\
               Examples:\n  cargo xtask sim --seeds 10000\n  cargo xtask sim --start 17 --seeds 1 --trace",
        flags: &["--trace", "--coverage"],
        options: &["--seeds", "--start", "--fault", "--threads"],
        operand: None,
        passes_to: None,
    },
    Command {
        name: "codegen",
        summary: "rewrite the generated files that git keeps",
        usage: "",
        help: "Builds `drumtower`, asks it for each generated file and writes those that differ.\n\
               The tidy test fails while a generated file is stale.",
        flags: &[],
        options: &[],
        operand: None,
        passes_to: None,
    },
    Command {
        name: "dist",
        summary: "make the packages that people install: a tarball and a .deb",
        usage: "[--binary FILE] [--target TRIPLE] [--out DIR]",
        help: "Builds the release binary, static (musl) where rustup has that target and musl-gcc is there, and puts a\n\
               tarball, a Debian package and SHA256SUMS into target/dist.\n\n\
               Options:\n  --binary FILE    package this binary instead of building one\n  \
               --target TRIPLE  build for this target of the toolchain\n  \
               --out DIR        put everything there\n\n\
               Examples:\n  cargo xtask dist\n  cargo xtask dist --binary target/debug/drumtower --out /tmp/dist",
        flags: &[],
        options: &["--binary", "--target", "--out"],
        operand: None,
        passes_to: None,
    },
];

pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// What `cargo xtask --help` prints.
pub fn overview() -> String {
    let mut text = String::from(
        "The one door for people who build Drumtower.\n\nUsage: cargo xtask COMMAND\n\nCommands:\n",
    );
    for command in COMMANDS {
        let _ = writeln!(text, "  {:<13} {}", command.name, command.summary);
    }
    text.push_str(
        "\nStart with `cargo xtask dev`; run `cargo xtask test` before you send a change.\n",
    );
    text.push_str("`cargo xtask COMMAND --help` says more.");
    text
}

impl Command {
    /// What `cargo xtask NAME --help` prints.
    pub fn page(&self) -> String {
        let usage = format!("cargo xtask {} {}", self.name, self.usage);
        format!(
            "cargo xtask {}: {}\n\nUsage: {}\n\n{}",
            self.name,
            self.summary,
            usage.trim_end(),
            self.help
        )
    }

    /// Whether this is the one word that it takes besides flags and options.
    fn is_operand(&self, word: &str, before: &[String]) -> bool {
        let mut earlier = before.iter();
        let mut taken = false;
        while let Some(it) = earlier.next() {
            if self.options.contains(&it.as_str()) {
                earlier.next();
            } else {
                taken |= !self.flags.contains(&it.as_str());
            }
        }
        self.operand.is_some() && !taken && !word.starts_with('-')
    }

    /// Parts the arguments into the command's own flags and what it passes on.
    ///
    /// A command that passes nothing on refuses what it does not know.
    pub fn split(&self, arguments: &[String]) -> Result<(Vec<String>, Vec<String>), String> {
        let (mut own, mut rest) = (Vec::new(), Vec::new());
        let mut arguments = arguments.iter().cloned();
        while let Some(argument) = arguments.next() {
            let name = argument.as_str();
            if self.options.contains(&name) {
                let value = arguments.next();
                let value = value.ok_or_else(|| format!("{name} needs a value"))?;
                own.extend([argument, value]);
            } else if self.flags.contains(&name) || self.is_operand(name, &own) {
                own.push(argument);
            } else {
                rest.push(argument);
            }
        }
        match rest.first() {
            Some(stranger) if self.passes_to.is_none() => Err(format!(
                "cargo xtask {} does not take {stranger:?}; see `cargo xtask {} --help`",
                self.name, self.name
            )),
            _ => Ok((own, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn flags_of_its_own_are_kept_and_the_rest_is_passed_on() {
        let dev = find("dev").unwrap();
        let (own, rest) = dev.split(&words("--listen 127.0.0.1:0 --debug")).unwrap();
        assert_eq!(own, words("--debug"));
        assert_eq!(rest, words("--listen 127.0.0.1:0"));
    }

    #[test]
    fn an_unknown_argument_is_refused_by_name() {
        let error = find("test").unwrap().split(&words("--log")).unwrap_err();
        assert!(error.contains("\"--log\""), "{error}");
    }

    #[test]
    fn an_option_takes_its_value_along() {
        let dist = find("dist").unwrap();
        let (own, rest) = dist.split(&words("--binary target/x --out y")).unwrap();
        assert_eq!((own.len(), rest.len()), (4, 0));
        assert!(dist.split(&words("--binary")).is_err());
    }

    #[test]
    fn an_operand_is_taken_once() {
        let compare = find("bench-compare").unwrap();
        let (own, rest) = compare.split(&words("--rounds 3 HEAD --rate 9")).unwrap();
        assert_eq!((own.len(), rest.len()), (5, 0));
        let refused = compare.split(&words("HEAD --rounds 3 main")).unwrap_err();
        assert!(refused.contains("\"main\""), "{refused}");
        assert!(compare.split(&words("--head")).is_err());
        assert!(find("lint").unwrap().split(&words("HEAD")).is_err());
    }

    #[test]
    fn help_names_every_command_and_every_flag() {
        for command in COMMANDS {
            assert!(overview().contains(command.name));
            for flag in command.flags.iter().chain(command.options) {
                assert!(command.page().contains(flag), "{flag} is not explained");
            }
        }
    }
}
