//! The blocks of a page and the comments above them.

use std::path::Path;

pub struct Page {
    pub path: String,
    pub blocks: Vec<Block>,
}

pub struct Block {
    pub line: usize,
    pub language: String,
    pub text: String,
    pub note: Option<Note>,
}

/// What a comment right above a block says of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    NotRun(String),
    File(String),
    Stopped,
}

impl Page {
    pub fn read(path: &str) -> Self {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let text = std::fs::read_to_string(root.join(path)).expect("the page is there");
        Self::parse(path, &text)
    }

    fn parse(path: &str, text: &str) -> Self {
        let mut blocks = Vec::new();
        let mut note = None;
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let line = line.trim();
            if let Some(language) = line.strip_prefix("```") {
                let inside = lines.by_ref().map(|(_, line)| line);
                let inside: Vec<&str> = inside.take_while(|line| line.trim() != "```").collect();
                blocks.push(Block {
                    line: number + 1,
                    language: language.to_owned(),
                    text: inside.join("\n") + "\n",
                    note: note.take(),
                });
            } else if let Some(said) = line
                .strip_prefix("<!-- ")
                .and_then(|rest| rest.strip_suffix(" -->"))
            {
                note = Some(noted(said, path, number + 1));
            } else {
                assert!(
                    note.is_none() || line.is_empty(),
                    "{path}:{number}: a comment for no block"
                );
            }
        }
        Self {
            path: path.to_owned(),
            blocks,
        }
    }

    /// The blocks with something to type.
    pub fn commands(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.is_typed())
    }
}

fn noted(said: &str, path: &str, line: usize) -> Note {
    match said.split_once(": ").unwrap_or((said, "")) {
        ("not run", reason) if !reason.is_empty() => Note::NotRun(reason.to_owned()),
        ("file", name) if !name.is_empty() => Note::File(name.to_owned()),
        ("stopped", "") => Note::Stopped,
        _ => panic!("{path}:{line}: what is `{said}`?"),
    }
}

impl Block {
    pub fn is_typed(&self) -> bool {
        ["sh", "bash", "shell"].contains(&self.language.as_str()) || self.language == "console"
    }

    /// What is typed, without what is answered.
    pub fn typed(&self) -> String {
        if self.language != "console" {
            return self.text.clone();
        }
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("$ "));
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

#[test]
fn blocks_and_their_comments_are_found() {
    let text = "# A\n<!-- not run: needs apt -->\n```sh\napt x\n```\n\n```console\n$ ls\na\n$ pwd\n```\n<!-- file: a.yaml -->\n\n```yaml\na: 1\n```\n";
    let page = Page::parse("a.md", text);
    let notes: Vec<_> = page.blocks.iter().map(|block| block.note.clone()).collect();
    assert_eq!(
        notes,
        [
            Some(Note::NotRun("needs apt".to_owned())),
            None,
            Some(Note::File("a.yaml".to_owned()))
        ]
    );
    assert_eq!(page.blocks[1].typed(), "ls\npwd\n");
    assert_eq!(page.blocks[1].line, 7);
    assert_eq!(page.commands().count(), 2);
}
