//! Escape sequences in what tasks write: colours may reach a terminal; what moves the cursor or sets a title may not.

/// Text for a terminal: colours stay, every other control character is shown as one that does nothing.
pub fn tamed(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
        let (before, from) = rest.split_at(at);
        safe.push_str(before);
        match color_sequence(from) {
            Some(length) => {
                safe.push_str(&from[..length]);
                rest = &from[length..];
            }
            None => {
                safe.push('\u{fffd}');
                rest = &from[from.chars().next().map_or(0, char::len_utf8)..];
            }
        }
    }
    safe.push_str(rest);
    safe
}

/// Text without any escape sequence; for a terminal also without other control characters.
pub fn stripped(words: &str, terminal: bool) -> String {
    let mut plain = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + sequence(&rest[at..])..];
    }
    plain.push_str(rest);
    if terminal { tamed(&plain) } else { plain }
}

/// The length of `ESC [ digits and semicolons m` at the start of the text.
fn color_sequence(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\u{1b}[")?;
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inside[end..].starts_with('m').then_some(2 + end + 1)
}

/// The length of the escape sequence at the start of the text: to its end where that is there, else just the escape.
fn sequence(text: &str) -> usize {
    let after =
        |from: usize, end: Option<(usize, usize)>| end.map_or(1, |(at, length)| from + at + length);
    match text.as_bytes().get(1) {
        Some(b'[') => after(
            2,
            text[2..]
                .find(|c: char| ('@'..='~').contains(&c))
                .map(|at| (at, 1)),
        ),
        // A title or a link, up to BEL or ESC backslash.
        Some(b']') => {
            let bell = text[2..].find('\u{7}').map(|at| (at, 1));
            let string = text[2..].find("\u{1b}\\").map(|at| (at, 2));
            let first = bell.into_iter().chain(string).min();
            after(2, first)
        }
        Some(0x20..=0x7e) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "\u{1b}[1;31mred\u{1b}[0m\n\u{1b}[2Jgone \u{1b}]0;title\u{7} 结束\u{1b}";

    #[test]
    fn colours_pass_and_other_sequences_do_not_reach_a_terminal() {
        let safe =
            "\u{1b}[1;31mred\u{1b}[0m\n\u{fffd}[2Jgone \u{fffd}]0;title\u{fffd} 结束\u{fffd}";
        assert_eq!(tamed(WORDS), safe);
    }

    #[test]
    fn a_pipe_gets_the_words_alone() {
        assert_eq!(stripped(WORDS, false), "red\ngone  结束");
        for text in [
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}[31",
            "\u{1b}]0;x",
            "\u{1b}é",
            "a\u{1b}[é",
        ] {
            assert!(!stripped(text, false).contains('\u{1b}'), "{text:?}");
        }
        assert_eq!(stripped("a\u{8}b", true), "a\u{fffd}b");
    }
}
