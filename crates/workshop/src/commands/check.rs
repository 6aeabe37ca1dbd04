use super::{End, recorded, words};
use crate::files::Files;
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
        let recording = recorded(&set, &wanted).await?;
        let folder = format!("{}/captures", self.set);
        let mut names: Vec<String> = files.names(&folder);
        names.extend(recording.keys().cloned());
        names.sort();
        names.dedup();
        let mut differing = 0;
        for name in &names {
            let path = format!("{folder}/{name}");
            let difference = match (files.read(&path), recording.get(name)) {
                (Some(committed), Some(recorded)) => {
                    capture::first_difference(&committed, recorded).map(|difference| difference.to_string())
                }
                (None, _) => Some("there is no committed capture of this name".to_owned()),
                (_, None) => Some("the set records no file of this name".to_owned()),
            };
            if let Some(difference) = difference {
                differing += 1;
                println!("{}: {difference}", files.shown(&path));
            }
        }
        if differing > 0 {
            println!("{differing} of {} files differ", names.len());
            return Ok(End::Differs);
        }
        println!("{} files, all the same", names.len());
        Ok(End::Done)
    }
}
