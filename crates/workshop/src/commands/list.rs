use super::{End, words};
use crate::files::Files;
use crate::set::Set;

/// `workshop list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// The set.
    #[arg(long, default_value = "kit")]
    set: String,
}

impl List {
    pub fn run(&self, files: &Files) -> Result<End, String> {
        let set = Set::read(files, &self.set).map_err(words)?;
        println!("{}: {}", set.name, set.about);
        let width = set.scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or_default();
        for scenario in &set.scenarios {
            println!("  {:width$}  {}", scenario.name, scenario.question);
        }
        Ok(End::Done)
    }
}
