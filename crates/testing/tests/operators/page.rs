//! The operators' page in a real browser.

use std::path::Path;
use std::time::Duration;

use deployer::Deployer;
use script::Script;
use serde_json::{Value, json};
use server::{Credential, Setup};
use testing::{Binding, Browser, Scripted, Served, Window, id, scripted, send, serve, skip, state};

use super::{ANA, BOB, approve, asked, deployer, post, with_operators, words};

const PHONE: Window = Window { size: (360, 640), phone: true, dark: false };
const HARM: &str = "<img src=x onerror=\"document.title='harmed'\">";

/// A browser, unless there is none here.
async fn browser() -> Option<Browser> {
    match Browser::start().await {
        Ok(browser) => Some(browser),
        Err(why) => {
            skip(&why);
            None
        }
    }
}

/// Opens the page and types a token, with the keyboard alone.
async fn entered(browser: &mut Browser, served: &Served, token: &str) {
    browser.open(&format!("{}/operator", served.url)).await;
    browser.until("!document.querySelector('#enter').hidden").await;
    browser.tab_to("here.id === 'token'").await;
    browser.typed(token).await;
    browser.press("Enter").await;
}

async fn outcome(browser: &mut Browser, begins: &str) -> String {
    browser.until(&format!("document.querySelector('#outcome').textContent.startsWith({})", json!(begins))).await;
    browser.eval("document.querySelector('#outcome').textContent").await.as_str().unwrap().to_owned()
}

async fn count(browser: &mut Browser, words: &str) {
    browser.until(&format!("document.querySelector('#count').textContent === {}", json!(words))).await;
}

/// What is wrong with the page for a thumb, a screen reader and a narrow window.
const AWKWARD: &str = "[
    ...[...document.querySelectorAll('button, input')].filter((one) => one.checkVisibility()).flatMap((one) => {
        const { width, height } = one.getBoundingClientRect();
        const small = width < 44 || height < 44 ? [`${one.outerHTML} is ${width} by ${height}`] : [];
        const name = one.ariaLabel || one.textContent.trim() || one.labels?.[0]?.textContent.trim();
        return name ? small : [...small, `${one.outerHTML} has no name`];
    }),
    ...(document.documentElement.scrollWidth > innerWidth ? [`${document.documentElement.scrollWidth} wide`] : []),
]";

fn agent() -> Scripted {
    let mut agent = deployer();
    let sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let about = [("action", "deploy"), ("build", "2026.10.06-1"), ("environment", "staging"), ("sha256", sha256)];
    agent.about = about.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    agent
}

#[tokio::test]
async fn on_a_phone_and_with_the_keyboard_alone_one_task_is_approved_and_one_refused() {
    let Some(mut browser) = browser().await else { return };
    let served = serve(agent(), with_operators).await;
    let tasks = [asked(&served, "go").await, asked(&served, "go").await];
    browser.resize(PHONE).await;
    entered(&mut browser, &served, ANA).await;
    count(&mut browser, "2 tasks wait").await;
    assert_eq!(browser.eval("document.title").await, "(2) Approvals · scripted");
    assert_eq!(browser.eval(AWKWARD).await, json!([]));
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, size, phone, dark) in [
        ("phone-light", (360, 640), true, false),
        ("phone-dark", (360, 640), true, true),
        ("desk-light", (1200, 800), false, false),
        ("desk-dark", (1200, 800), false, true),
    ] {
        browser.resize(Window { size, phone, dark }).await;
        browser.picture(&pictures.join(format!("operator-page-{name}.png"))).await;
        assert_eq!(browser.eval(AWKWARD).await, json!([]), "{name}");
    }
    browser.resize(PHONE).await;

    browser.tab_to("here.ariaLabel === 'Approve: Deploy build 2026.10.06-1 to staging'").await;
    assert_eq!(browser.eval("getComputedStyle(document.activeElement).outlineStyle").await, "solid");
    browser.press("Enter").await;
    assert_eq!(outcome(&mut browser, "Approved").await, "Approved: Deploy build 2026.10.06-1 to staging");
    let done = served.until(&tasks[0], "TASK_STATE_COMPLETED").await;
    assert_eq!(words(&done), "live, asked by somebody, approved by ana");
    count(&mut browser, "1 task waits").await;
    assert_eq!(browser.eval("document.activeElement.id").await, "outcome", "the keyboard is not lost");

    browser.tab_to("here.classList.contains('refuse')").await;
    browser.press(" ").await;
    assert_eq!(browser.eval("document.activeElement.name").await, "reason");
    assert_eq!(browser.eval(AWKWARD).await, json!([]));
    browser.picture(&pictures.join("operator-page-reason.png")).await;
    browser.press("Enter").await;
    assert_eq!(state(&served.task(&tasks[1]).await), "AUTH_REQUIRED", "a refusal needs a reason");
    browser.press("Escape").await;
    assert_eq!(browser.eval("document.activeElement.classList.contains('refuse')").await, true);
    browser.press("Enter").await;
    browser.typed("not on a Friday").await;
    browser.press("Enter").await;
    outcome(&mut browser, "Refused: Deploy build").await;
    let rejected = served.until(&tasks[1], "TASK_STATE_REJECTED").await;
    assert_eq!(words(&rejected), "Some(\"ana\") refused: Some(\"not on a Friday\")");
    count(&mut browser, "Nothing waits").await;

    browser.tab_to("here.id === 'leave'").await;
    browser.press("Enter").await;
    assert_eq!(browser.eval("document.activeElement.id").await, "token");
    let kept = "[document.cookie, localStorage.length, sessionStorage.length, document.querySelector('#token').value]";
    assert_eq!(browser.eval(kept).await, json!(["", 0, 0, ""]));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn what_an_agent_or_a_caller_says_is_text_and_nothing_else() {
    let Some(mut browser) = browser().await else { return };
    let mut agent = scripted(|_, say| async move { Ok(say.need_approval(format!("{HARM} allow it")).await?) });
    agent.about =
        [("build", HARM), ("environment", "<script>document.title='harmed'</script>\u{202e}gnigats"), (HARM, "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    let served = serve(agent, |setup: &mut Setup| {
        with_operators(setup);
        setup.credentials = vec![Credential { token: "t".into(), principal: HARM.into() }];
    });
    let served = served.await;
    let caller = [("authorization", "Bearer t")];
    let waits = served.call_with(Binding::Rpc, "SendMessage", send("go"), &caller).await;
    assert_eq!(state(&waits.result()["task"]), "AUTH_REQUIRED");
    entered(&mut browser, &served, ANA).await;
    count(&mut browser, "1 task waits").await;
    let text = browser.eval("document.querySelector('#list').textContent").await;
    let text = text.as_str().unwrap();
    assert_eq!(text.matches(HARM).count(), 5, "{text}");
    assert!(text.contains("<script>document.title='harmed'</script>\\u{202e}gnigats"), "{text}");
    let made = "[document.title, document.querySelectorAll('img, #list script').length]";
    assert_eq!(browser.eval(made).await, json!(["(1) Approvals · scripted", 0]));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    // Were there HTML after all, the policy would stop it.
    let assigned =
        "try { document.querySelector('#agent').innerHTML = '<i>x</i>'; 'taken' } catch (error) { error.name }";
    assert_eq!(browser.eval(assigned).await, "TypeError");
    assert!(!browser.complaints().await.is_empty());
}

#[tokio::test]
async fn a_wrong_token_and_an_operator_who_may_not_get_words_and_change_nothing() {
    let Some(mut browser) = browser().await else { return };
    let served = serve(agent(), with_operators).await;
    let task = asked(&served, "go").await;
    for wrong in ["token-of-nobody", "žeton"] {
        entered(&mut browser, &served, wrong).await;
        assert_eq!(outcome(&mut browser, "No").await, "No operator has this token.");
        let shows = "[document.querySelector('#list').children.length, document.activeElement.id]";
        assert_eq!(browser.eval(shows).await, json!([0, "token"]));
    }
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(|one| one.contains("401")), "{complaints:?}");
    entered(&mut browser, &served, BOB).await;
    count(&mut browser, "1 task waits").await;
    let seen = "[...document.querySelectorAll('#list button')].filter((one) => one.checkVisibility()).length";
    assert_eq!(browser.eval(seen).await, 0);
    assert_eq!(browser.eval("document.querySelector('.may-not').checkVisibility()").await, true);
    assert_eq!(state(&served.task(&task).await), "AUTH_REQUIRED");
    // One that was fine and is so no more, as after a change of the file.
    browser.eval("fetch = async () => new Response('{}', { status: 401 }); 0").await;
    assert_eq!(outcome(&mut browser, "No").await, "No operator has this token.");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn what_others_decide_goes_and_what_is_half_typed_stays() {
    let Some(mut browser) = browser().await else { return };
    let served = serve(agent(), with_operators).await;
    let first = asked(&served, "go").await;
    entered(&mut browser, &served, ANA).await;
    count(&mut browser, "1 task waits").await;
    browser.tab_to("here.classList.contains('refuse')").await;
    browser.press("Enter").await;
    browser.typed("not be").await;
    asked(&served, "go").await;
    count(&mut browser, "2 tasks wait").await;
    browser.typed("fore noon").await;
    assert_eq!(browser.eval("document.activeElement.value").await, "not before noon");
    assert_eq!(approve(&served, &first, ANA).await, 200);
    outcome(&mut browser, "Deploy build 2026.10.06-1 to staging does not wait any more").await;
    count(&mut browser, "1 task waits").await;
    // An agent that is gone for a while is asked again.
    browser.eval("kept = fetch; fetch = async () => { throw new TypeError() }; 0").await;
    browser.until("document.querySelector('#trouble').textContent.startsWith('The agent does not answer')").await;
    browser.eval("fetch = kept; 0").await;
    browser.until("document.querySelector('#trouble').textContent === ''").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn where_operators_have_no_names_the_page_approves_and_cannot_refuse() {
    let Some(mut browser) = browser().await else { return };
    let reciting = Deployer::reciting(Script::open(deployer::NAME, "payments-api").unwrap());
    let served = serve(reciting, |_| ()).await;
    let task = served.call(Binding::Rpc, "SendMessage", send("Deploy build 2026.10.06-1 to staging")).await;
    let task = id(&task.result()["task"]);
    browser.open(&format!("{}/operator", served.url)).await;
    count(&mut browser, "1 task waits").await;
    let seen =
        "[...document.querySelectorAll('button')].filter((one) => one.checkVisibility()).map((one) => one.textContent)";
    assert_eq!(browser.eval(seen).await, json!(["Approve"]));
    browser.tab_to("here.classList.contains('approve')").await;
    browser.press("Enter").await;
    assert_eq!(outcome(&mut browser, "Approved").await, format!("Approved: Task {task}"));
    served.until(&task, "TASK_STATE_COMPLETED").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

/// Tries to decide from a page of another origin: with what a page may send without asking, with a form, with a token
/// that it has got hold of, and from within a frame.
async fn forged(browser: &mut Browser, from: &Served, served: &Served, task: &str) {
    browser.open(&format!("{}/.well-known/agent-card.json", from.url)).await;
    for act in ["approve", "refuse"] {
        let url = format!("{}/{act}/{task}", served.url);
        let bearer = format!("Bearer {ANA}");
        for options in [
            json!({"method": "POST", "mode": "no-cors", "body": "reason=forged"}),
            json!({"method": "POST", "mode": "no-cors", "credentials": "include", "body": "{\"reason\": \"forged\"}"}),
            json!({"method": "POST", "headers": {"authorization": bearer}, "body": "{\"reason\": \"forged\"}"}),
            json!({"method": "POST", "headers": {"content-type": "application/json"}, "body": "{\"reason\": \"forged\"}"}),
        ] {
            browser.eval(&format!("fetch({}, {options}).then(() => 0, () => 0)", json!(url))).await;
        }
        let form = "const form = Object.assign(document.createElement('form'), { method: 'POST', action: URL });
            form.append(Object.assign(document.createElement('input'), { name: 'reason', value: 'forged' }));
            document.body.append(form); form.submit();";
        browser.eval(&format!("{{ {} }}", form.replace("URL", &json!(url).to_string()))).await;
        browser.until(&format!("location.href === {} && document.readyState === 'complete'", json!(url))).await;
        browser.open(&format!("{}/.well-known/agent-card.json", from.url)).await;
    }
    let frame = format!(
        "new Promise((done) => {{
            const frame = Object.assign(document.createElement('iframe'), {{ src: {}, onload: () => done(0) }});
            document.body.append(frame);
        }})",
        json!(format!("{}/operator", served.url))
    );
    browser.complaints().await;
    browser.eval(&frame).await;
    let complaints = browser.complaints().await;
    assert!(complaints.iter().any(|one| one.contains("frame-ancestors")), "{complaints:?}");
}

#[tokio::test]
async fn a_page_of_another_site_decides_nothing() {
    let Some(mut browser) = browser().await else { return };
    let other = serve(deployer(), |_| ()).await;
    let served = serve(deployer(), with_operators).await;
    let task = asked(&served, "go").await;
    forged(&mut browser, &other, &served, &task).await;
    assert_eq!(state(&served.task(&task).await), "AUTH_REQUIRED");
    let reciting = Deployer::reciting(Script::open(deployer::NAME, "payments-api").unwrap());
    let open = serve(reciting, |_| ()).await;
    let task = open.call(Binding::Rpc, "SendMessage", send("Deploy build 2026.10.06-1 to staging")).await;
    let task = id(&task.result()["task"]);
    forged(&mut browser, &other, &open, &task).await;
    assert_eq!(state(&open.task(&task).await), "AUTH_REQUIRED");
}

#[tokio::test]
async fn the_page_is_served_where_approvals_are_and_with_a_policy() {
    let served = serve(deployer(), with_operators).await;
    for path in ["/operator", "/operator/page.js", "/operator/page.css", "/operator/icon.svg"] {
        let answer = served.http("GET", path, &[("origin", "https://other.example")], "").await;
        assert_eq!(answer.status, 200, "{path}");
        let header = |name: &str| answer.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let policy = header("content-security-policy").unwrap();
        for word in ["default-src 'none'", "form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.split("; ").any(|one| one == word), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("data:"), "{policy}");
        assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"));
        assert_eq!(header("referrer-policy").as_deref(), Some("no-referrer"));
        assert_eq!(header("cache-control").as_deref(), Some("no-store"));
        assert_eq!(header("access-control-allow-origin"), None);
    }
    let without = serve(deployer(), |_| ()).await;
    assert_eq!(without.http("GET", "/operator", &[], "").await.status, 404);
    assert_eq!(post(&without, "/operator", ANA, &Value::Null).await.status, 404);
    tokio::time::timeout(Duration::from_secs(5), without.stop()).await.unwrap();
}
