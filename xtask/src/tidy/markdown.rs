//! As much of Markdown as the checks need: headings with their anchors, fenced blocks, links.

/// What a page holds, in order of appearance.
#[derive(Debug, Default)]
pub struct Page {
    pub headings: Vec<Heading>,
    pub blocks: Vec<Block>,
    pub links: Vec<Link>,
    /// Anchors set by hand with an `id` or `name` attribute.
    pub explicit_anchors: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    pub level: usize,
    pub text: String,
    pub line: usize,
}

/// A fenced block: its language and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub language: String,
    pub text: String,
    /// The line of the opening fence.
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub target: String,
    pub line: usize,
}

impl Page {
    pub fn parse(text: &str) -> Page {
        let mut page = Page::default();
        let mut open: Option<(String, Block)> = None;
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let content = line.trim_start();
            if let Some((fence, block)) = &mut open {
                if content.starts_with(fence.as_str())
                    && content.trim_end().chars().all(|it| fence.contains(it))
                {
                    page.blocks.extend(open.take().map(|(_, block)| block));
                } else {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            } else if let Some((fence, language)) = fence(content) {
                open = Some((
                    fence,
                    Block {
                        language,
                        text: String::new(),
                        line: line_number,
                    },
                ));
            } else {
                page.read_prose(line, line_number);
            }
        }
        // A fence that is never closed runs to the end of the page.
        page.blocks.extend(open.map(|(_, block)| block));
        page
    }

    fn read_prose(&mut self, line: &str, line_number: usize) {
        let level = line.chars().take_while(|it| *it == '#').count();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let text = line[level..].trim().to_owned();
            self.headings.push(Heading {
                level,
                text,
                line: line_number,
            });
        }
        let prose = without_code(line);
        for attribute in ["id=\"", "name=\""] {
            let values = prose
                .split(attribute)
                .skip(1)
                .filter_map(|rest| rest.split('"').next());
            self.explicit_anchors.extend(values.map(str::to_owned));
        }
        let targets = inline_targets(&prose)
            .into_iter()
            .chain(definition_target(&prose));
        self.links.extend(targets.map(|target| Link {
            target,
            line: line_number,
        }));
    }

    /// The anchors a link may name: one a heading, numbered when headings repeat, and those set by hand.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for heading in &self.headings {
            let base = anchor(&heading.text);
            let mut candidate = base.clone();
            let mut count = 0;
            while anchors.contains(&candidate) {
                count += 1;
                candidate = format!("{base}-{count}");
            }
            anchors.push(candidate);
        }
        anchors.extend(self.explicit_anchors.iter().cloned());
        anchors
    }
}

/// The opening fence and the language behind it.
fn fence(content: &str) -> Option<(String, String)> {
    let mark = content
        .chars()
        .next()
        .filter(|it| *it == '`' || *it == '~')?;
    let length = content.chars().take_while(|it| *it == mark).count();
    let info = content[length..].trim();
    let inline = mark == '`' && info.contains('`');
    (length >= 3 && !inline).then(|| {
        let language = info
            .split([' ', ',', '{'])
            .next()
            .unwrap_or_default()
            .to_owned();
        (mark.to_string().repeat(length), language)
    })
}

/// The line with its code spans blanked: what they show is not a link.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts
        .map(|(index, part)| if index % 2 == 0 { part } else { "" })
        .collect::<Vec<_>>()
        .join("`")
}

/// The targets of `[text](target)` and `![text](target "title")`.
fn inline_targets(prose: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for rest in prose.split("](").skip(1) {
        let mut depth = 1;
        let end = rest.find(|it| {
            depth += match it {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        if let Some(end) = end {
            targets.push(bare_target(&rest[..end]));
        }
    }
    targets
}

/// The target of a definition `[label]: target` on a line of its own.
fn definition_target(prose: &str) -> Option<String> {
    let rest = prose.trim_start().strip_prefix('[')?;
    let (label, target) = rest.split_once("]:")?;
    (!label.contains(']') && !label.starts_with('^') && !target.trim().is_empty())
        .then(|| bare_target(target))
}

fn bare_target(target: &str) -> String {
    let target = target.trim();
    match target.strip_prefix('<').and_then(|it| it.split_once('>')) {
        Some((inside, _)) => inside.to_owned(),
        None => target
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

/// The anchor that code hosts give a heading: lower case, punctuation dropped, blanks as hyphens.
fn anchor(heading: &str) -> String {
    let mut visible = String::new();
    let mut rest = heading;
    while let Some(start) = rest.find("](") {
        visible.push_str(&rest[..start]);
        rest = rest[start..].split_once(')').map_or("", |(_, after)| after);
    }
    visible.push_str(rest);
    visible
        .to_lowercase()
        .chars()
        .filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'))
        .map(|it| if it == ' ' { '-' } else { it })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_blocks_and_links_are_told_apart() {
        let page = Page::parse(
            "# Title\n\nSee [a](a.md \"the a\") and `[no](no.md)`.\n\n```sh\n# not a heading [x](x.md)\n```\n\n[b]: <b c.md>\n",
        );
        assert_eq!(
            page.headings,
            [Heading {
                level: 1,
                text: "Title".into(),
                line: 1
            }]
        );
        let block = Block {
            language: "sh".into(),
            text: "# not a heading [x](x.md)\n".into(),
            line: 5,
        };
        assert_eq!(page.blocks, [block]);
        let targets: Vec<&str> = page.links.iter().map(|it| it.target.as_str()).collect();
        assert_eq!(targets, ["a.md", "b c.md"]);
    }

    #[test]
    fn anchors_follow_the_usual_rules() {
        let page = Page::parse(
            "# A `b`, c & d\n## Twice\n## Twice\n## 一个 标题\n## [Linked](x.md) text\n<a id=\"own\"></a>\n",
        );
        assert_eq!(
            page.anchors(),
            [
                "a-b-c--d",
                "twice",
                "twice-1",
                "一个-标题",
                "linked-text",
                "own"
            ]
        );
    }

    #[test]
    fn a_longer_fence_holds_a_shorter_one() {
        let page = Page::parse("````md\n```sh\nls\n```\n````\n");
        assert_eq!(page.blocks.len(), 1);
        assert_eq!(page.blocks[0].text, "```sh\nls\n```\n");
    }
}
