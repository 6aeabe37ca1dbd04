use super::{End, words};
use crate::files::Files;
use crate::record::record;
use crate::set::Set;

/// `workshop check`.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The set.
    #[arg(long, default_value = "kit")]
    set: String,
}

impl Check {
    pub async fn run(&self, files: &Files) -> Result<End, String> {
        let set = Set::read(files, &self.set).map_err(words)?;
        let wanted: Vec<usize> = (0..set.scenarios.len()).collect();
        let recording = record(&set, &wanted).await.map_err(words)?;
        let mut differing = 0;
        for (name, bytes) in &recording {
            let path = format!("{}/captures/{name}", self.set);
            let difference = match files.read(&path) {
                None => Some("there is no committed capture of this name".to_owned()),
                Some(committed) => {
                    capture::first_difference(&committed, bytes).map(|difference| difference.to_string())
                }
            };
            if let Some(difference) = difference {
                differing += 1;
                println!("{}: {difference}", files.shown(&path));
            }
        }
        if differing > 0 {
            println!("{differing} of {} files differ", recording.len());
            return Ok(End::Differs);
        }
        println!("{} files, all the same", recording.len());
        Ok(End::Done)
    }
}
