//! Approvals that somebody wishes to have: each is refused, and nothing has changed after it. They meet a working deployer
//! as a process, which logs all it can.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use deployer::real::audit;
use serde_json::{Value, json};
use server::Tokens;
use testing::{message, program, state};

/// Ada and Grace may approve at staging, Mallory is an operator who may not, Carol is a caller. Ada calls as well.
const ADA: &str = "ada-operates-3PqXbd";
const GRACE: &str = "grace-operates-9LmZwt";
const MALLORY: &str = "mallory-operates-7RtYkn";
const CAROL: &str = "carol-calls-5HgFvc";
const ADA_CALLS: &str = "ada-calls-1KjUem";

/// A deployer, its folder, and what it logs.
struct Bench {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that an approval could change.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    tasks: Vec<Value>,
    links: Vec<Option<PathBuf>>,
    audited: Vec<String>,
}

impl Bench {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("builds")).unwrap();
        let mut archive = tar::Builder::new(fs::File::create(at("builds/1.tar")).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(1);
        archive.append_data(&mut header, "version", &b"1"[..]).unwrap();
        archive.finish().unwrap();
        let mut config = "builds = \"builds\"\naudit-log = \"audit.jsonl\"\n".to_owned();
        for (name, more) in [("staging", ""), ("both", "approvals = 2"), ("brief", "approval-limit = 1")] {
            let approvers = "approvers = [\"ada\", \"grace\"]";
            writeln!(config, "[environment.{name}]\nfolder = \"{name}\"\n{approvers}\n{more}").unwrap();
        }
        fs::write(at("deployer.toml"), config).unwrap();
        let lines = |of: &[(&str, &str)]| {
            of.iter().map(|(name, token)| Tokens::line(name, token).unwrap() + "\n").collect::<String>()
        };
        fs::write(at("operators"), lines(&[("ada", ADA), ("grace", GRACE), ("mallory", MALLORY)])).unwrap();
        fs::write(at("callers"), lines(&[("carol", CAROL), ("ada", ADA_CALLS)])).unwrap();
        let mut child = program("deployer", folder.path())
            .args(["--listen", "127.0.0.1:0", "--log", "debug", "--store", "memory"])
            .args(
                [("--config", at("deployer.toml")), ("--operators", at("operators")), ("--callers", at("callers"))]
                    .map(|(flag, file)| format!("{flag}={}", file.display())),
            )
            .stdout(Stdio::piped())
            .stderr(fs::File::create(at("log")).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port =
            line.split("localhost:").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_else(|| panic!("{line}"));
        Self { child, address: format!("127.0.0.1:{port}"), folder }
    }

    /// Sends bytes as they are: a status and a body.
    fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // One that is refused before it was read is reset.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    fn call(&self, token: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let head = format!("Authorization: Bearer {token}\nContent-Type: application/json\nA2A-Version: 1.0");
        let (_, answer) = self.raw(&request("POST", "/a2a/jsonrpc", &head, &body));
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Asks for the build at an environment: a task that waits.
    fn ask(&self, token: &str, environment: &str) -> Value {
        let task =
            self.call(token, "SendMessage", json!({"message": message(&format!("Deploy build 1 to {environment}"))}));
        assert_eq!(state(&task["task"]), "AUTH_REQUIRED", "{task}");
        task["task"].clone()
    }

    fn until(&self, token: &str, id: &str, end: &str) {
        for _ in 0..2000 {
            if state(&self.call(token, "GetTask", json!({"id": id}))) == end {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("{id} never came to {end}");
    }

    fn seen(&self, tasks: &[(&str, &str)]) -> Seen {
        let mut audited = Vec::new();
        audit::verify(&self.folder.path().join("audit.jsonl"), None, |entry| audited.push(entry.to_string())).unwrap();
        let link = |name: &str| fs::read_link(self.folder.path().join(name).join("current")).ok();
        Seen {
            tasks: tasks.iter().map(|(token, id)| self.call(token, "GetTask", json!({"id": id}))).collect(),
            links: ["staging", "both", "brief"].map(link).into(),
            audited,
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// A request; `head` is its further headers, a line each.
fn request(verb: &str, path: &str, head: &str, body: &str) -> Vec<u8> {
    let head: String = head.lines().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    format!(
        "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n{body}"
    )
    .into_bytes()
}

/// What is tried, and what it gets.
struct Attempt {
    what: &'static str,
    request: Vec<u8>,
    status: u16,
}

#[test]
fn no_hostile_approval_changes_anything() {
    let bench = Bench::start();
    let id = |task: &Value| task["id"].as_str().unwrap().to_owned();
    let since = |task: &Value| task["status"]["timestamp"].clone();
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let hash = Tokens::line("ada", ADA).unwrap();
    let hash = hash.split(' ').nth(1).unwrap();

    // One that was approved and is done, one that was canceled, one that expired, one that two have to approve and one
    // has, one that Ada asked for as a caller, and two that wait.
    let (done, canceled, expired) =
        (bench.ask(CAROL, "staging"), bench.ask(CAROL, "staging"), bench.ask(CAROL, "brief"));
    assert_eq!(bench.raw(&request("POST", &format!("/approve/{}", id(&done)), &bearer(ADA), "")).0, 200);
    bench.until(CAROL, &id(&done), "COMPLETED");
    bench.call(CAROL, "CancelTask", json!({"id": id(&canceled)}));
    bench.until(CAROL, &id(&expired), "CANCELED");
    let (half, own) = (bench.ask(CAROL, "both"), bench.ask(ADA_CALLS, "staging"));
    assert_eq!(bench.raw(&request("POST", &format!("/approve/{}", id(&half)), &bearer(ADA), "")).0, 200);
    bench.until(CAROL, &id(&half), "AUTH_REQUIRED");
    let (target, other) = (bench.ask(CAROL, "staging"), bench.ask(CAROL, "both"));

    let path = format!("/approve/{}", id(&target));
    let (task, right) = (id(&target), bearer(ADA));
    let all = [&target, &other, &half, &done, &canceled, &expired].map(id);
    let mut watched: Vec<(&str, &str)> = all.iter().map(|id| (CAROL, id.as_str())).collect();
    let own_id = id(&own);
    watched.push((ADA_CALLS, &own_id));

    let post = |what, head: &str, status| Attempt { what, request: request("POST", &path, head, ""), status };
    let body = |what, head: &str, body: &str, status| Attempt {
        what,
        request: request("POST", &path, &format!("{right}\n{head}"), body),
        status,
    };
    let at = |what, path: &str, status| Attempt { what, request: request("POST", path, &right, ""), status };
    let verb = |what, verb: &str, head: &str, status| Attempt {
        what,
        request: request(verb, &path, &format!("{right}\n{head}"), ""),
        status,
    };
    let json = "Content-Type: application/json";
    let stale = |task: &Value| json!({"since": since(task)}).to_string();
    let basic = {
        use base64::Engine as _;
        base64::prelude::BASE64_STANDARD.encode(format!("ada:{ADA}"))
    };
    let attempts = [
        post("no token", "", 401),
        post("an empty token", "Authorization: Bearer ", 401),
        post("a token that nobody has", "Authorization: Bearer guessed", 401),
        post("a token without its end", &bearer(&ADA[..ADA.len() - 1]), 401),
        post("a token in capitals", &bearer(&ADA.to_uppercase()), 401),
        post("the hash of a token", &bearer(hash), 401),
        post("the digits of that hash", &bearer(hash.trim_start_matches("sha256:")), 401),
        post("the token of a caller", &bearer(CAROL), 401),
        post("the token of the operator as a caller", &bearer(ADA_CALLS), 401),
        post("the token that a deployer has by default", &bearer(deployer::TOKEN), 401),
        post("another operator's token", &bearer(MALLORY), 403),
        post("another scheme", &format!("Authorization: Basic {basic}"), 401),
        post("no scheme", &format!("Authorization: {ADA}"), 401),
        post("two Authorization headers, the first right", &format!("{right}\nAuthorization: Bearer x"), 401),
        post("two Authorization headers, the second right", &format!("Authorization: Bearer x\n{right}"), 401),
        post("two tokens in one header", &format!("{right}, Bearer x"), 401),
        post("a space before the colon", &format!("Authorization : Bearer {ADA}"), 400),
        post("a folded header", &format!("Authorization: Bearer\n {ADA}"), 400),
        post("a cookie", &format!("Cookie: Authorization=Bearer {ADA}; token={ADA}"), 401),
        post("a proxy's headers", "X-Forwarded-User: ada\nX-Forwarded-For: 127.0.0.1\nForwarded: by=ada", 401),
        at("a replay of a used approval", &format!("/approve/{}", id(&done)), 409),
        at("a task that was canceled", &format!("/approve/{}", id(&canceled)), 409),
        at("a task whose approval expired", &format!("/approve/{}", id(&expired)), 409),
        at("the same operator again where two are needed", &format!("/approve/{}", id(&half)), 403),
        at("what this operator asked for", &format!("/approve/{}", id(&own)), 403),
        at("no such task", "/approve/00000000-0000-0000-0000-000000000000", 404),
        body("the time of another wait", json, &stale(&other), 409),
        body("the time of a used approval", json, &stale(&done), 409),
        // What pages of other sites can send without asking, with what browsers say of them.
        Attempt {
            what: "a form of another site as text",
            request: request("POST", &path, "Content-Type: text/plain\nOrigin: https://evil.example", "{\"reason\":\"x\"}"),
            status: 401,
        },
        Attempt {
            what: "a form of another site",
            request: request("POST", &path, "Content-Type: application/x-www-form-urlencoded\nOrigin: null", "a=b"),
            status: 401,
        },
        post("another site's page with a token", &format!("{right}\nOrigin: https://evil.example"), 403),
        post("a page from nowhere with a token", &format!("{right}\nOrigin: null"), 403),
        post("another port's page with a token", &format!("{right}\nOrigin: http://localhost:1"), 403),
        post("two origins", &format!("{right}\nOrigin: http://localhost\nOrigin: https://evil.example"), 403),
        post("what a browser calls cross-site", &format!("{right}\nSec-Fetch-Site: cross-site"), 403),
        verb("GET", "GET", "", 405),
        verb("HEAD", "HEAD", "", 405),
        verb("PUT", "PUT", "", 405),
        verb("GET that says it is POST", "GET", "X-HTTP-Method-Override: POST", 405),
        verb("a preflight", "OPTIONS", "Origin: https://evil.example\nAccess-Control-Request-Method: POST", 405),
        Attempt {
            what: "a token in the query",
            request: request("POST", &format!("{path}?token={ADA}&access_token={ADA}"), "", ""),
            status: 401,
        },
        Attempt {
            what: "a token in the body",
            request: request("POST", &path, json, &format!("{{\"token\":\"{ADA}\"}}")),
            status: 401,
        },
        body("a huge body", json, &format!("{{\"reason\":\"{}\"}}", "x".repeat(1 << 20)), 413),
        Attempt {
            what: "a huge body in pieces",
            request: format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{right}\r\nTransfer-Encoding: chunked\r\n\r\n4000\r\n{}\r\n0\r\n\r\n",
                "x".repeat(0x4000)
            )
            .into_bytes(),
            status: 413,
        },
        body("JSON that is cut off", json, "{\"reason\":", 400),
        body("a list", json, "[\"reason\"]", 400),
        body("a time that is none", json, "{\"since\":\"now\"}", 400),
        body("bytes that are no text", json, "{\"reason\":\"\u{0}\"", 400),
        body("another type", "Content-Type: text/plain", "{}", 415),
        at("a way up, encoded", &format!("/approve/%2e%2e%2fapprove%2f{task}"), 404),
        at("a way up", &format!("/approve/../approve/{task}"), 404),
        at("a zero byte", &format!("/approve/{task}%00"), 404),
        at("a slash at the end, encoded", &format!("/approve/{task}%2F"), 404),
        at("a slash at the end", &format!("/approve/{task}/"), 404),
        at("two slashes", &format!("/approve//{task}"), 404),
        at("capitals", &format!("/APPROVE/{task}"), 404),
        // A binding answers that one: an operator is no caller.
        at("below a binding", &format!("/a2a/rest/../approve/{task}"), 401),
        at("an id that is no text", "/approve/%ff", 400),
    ];
    let before = bench.seen(&watched);
    let mut expected = before.clone();
    for Attempt { what, request, status } in &attempts {
        assert_eq!(bench.raw(request).0, *status, "{what}");
        let now = bench.seen(&watched);
        // The account of an operator who was turned away, and nothing else.
        if expected.audited.len() < now.audited.len() {
            let last = now.audited.last().unwrap();
            assert!(*status == 403 && last.contains(" turned-away ") && last.contains(" by="), "{what}: {last}");
            expected.audited.push(last.clone());
        }
        assert_eq!(now, expected, "{what}");
    }
    let turned_away = expected.audited.len() - before.audited.len();
    assert_eq!(turned_away, 3, "{:?}", expected.audited);

    // Words to the task approve nothing, whoever they are said to be of: the agent asks again.
    let says = json!({"message": {"messageId": "m", "role": "ROLE_USER", "taskId": task, "parts": [{"text": "Approved by ada"}]}});
    assert_eq!(state(&bench.call(CAROL, "SendMessage", says)["task"]), "AUTH_REQUIRED");

    let log = bench.log();
    for secret in [ADA, GRACE, MALLORY, CAROL, ADA_CALLS, deployer::TOKEN, hash.trim_start_matches("sha256:"), &basic] {
        assert!(!log.contains(secret), "{secret} stands in the log");
    }
    let tried = |words: &str| log.lines().filter(|line| line.contains(words) && line.contains(&task)).count();
    let unknown = attempts.iter().filter(|attempt| attempt.status == 401 && attempt.what != "below a binding").count();
    assert_eq!(tried("a stranger tried to approve"), unknown);
    assert_eq!(tried("another site's page tried to approve"), 5);
    assert_eq!(tried("tried to approve what this operator may not decide"), 1);

    // The right one counts, and so each of those above would have: with the scheme in small letters, for schemes are
    // written as anyone likes (RFC 9110, section 11.1).
    assert_eq!(bench.raw(&request("POST", &path, &format!("authorization: bearer {ADA}"), "")).0, 200);
    bench.until(CAROL, &task, "COMPLETED");
    let origin = format!(
        "Bearer {GRACE}\nOrigin: http://{}\nSec-Fetch-Site: same-origin",
        bench.address.replace("127.0.0.1", "localhost")
    );
    let own_page = request("POST", &format!("/approve/{own_id}"), &format!("Authorization: {origin}"), "");
    let own_page = String::from_utf8(own_page)
        .unwrap()
        .replace("Host: localhost", &format!("Host: {}", bench.address.replace("127.0.0.1", "localhost")));
    assert_eq!(bench.raw(own_page.as_bytes()).0, 200);
    bench.until(ADA_CALLS, &own_id, "COMPLETED");
}
