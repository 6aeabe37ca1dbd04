//! The public SDKs, installed below the target folder in exactly the versions named in `interop/`, and what is written
//! with them there: clients, and agents with the three skills of the workshop.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A public SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// `a2a-sdk` from PyPI.
    Python,
    /// `@a2a-js/sdk` from npm.
    JavaScript,
    /// `a2a-server-lf` from crates.io, which has no client here.
    Rust,
}

fn interop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop")
}

/// Runs a step of an installation. The error is what it printed.
fn step(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|cause| format!("{command:?}: {cause}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}:\n{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// An SDK that is there, in a folder of its own.
#[derive(Debug)]
pub struct Installed {
    /// Which one.
    pub sdk: Sdk,
    folder: PathBuf,
}

impl Sdk {
    /// Installs it unless it is there in the versions that are asked for, below a folder in which tests keep files. One
    /// process at a time does so. The error says what is missing here.
    pub fn installed(self, tmp: &str) -> Result<Installed, String> {
        let (name, files) = match self {
            Self::Python => ("python", &["requirements.txt"][..]),
            Self::JavaScript => ("javascript", &["package.json", "package-lock.json"][..]),
            Self::Rust => ("rust", &[][..]),
        };
        let folder = Path::new(tmp).join("sdks").join(name);
        let installed = Installed { sdk: self, folder: folder.clone() };
        fs::create_dir_all(&folder).unwrap();
        let lock = fs::File::create(folder.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        if self == Self::Rust {
            // Cargo itself knows what has changed.
            let manifest = interop().join("agent-lf/Cargo.toml");
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
            step(build.arg("--target-dir").arg(folder))?;
            return Ok(installed);
        }
        let wanted: String = files.iter().map(|file| fs::read_to_string(interop().join(file)).unwrap()).collect();
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
            return Ok(installed);
        }
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir_all(&folder).unwrap();
        if self == Self::Python {
            step(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            let mut pip = Command::new(folder.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r"]);
            step(pip.arg(interop().join(files[0])))?;
        } else {
            step(Command::new("node").args(["-e", "process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)"]))
                .map_err(|_| "node 20 or newer is not here".to_owned())?;
            for file in files {
                fs::copy(interop().join(file), folder.join(file)).unwrap();
            }
            let ci = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
            step(Command::new("npm").args(ci).current_dir(&folder))?;
        }
        fs::write(stamp, wanted).unwrap();
        Ok(installed)
    }
}

impl Installed {
    /// What runs a script of `interop/`, named without its ending; the Rust SDK's is a program.
    pub fn command(&self, name: &str) -> Command {
        let mut command = match self.sdk {
            Sdk::Python => {
                let mut python = Command::new(self.folder.join("bin/python"));
                python.arg(interop().join(name).with_extension("py"));
                python
            }
            Sdk::JavaScript => {
                // Node looks for packages beside the script. Another process may be running it at this moment.
                let script = self.folder.join(name).with_extension("mjs");
                let fresh = tempfile::NamedTempFile::new_in(&self.folder).unwrap();
                fs::copy(interop().join(name).with_extension("mjs"), fresh.path()).unwrap();
                fresh.persist(&script).unwrap();
                let mut node = Command::new("node");
                node.arg(script);
                node
            }
            Sdk::Rust => Command::new(self.folder.join("debug").join(format!("{name}-lf"))),
        };
        for name in ["NO_PROXY", "no_proxy"] {
            command.env(name, "localhost,127.0.0.1");
        }
        command
    }

    /// Starts the agent that is written with the SDK, over a binding, and waits until it is ready.
    pub fn agent(&self, binding: &str) -> Foreign {
        let mut child = self.command("agent").arg(binding).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.strip_prefix("ready ").unwrap_or_else(|| panic!("{self:?} over {binding}: {line}"));
        Foreign { child, url: url.trim_end().to_owned() }
    }
}

/// An agent written with a public SDK, as a process. Dropping it kills it.
#[derive(Debug)]
pub struct Foreign {
    child: Child,
    /// Where it listens.
    pub url: String,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
