//! As much of the shell as docs use: which words each simple command of a block has.
//!
//! Quotes, backslashes, comments, pipes and lists, substitutions outside quotes, redirections and
//! here-documents are understood. Expansion is not: `$RUN` stays the word `$RUN`.

use std::iter::Peekable;
use std::str::Chars;

/// The simple commands of a script, each as its words.
pub fn commands(script: &str) -> Vec<Vec<String>> {
    let mut reader = Reader::new(script);
    reader.read();
    reader.commands
}

/// What a person typed in a console transcript: the lines behind `$ `, with their continuations.
pub fn typed(transcript: &str) -> String {
    let mut script = String::new();
    let mut continued = false;
    for line in transcript.lines() {
        let typed = line.trim_start().strip_prefix("$ ");
        if continued || typed.is_some() {
            let line = typed.unwrap_or(line);
            script.push_str(line);
            script.push('\n');
            continued = line.ends_with('\\');
        }
    }
    script
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// Delimiters of here-documents whose bodies begin on the next line.
    documents: Vec<String>,
    /// The next word is the target of a redirection, or the delimiter of a here-document.
    redirect: Option<Redirect>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Redirect {
    File,
    Document,
}

impl<'a> Reader<'a> {
    fn new(script: &'a str) -> Reader<'a> {
        Reader {
            rest: script.chars().peekable(),
            commands: Vec::new(),
            words: Vec::new(),
            word: None,
            documents: Vec::new(),
            redirect: None,
        }
    }

    fn read(&mut self) {
        while let Some(it) = self.rest.next() {
            match it {
                '\'' => self.quoted('\''),
                '"' => self.quoted('"'),
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                '#' if self.word.is_none() => self.skip_line(),
                '<' | '>' => self.redirection(it),
                '$' if self.rest.peek() == Some(&'(') => self.end_command(),
                '|' | ';' | '&' | '(' | ')' | '`' => self.end_command(),
                '\n' => {
                    self.end_command();
                    self.skip_documents();
                }
                blank if blank.is_whitespace() => self.end_word(),
                other => self.push(other),
            }
        }
        self.end_command();
    }

    fn push(&mut self, it: char) {
        self.word.get_or_insert_default().push(it);
    }

    fn quoted(&mut self, quote: char) {
        self.word.get_or_insert_default();
        while let Some(it) = self.rest.next() {
            match it {
                '\\' if quote == '"' => {
                    if let Some(escaped) = self.rest.next() {
                        self.push(escaped);
                    }
                }
                end if end == quote => return,
                other => self.push(other),
            }
        }
    }

    fn redirection(&mut self, sign: char) {
        // `2>file`: the number belongs to the sign, not to the words.
        if self
            .word
            .as_ref()
            .is_some_and(|word| word.chars().all(|it| it.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word();
        let mut signs = 1;
        while self.rest.next_if_eq(&sign).is_some() {
            signs += 1;
        }
        self.rest.next_if(|it| *it == '&' || *it == '-');
        self.redirect = Some(if sign == '<' && signs == 2 {
            Redirect::Document
        } else {
            Redirect::File
        });
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirect.take() {
            None => self.words.push(word),
            Some(Redirect::File) => {}
            Some(Redirect::Document) => self.documents.push(word),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirect = None;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }

    fn skip_line(&mut self) {
        while self.rest.next_if(|it| *it != '\n').is_some() {}
    }

    fn skip_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.documents) {
            loop {
                let mut line = String::new();
                while let Some(it) = self.rest.next_if(|it| *it != '\n') {
                    line.push(it);
                }
                let ended = self.rest.next().is_none();
                if ended || line.trim() == delimiter {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(script: &str) -> Vec<String> {
        commands(script)
            .into_iter()
            .map(|words| words.join("|"))
            .collect()
    }

    #[test]
    fn words_follow_the_shell() {
        assert_eq!(
            joined("a 'b c' \"d \\\" e\" f\\ g # h\n"),
            ["a|b c|d \" e|f g"]
        );
        assert_eq!(joined("a \\\n  b\nc"), ["a|b", "c"]);
        assert_eq!(joined("a | b && c; d & e"), ["a", "b", "c", "d", "e"]);
        assert_eq!(joined("x=$(a b) c 2>/dev/null >> log"), ["x=", "a|b", "c"]);
        assert_eq!(joined("a '' b"), ["a||b"]);
    }

    #[test]
    fn the_body_of_a_here_document_is_not_a_command() {
        assert_eq!(
            joined("a -f - <<'EOF'\nkind: Job\nname: x\nEOF\nb\n"),
            ["a|-f|-", "b"]
        );
        assert_eq!(joined("a <<EOF\nnever closed"), ["a"]);
    }

    #[test]
    fn a_transcript_gives_what_was_typed() {
        assert_eq!(
            typed("$ a b\nanswer\n$ c \\\n    d\nanswer\n"),
            "a b\nc \\\n    d\n"
        );
    }
}
