//! An environment of payments-api: a folder that builds are rolled out to, and a server of what is live in it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use deployer::Deployer;
use deployer::real::{Config, Rollouts, audit_log};
use server::Agent;

/// Serves the build that is live in a folder.
const SERVE: &str = include_str!("../../../../scenarios/payments-api/serve.py");

/// A deployer that rolls real builds out, and what serves them. Dropped, the server ends; the folder stays.
pub struct Staging {
    /// The deployer.
    pub agent: Arc<dyn Agent>,
    /// Where what is live is served.
    pub url: String,
    serving: Child,
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = self.serving.kill();
        let _ = self.serving.wait();
    }
}

/// Packs a commit of payments-api as a build of this name, serves the environment `staging` in the folder `out`, and
/// configures a deployer for it, as `out/deployer.toml` then says. A commit that is not there gives no build. `work` is
/// a folder for what is only needed until then. The error says what is missing.
pub fn staging(work: &Path, out: &Path, commit: &str, build: &str) -> Result<Staging, String> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |cause: std::io::Error| format!("{path}: {cause}")
    };
    let (builds, folder, config) = (out.join("builds"), out.join("staging"), out.join("deployer.toml"));
    for folder in [&builds, &folder] {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    let archive = builds.join(format!("{build}.tar.gz"));
    let _ = fs::remove_file(&archive);
    let packed = super::of_repository(work, &["archive", "--format=tar.gz", "--end-of-options", commit])?;
    if let Some(packed) = packed {
        fs::write(&archive, packed).map_err(at(&archive))?;
    }

    let script = work.join("serve.py");
    fs::write(&script, SERVE).map_err(at(&script))?;
    let mut python = Command::new("python3");
    python.arg(&script).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut serving = python.spawn().map_err(|cause| format!("python3: {cause}"))?;
    let mut port = String::new();
    if let Some(output) = serving.stdout.take() {
        BufReader::new(output).read_line(&mut port).map_err(|cause| format!("python3: {cause}"))?;
    }
    let port: u16 = port.trim().parse().map_err(|_| "the server of payments-api did not start".to_owned())?;
    let url = format!("http://127.0.0.1:{port}");

    fs::write(&config, configuration(&url)).map_err(at(&config))?;
    let opened = Config::open(&config).and_then(|config| {
        let log = config.audit_log.unwrap_or_else(audit_log);
        Rollouts::new(&builds, config.environments, &log)
    });
    let agent = Arc::new(Deployer::working(opened.map_err(|mistake| mistake.to_string())?));
    Ok(Staging { agent, url, serving })
}

/// The deployer's configuration. Three checks: of the build, of the service, and of what the service says.
fn configuration(url: &str) -> String {
    format!(
        r#"builds = "builds"
audit-log = "audit.jsonl"

[environment.staging]
folder = "staging"
url = "{url}"

[[environment.staging.check]]
name = "imports"
command = ["python3", "-B", "-c", "import payments.charges, payments.refunds"]

[[environment.staging.check]]
name = "health"
http = "{url}/health"
text = "\"status\": \"ok\""

[[environment.staging.check]]
name = "refund"
http = "{url}/refund?charge=1000&amount=4.50"
text = "\"net\": 400"
"#
    )
}
