//! One line of a crontab, as cron reads it.

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Blank,
    Comment(String),
    /// `NAME=value`: holds for the lines below it.
    Setting {
        name: String,
        value: String,
    },
    Entry(Entry),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Five fields, or a name such as `@daily`.
    pub times: String,
    /// Only in the format of the system's own crontabs.
    pub user: Option<String>,
    pub command: String,
    /// What comes after the first `%`, with a newline for each further one.
    pub stdin: Option<String>,
}

/// Reads a line; `system` ones name a user after the times.
pub fn read(line: &str, system: bool) -> Result<Line, String> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(Line::Blank);
    }
    if let Some(comment) = line.strip_prefix('#') {
        return Ok(Line::Comment(comment.trim().to_owned()));
    }
    if let Some((name, value)) = setting(line) {
        return Ok(Line::Setting { name, value });
    }
    entry(line, system).map(Line::Entry)
}

/// A name, `=` and a value, each perhaps in quotes and with spaces around.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = unquoted(name.trim());
    let is_name = name
        .chars()
        .enumerate()
        .all(|(at, c)| c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit()));
    (is_name && !name.is_empty()).then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = text
            .strip_prefix(quote)
            .and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    text
}

fn entry(line: &str, system: bool) -> Result<Entry, String> {
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let mut rest = line;
    let mut times = Vec::new();
    for _ in 0..fields {
        let (word, after) = word(rest);
        times.push(word);
        rest = after;
    }
    let user = match system {
        true => {
            let (user, after) = word(rest);
            rest = after;
            Some(user.to_owned()).filter(|user| !user.is_empty())
        }
        false => None,
    };
    if rest.is_empty() || (system && user.is_none()) {
        let wanted = match (fields, system) {
            (1, false) => "a command after the name of the times",
            (1, true) => "a user and a command after the name of the times",
            (_, false) => "five fields of times and a command",
            (_, true) => "five fields of times, a user and a command",
        };
        return Err(format!("expected {wanted}, or NAME=value"));
    }
    let (command, stdin) = percent(rest);
    Ok(Entry {
        times: times.join(" "),
        user,
        command,
        stdin,
    })
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find([' ', '\t']).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// `%` ends the command and begins its standard input, where it is a newline; `\%` is a plain one.
fn percent(text: &str) -> (String, Option<String>) {
    let mut pieces = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let piece = pieces.len() - 1;
        match c {
            '\\' if chars.peek() == Some(&'%') => {
                chars.next();
                pieces[piece].push('%');
            }
            '%' => pieces.push(String::new()),
            c => pieces[piece].push(c),
        }
    }
    let command = pieces.remove(0).trim_end().to_owned();
    let stdin = (!pieces.is_empty()).then(|| pieces.join("\n") + "\n");
    (command, stdin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str, system: bool) -> Entry {
        match read(text, system) {
            Ok(Line::Entry(entry)) => entry,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn lines_are_read_as_cron_reads_them() {
        assert_eq!(read("  \t", false), Ok(Line::Blank));
        assert_eq!(read("# hello ", false), Ok(Line::Comment("hello".into())));
        let setting = |name: &str, value: &str| {
            Ok(Line::Setting {
                name: name.into(),
                value: value.into(),
            })
        };
        assert_eq!(read("MAILTO=\"\"", false), setting("MAILTO", ""));
        assert_eq!(read("'A' = b c ", false), setting("A", "b c"));
        let hello = entry("*/5\t* * * mon   echo a=b", false);
        assert_eq!(
            (hello.times.as_str(), hello.command.as_str()),
            ("*/5 * * * mon", "echo a=b")
        );
        let root = entry("17 *  * * *   root    cd / && run-parts", true);
        assert_eq!(
            (root.user.as_deref(), root.command.as_str()),
            (Some("root"), "cd / && run-parts")
        );
        assert_eq!(entry("@daily x=1 true", false).command, "x=1 true");
        for text in ["* * * *", "* * * * *", "@daily", "hello"] {
            assert!(read(text, false).is_err(), "{text}");
        }
        assert!(read("* * * * * root", true).is_err());
    }

    #[test]
    fn a_percent_begins_the_input() {
        let mail = entry("0 9 * * 1 mail -s 50\\% joe%Joe,%%Where are you?", false);
        assert_eq!(mail.command, "mail -s 50% joe");
        assert_eq!(mail.stdin.as_deref(), Some("Joe,\n\nWhere are you?\n"));
        assert_eq!(entry("* * * * * date +\\%F", false).stdin, None);
    }
}
