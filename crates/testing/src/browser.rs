//! A real browser without a window, told what to do over the DevTools protocol: messages of JSON through two pipes, each
//! with a zero byte behind it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The names that it goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A window, and how people look at it.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Width and height, in CSS pixels.
    pub size: (u32, u32),
    /// A phone: touch, and a viewport of its own.
    pub phone: bool,
    /// Dark colours are preferred.
    pub dark: bool,
}

/// A browser with one tab. Dropping it ends it.
pub struct Browser {
    _child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one with an empty profile, which reaches nothing but this machine. The error says that there is none here.
    pub async fn start() -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let there = |name: &&&str| std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
        let name = NAMES.iter().find(there).ok_or("chromium is not here")?;
        let profile = tempfile::tempdir().unwrap();
        // It reads from 3 and writes to 4.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", name]);
        shell.args([
            "--headless=new",
            "--remote-debugging-pipe",
            // The user is root in a container; the pages are the tests' own.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--no-proxy-server",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        ]);
        shell.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (session, complaints) = (None, Vec::new());
        let mut browser = Self { _child: child, to, from, session, calls: 0, complaints, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach).await;
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Audits"] {
            browser.call(&format!("{domain}.enable"), json!({})).await;
        }
        Ok(browser)
    }

    /// Makes a call of the protocol. Panics when it is refused, or takes too long.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let number = self.calls;
        let mut call = json!({"id": number, "method": method, "params": params});
        if let Some(session) = &self.session {
            call["sessionId"] = json!(session);
        }
        let mut line = call.to_string().into_bytes();
        line.push(0);
        self.to.write_all(&line).await.unwrap();
        let answered = async {
            loop {
                let mut line = Vec::new();
                let length = self.from.read_until(0, &mut line).await.unwrap();
                assert!(length > 0, "the browser has ended");
                line.pop();
                let said: Value = serde_json::from_slice(&line).unwrap();
                if said["id"] == number {
                    assert!(said.get("error").is_none(), "{method}: {said}");
                    return said["result"].clone();
                }
                self.complaints.extend(complaint(&said));
            }
        };
        tokio::time::timeout(PATIENCE, answered).await.unwrap_or_else(|_| panic!("{method} takes too long"))
    }

    /// What the browser has complained about since this was last asked: errors of scripts, words on the console,
    /// violations of a page's policy, resources that could not be had.
    pub async fn complaints(&mut self) -> Vec<String> {
        // What came before this answer has been read.
        self.eval("0").await;
        std::mem::take(&mut self.complaints)
    }

    /// Changes the window.
    pub async fn resize(&mut self, Window { size: (width, height), phone, dark }: Window) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone});
        self.call("Emulation.setDeviceMetricsOverride", metrics).await;
        let scheme = json!({"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }});
        self.call("Emulation.setEmulatedMedia", json!({"features": [scheme]})).await;
    }

    /// Opens a page and waits until it is there.
    pub async fn open(&mut self, url: &str) {
        let went = self.call("Page.navigate", json!({"url": url})).await;
        assert!(went.get("errorText").is_none(), "{url}: {went}");
        self.until("document.readyState === 'complete'").await;
    }

    /// What an expression of JavaScript comes to in the page.
    pub async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let came = self.call("Runtime.evaluate", params).await;
        assert!(came.get("exceptionDetails").is_none(), "{expression}: {came}");
        came["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub async fn until(&mut self, expression: &str) {
        for _ in 0..400 {
            if self.eval(expression).await == true {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let page = self.eval("document.body.innerText").await;
        panic!("{expression} never came true; the page says {page}; {:?}", self.complaints);
    }

    /// Presses a key that has a name, such as `Tab`, `Enter` or `Escape`.
    pub async fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            " " => (32, " "),
            other => panic!("no such key: {other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Types a text, letter by letter.
    pub async fn typed(&mut self, text: &str) {
        for letter in text.chars() {
            let letter = letter.to_string();
            self.call("Input.dispatchKeyEvent", json!({"type": "keyDown", "key": letter, "text": letter})).await;
            self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": letter})).await;
        }
    }

    /// Presses Tab until an expression about `document.activeElement`, called `here`, is true. Panics when it never is.
    pub async fn tab_to(&mut self, expression: &str) {
        for _ in 0..60 {
            self.press("Tab").await;
            if self.eval(&format!("((here) => {expression})(document.activeElement)")).await == true {
                return;
            }
        }
        panic!("the keyboard never comes to {expression}");
    }

    /// Takes a picture of what is seen, as PNG.
    pub async fn picture(&mut self, file: &Path) {
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"})).await;
        let png = base64::prelude::BASE64_STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(file, png).unwrap();
    }
}

/// What an event of the browser complains about.
fn complaint(event: &Value) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Runtime.consoleAPICalled" => Some(params["args"].to_string()),
        "Log.entryAdded" => Some(format!("{}: {}", params["entry"]["source"], params["entry"]["text"])),
        "Audits.issueAdded" if params["issue"]["code"] == "ContentSecurityPolicyIssue" => {
            Some(params["issue"]["details"].to_string())
        }
        _ => None,
    }
}
