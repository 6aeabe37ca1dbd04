use std::path::PathBuf;

use super::{End, recorded, words, write};
use crate::files::Files;
use crate::set::Set;

/// `workshop record`.
#[derive(Debug, clap::Args)]
pub struct Record {
    /// The scenarios, by name or number. Without any: the whole set.
    #[arg(value_name = "SCENARIO")]
    names: Vec<String>,
    /// The set.
    #[arg(long, default_value = "kit")]
    set: String,
    /// Where to write.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
}

impl Record {
    pub async fn run(&self, files: &Files) -> Result<End, String> {
        let set = Set::read(files, &self.set).map_err(words)?;
        let wanted: Vec<usize> = if self.names.is_empty() {
            (0..set.scenarios.len()).collect()
        } else {
            self.names.iter().map(|name| set.find(name)).collect::<Result<_, _>>()?
        };
        let recording = recorded(&set, &wanted).await?;
        write(&self.out, &recording)?;
        println!("{} files written to {}", recording.len(), self.out.display());
        Ok(End::Done)
    }
}
