//! The name of a job, from the command that it runs.

/// How long a name may be.
pub const MOST: usize = 128;

/// Programs that run another one, which is what the job is about.
const WRAPPERS: &[&str] = &[
    "env", "exec", "ionice", "nice", "nohup", "sudo", "time", "command", "chronic", "setsid",
    "stdbuf",
];
/// As those, with one argument of their own.
const WRAPPERS_WITH_ARGUMENT: &[&str] = &["timeout", "flock", "chpst", "runuser", "su", "setlock"];
/// Programs that run a script, which is what the job is about.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "perl", "ruby", "php", "node",
];
const EXTENSIONS: &[&str] = &[".sh", ".bash", ".py", ".pl", ".rb", ".php", ".js"];

/// A name for a command line; `job` when nothing in it can be one.
pub fn of_command(line: &str) -> String {
    let program = program(line).unwrap_or("job");
    let program = program
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(program);
    let ending = EXTENSIONS
        .iter()
        .find_map(|extension| program.strip_suffix(extension));
    clean(ending.unwrap_or(program)).unwrap_or_else(|| "job".to_owned())
}

/// What is left when only characters of names are kept.
pub fn clean(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' | '.' | '_' => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name: String = name
        .trim_matches(['-', '.', '_'])
        .chars()
        .take(MOST)
        .collect();
    (!name.is_empty()).then_some(name)
}

/// The word that says what the line does.
fn program(line: &str) -> Option<&str> {
    let mut interpreter = None;
    // A guard such as `test -x … &&` or `cd … &&` comes before what counts.
    let last_guarded = line.split("&&").map(str::trim).find(|part| {
        let first = part.split_whitespace().next().unwrap_or_default();
        !matches!(
            first,
            "cd" | "test" | "[" | "[[" | "." | "source" | "export" | "sleep" | "umask" | ""
        )
    });
    let mut words = last_guarded.unwrap_or(line).split_whitespace();
    while let Some(word) = words.next() {
        let bare = word.trim_matches(['(', ')', '"', '\'', ';', '{', '}', '`', '&']);
        let base = bare.rsplit('/').next().unwrap_or(bare);
        if bare.chars().all(|c| c.is_ascii_digit())
            || is_assignment(bare)
            || bare.starts_with('-')
            || WRAPPERS.contains(&base)
        {
            continue;
        }
        if WRAPPERS_WITH_ARGUMENT.contains(&base) {
            skip_argument(&mut words);
        } else if INTERPRETERS.contains(&base) && interpreter.is_none() {
            interpreter = Some(bare);
        } else {
            return Some(bare);
        }
    }
    interpreter
}

fn skip_argument(words: &mut std::str::SplitWhitespace<'_>) {
    let mut ahead = words.clone();
    while let Some(word) = ahead.next() {
        *words = ahead.clone();
        if !word.starts_with('-') {
            return;
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_the_command_does() {
        let cases = [
            ("/usr/local/bin/backup.sh --all > /dev/null 2>&1", "backup"),
            ("cd / && run-parts --report /etc/cron.hourly", "run-parts"),
            (
                "test -x /usr/sbin/anacron || ( cd / && run-parts /etc/cron.daily )",
                "run-parts",
            ),
            ("nice -n 19 ionice -c3 /opt/Report_Gen.py", "report_gen"),
            ("/usr/bin/python3 -u /srv/app/Sync Users.py", "sync"),
            ("timeout 30 curl -s http://localhost/", "curl"),
            ("flock -n /tmp/x.lock /usr/bin/rsync -a a b", "rsync"),
            ("LANG=C FOO=1 psql -c 'vacuum'", "psql"),
            ("[ -x /a ] && /usr/bin/certbot renew", "certbot"),
            ("bash -c 'echo hello'", "echo"),
            ("bash", "bash"),
            ("日本", "job"),
            ("", "job"),
        ];
        for (line, name) in cases {
            assert_eq!(of_command(line), name, "{line}");
        }
    }
}
