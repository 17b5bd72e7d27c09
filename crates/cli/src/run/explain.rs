//! `drumtower run explain`: why a run is where it is, and what to do about it.

use clap::Args;

use super::path;
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{Output, text};

/// Say why a run waits, was tried again, moved, was cancelled or failed
///
/// First the one sentence that answers "why?", then what happened in order, with times and who
/// did it, then what to do, with commands to type. Dead letters are explained too.
///
///     drumtower run explain run_06d4ztbp00000
///     drumtower run explain run_06d4ztbp00000 -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Explain {
    /// The run's id
    run: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Explain {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let told = client.value(Call::get(format!("{}/explain", path(&self.run))))?;
        self.output.one(&told, |_| text(&told, "text"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Parser;

    /// What explanations tell people to type, as their texts have it.
    fn told() -> Vec<String> {
        let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/explained/golden");
        let mut commands = Vec::new();
        for file in fs::read_dir(texts).expect("texts") {
            let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
            let typed = text.lines().filter_map(|line| line.strip_prefix("    "));
            commands.extend(typed.map(str::to_owned));
        }
        commands
    }

    #[test]
    fn what_people_are_told_to_type_is_understood() {
        let commands = told();
        assert!(commands.len() > 30, "{}", commands.len());
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            let parsed = crate::Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{command}: {parsed:?}");
        }
    }
}
