//! Where scenario and story files come from: the binary itself, or a folder.

use std::borrow::Cow;
use std::path::PathBuf;

/// The files below `scenarios/` as they were when the binary was built, by their paths.
pub const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A source of files.
#[derive(Debug, Clone, Default)]
pub enum Files {
    /// The files in the binary.
    #[default]
    Embedded,
    /// The files of a folder.
    Folder(PathBuf),
}

impl Files {
    /// The folder that a flag names, or the files in the binary.
    pub fn of(folder: Option<PathBuf>) -> Self {
        folder.map_or(Self::Embedded, Self::Folder)
    }

    /// The path of a file as a person should read it.
    pub fn shown(&self, path: &str) -> String {
        match self {
            Self::Embedded => format!("scenarios/{path}"),
            Self::Folder(folder) => folder.join(path).display().to_string(),
        }
    }

    /// Reads a file. `None` when it is not there or cannot be read.
    pub fn read(&self, path: &str) -> Option<Cow<'static, [u8]>> {
        match self {
            Self::Embedded => EMBEDDED.iter().find(|(name, _)| *name == path).map(|(_, bytes)| (*bytes).into()),
            Self::Folder(folder) => std::fs::read(folder.join(path)).ok().map(Cow::Owned),
        }
    }

    /// The names of the files that stand in a folder, in their order. Folders inside it are left out.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Self::Embedded => {
                let inside = EMBEDDED.iter().filter_map(|(name, _)| name.strip_prefix(folder)?.strip_prefix('/'));
                inside.filter(|name| !name.contains('/')).map(str::to_owned).collect()
            }
            Self::Folder(root) => {
                let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
                let files = entries.filter(|entry| entry.path().is_file());
                files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
        };
        names.sort();
        names
    }

    /// The names of the sets.
    pub fn sets(&self) -> Vec<String> {
        let mut sets: Vec<String> = match self {
            Self::Embedded => {
                EMBEDDED.iter().filter_map(|(name, _)| name.strip_suffix("/set.toml")).map(str::to_owned).collect()
            }
            Self::Folder(folder) => {
                let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
                let sets = entries.filter(|entry| entry.path().join("set.toml").is_file());
                sets.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
        };
        sets.sort();
        sets
    }
}
