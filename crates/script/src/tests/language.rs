//! The language beyond what the embedded story uses, and every way in which a file is refused.

use crate::{Heard, Script, Scripted, Step, Story, stories};
use proptest::prelude::*;
use protocol::{Message, MessageId, Part, Role};

fn read(rules: &str) -> Result<Script, String> {
    let story = Story::parse("a.toml", rules).map_err(|mistake| mistake.to_string())?;
    Ok(story.agent("a").unwrap())
}

fn refusal(rules: &str) -> String {
    read(rules).unwrap_err()
}

/// A rule that matches everything and says this.
fn saying(steps: &str) -> String {
    format!("[[a.rule]]\notherwise = true\nsay = [\n{steps}\n]\n")
}

/// A rule that looks at this, before one that matches everything.
fn looking(at: &str) -> String {
    format!("[[a.rule]]\n{at}\nsay = [\"done\"]\n[[a.rule]]\notherwise = true\nsay = [\"failed\"]\n")
}

fn message(parts: Vec<Part>) -> Message {
    Message::new(MessageId::new("m").unwrap(), Role::User, parts)
}

/// Whether the rule that looks at this matches a message of these parts.
fn sees(at: &str, parts: Vec<Part>) -> bool {
    let (script, message) = (read(&looking(at)).unwrap(), message(parts));
    script.choose(&Heard::first(&message)).unwrap().line() == 1
}

#[test]
fn the_example_of_the_documentation_is_a_story() {
    let documentation = include_str!("../../language.md");
    let example = documentation.split("```").nth(1).unwrap().strip_prefix("toml\n").unwrap();
    let story = Story::parse("example.toml", example).unwrap();
    let agent = Scripted::of(&story, "example.toml", None, None).unwrap();
    assert_eq!((agent.script.rules().len(), agent.about.card.name.as_str()), (2, "greeter"));
}

// ---- what a rule looks at

#[test]
fn every_entry_of_a_list_must_hold() {
    let text = |text: &str| vec![Part::text(text)];
    assert!(sees("contains = [\"one\", \"two\"]", text("two and one")));
    assert!(!sees("contains = [\"one\", \"two\"]", text("one")));
    assert!(sees("lacks = [\"one\", \"two\"]", text("three")));
    assert!(!sees("lacks = [\"one\", \"two\"]", text("two")));
}

#[test]
fn the_text_is_the_text_parts_joined_by_one_space() {
    assert!(sees("contains = \"one two\"", vec![Part::text("one"), Part::text("two")]));
    assert!(!sees("contains = \"One\"", vec![Part::text("one")]));
}

#[test]
fn ends_with_looks_at_each_text_part() {
    assert!(sees("ends_with = \"?\"", vec![Part::text("why? \n"), Part::text("so")]));
    assert!(!sees("ends_with = \"?\"", vec![Part::text("why? so")]));
}

#[test]
fn a_part_without_a_media_type_has_the_one_of_its_kind() {
    assert!(sees("has_media_type = \"text/plain\"", vec![Part::text("x")]));
    assert!(sees("has_media_type = \"text/x-diff\"", vec![Part::raw(&b"x"[..], "f", "Text/X-Diff; charset=utf-8")]));
    assert!(!sees("lacks_media_type = [\"text/x-diff\", \"text/plain\"]", vec![Part::text("x")]));
}

#[test]
fn the_content_of_a_part_is_looked_at_decoded() {
    let parts = || vec![Part::raw(&b"\xffneedle\x00"[..], "f", "application/octet-stream")];
    assert!(sees("part = { contains = \"needle\" }", parts()));
    assert!(sees("part = { media_type = \"application/octet-stream\" }", parts()));
    assert!(sees("first_message_part = { contains = \"needle\" }", parts()));
    assert!(!sees("part = { media_type = \"text/plain\", contains = \"needle\" }", parts()));
    assert!(!sees("part = { contains = \"needles\" }", parts()));
}

#[test]
fn a_turn_that_no_rule_matches_has_no_rule() {
    let script = read("[[a.rule]]\ncontains = \"x\"\nsay = [\"done\"]\n").unwrap();
    assert!(script.choose(&Heard::first(&message(vec![Part::text("y")]))).is_none());
    assert!(!script.answers_directly(&message(vec![Part::text("y")])));
}

#[test]
fn the_longest_prefix_of_the_message_id_comes_first_wherever_it_stands() {
    let rules = r#"
        [[a.rule]]
        otherwise = true
        say = ["done"]
        [[a.rule]]
        message_id_prefix = "tck-file"
        say = ["done"]
        [[a.rule]]
        message_id_prefix = "tck-file-url"
        contains = "x"
        say = ["done"]
        [[a.rule]]
        message_id_prefix = "tck-file-url"
        say = ["done"]
    "#;
    let script = read(rules).unwrap();
    let line = |id: &str, text: &str| {
        let message = Message::new(MessageId::new(id).unwrap(), Role::User, vec![Part::text(text)]);
        script.choose(&Heard::first(&message)).unwrap().line()
    };
    assert_eq!(line("tck-file-url-1", "x"), 8);
    assert_eq!(line("tck-file-url-1", "y"), 12);
    assert_eq!(line("tck-file-1", "x"), 5);
    assert_eq!(line("tck", "x"), 2);
}

// ---- what it says

#[test]
fn a_status_without_words_is_its_bare_name() {
    let script = read(&saying("\"queued\", \"working\", { sleep_ms = 20 }, \"done\"")).unwrap();
    let said: Vec<String> = script.rules()[0].steps().iter().map(|step| format!("{step:?}")).collect();
    assert_eq!(
        said,
        [
            "Words(Queued, Words(None))",
            "Words(Working, Words(None))",
            "Sleep { least: 20ms, most: 20ms }",
            "Words(Done, Words(None))"
        ]
    );
}

#[test]
fn words_and_artifacts_hold_every_kind_of_part() {
    let steps = r#"
        { artifact = "x", parts = [
            { text = "t", media_type = "text/markdown" },
            { json = '{"b": 1, "a": 1.50}' },
            { file = "tck", filename = "output.txt", media_type = "text/plain" },
            { base64 = "/wA=" },
            { url = "https://example.com/output.txt", filename = "output.txt" },
        ] },
        { done = [{ json = "null" }] },
    "#;
    let script = read(&saying(steps)).unwrap();
    let [Step::Artifact(chunk), Step::Words(_, words)] = script.rules()[0].steps() else { panic!() };
    assert_eq!(
        serde_json::to_string(&chunk.artifact).unwrap(),
        concat!(
            r#"{"artifactId":"x","parts":[{"text":"t","mediaType":"text/markdown"},"#,
            r#"{"data":{"b":1,"a":1.50},"mediaType":"application/json"},"#,
            r#"{"raw":"dGNr","filename":"output.txt","mediaType":"text/plain"},{"raw":"/wA="},"#,
            r#"{"url":"https://example.com/output.txt","filename":"output.txt"}]}"#
        )
    );
    assert!(!chunk.append && !chunk.last_chunk);
    assert_eq!(serde_json::to_string(&words.0).unwrap(), r#"[{"data":null,"mediaType":"application/json"}]"#);
}

#[test]
fn a_log_of_one_line_begins_and_ends_with_it() {
    let script = read(&saying("{ log = \"l\", name = \"n\", lines = [\"\"] }, \"done\"")).unwrap();
    let Step::Artifact(chunk) = &script.rules()[0].steps()[0] else { panic!() };
    assert!(!chunk.append && chunk.last_chunk && chunk.artifact.name.is_some());
    assert_eq!(chunk.artifact.parts.iter().next().and_then(Part::as_text), Some("\n"));
}

#[test]
fn an_artifact_may_go_on_in_the_turn_after_a_question() {
    let rules = r#"
        [[a.rule]]
        on = "answer"
        say = [{ artifact = "x", append = true, parts = [{ text = "2" }] }, "done"]
        [[a.rule]]
        otherwise = true
        say = [{ artifact = "x", parts = [{ text = "1" }] }, "ask"]
    "#;
    assert!(read(rules).is_ok());
}

#[test]
fn other_words_in_braces_are_text() {
    assert!(read(&saying("{ done = \"fn main() {} {name} {approve_url}\" }")).is_ok());
}

// ---- what is refused, and where

macro_rules! refused {
    ($($name:ident: $rules:expr => $words:expr;)*) => {$(
        #[test]
        fn $name() {
            assert_eq!(refusal(&$rules), $words);
        }
    )*};
}

refused! {
    a_file_that_is_no_toml_is_refused: "[[a.rule]]\nsay = [" => "a.toml:2: this is no TOML: unclosed array, expected `]`";
    an_empty_file_is_refused: "\n# nothing\n" => "a.toml:1: no agent; expected rules such as [[test-runner.rule]]";
    an_agent_without_rules_is_refused: "\n[a]\n" => "a.toml:2: a has no rules; expected [[a.rule]]";
    an_agent_with_an_empty_list_of_rules_is_refused:
        "[a]\nrule = []\n" => "a.toml:2: `rule` must have at least one entry";
    an_agent_of_the_wrong_type_is_refused:
        "\na = 3\n" => "a.toml:2: `a` must be an agent with its rules, such as [[a.rule]], and is an integer";
    rules_of_the_wrong_type_are_refused: "[a.rule]\nsay = []\n" => "a.toml:1: `rule` must be rules, each under [[a.rule]], and is a table";
    a_rule_of_the_wrong_type_is_refused:
        "[a]\nrule = [\n1]\n" => "a.toml:3: `rule` must be a rule, such as [[agent.rule]], and is an integer";
    an_unknown_key_of_an_agent_is_refused: "[a]\nrules = 1\n" => "a.toml:2: unknown key `rules`; did you mean `rule`?";
    an_unknown_key_of_a_rule_is_refused_with_the_nearest:
        looking("contain = \"x\"") => "a.toml:2: unknown key `contain`; did you mean `contains`?";
    an_unknown_key_that_is_near_to_none_is_refused_with_all: looking("colour = \"x\"") =>
        "a.toml:2: unknown key `colour`; expected `on`, `message_id_prefix`, `contains`, `lacks`, `ends_with`, `has_media_type`, \
         `lacks_media_type`, `part`, `first_message_part`, `otherwise` or `say`";
    a_rule_without_say_is_refused:
        "[[a.rule]]\notherwise = true\n" => "a.toml:1: this rule says nothing; expected `say = [...]`";
    a_rule_that_says_an_empty_list_is_refused: saying("") => "a.toml:3: `say` must have at least one entry";
    a_rule_that_looks_at_nothing_is_refused: "\n[[a.rule]]\nsay = [\"done\"]\n" =>
        "a.toml:2: this rule looks at nothing; expected a condition, or `otherwise = true` to match everything";
    a_condition_of_the_wrong_type_is_refused:
        looking("contains = 1") => "a.toml:2: `contains` must be a text or a list of texts, and is an integer";
    a_list_with_a_wrong_entry_is_refused:
        looking("contains = [\n\"a\",\n1.5]") => "a.toml:4: `contains` must be a text, and is a float";
    an_empty_condition_is_refused: looking("contains = \"\"") => "a.toml:2: `contains` must not be empty";
    an_unknown_start_is_refused:
        looking("on = \"aproval\"") => "a.toml:2: no turn starts with `aproval`; did you mean `approval`?";
    a_media_type_that_is_none_is_refused: looking("has_media_type = \"diff\"") =>
        "a.toml:2: `diff` is no media type; expected one such as `text/plain`";
    a_part_that_looks_at_nothing_is_refused:
        looking("part = {}") => "a.toml:2: `part` looks at nothing; expected `media_type` or `contains`";
    an_unknown_key_of_a_part_is_refused:
        looking("part = { media = \"x\" }") => "a.toml:2: unknown key `media`; expected `media_type` or `contains`";
    otherwise_beside_a_condition_is_refused: looking("otherwise = true\ncontains = \"x\"") =>
        "a.toml:2: `otherwise` stands alone; leave it out, or the conditions beside it";
    otherwise_that_is_false_is_refused:
        looking("otherwise = false") => "a.toml:2: `otherwise` is true or left out";
    a_rule_after_otherwise_is_refused: looking("otherwise = true") =>
        "a.toml:4: this rule can never match: the one in line 1 takes all of it";
    a_narrow_rule_after_a_wide_one_is_refused:
        looking("contains = \"full\"").replace("otherwise = true", "contains = [\"a41d7c3\", \"full suite\"]") =>
        "a.toml:4: this rule can never match: the one in line 1 takes all of it";
    a_rule_that_contradicts_itself_is_refused: looking("contains = \"ab\"\nlacks = \"a\"") =>
        "a.toml:1: this rule can never match: it wants and excludes the same";
    a_reply_to_an_answer_is_refused: "[[a.rule]]\non = \"answer\"\nsay = [{ reply = \"x\" }]" =>
        "a.toml:1: this rule can never match: a `reply` is possible only on \"message\"";

    a_prefix_that_is_there_twice_is_refused:
        looking("message_id_prefix = \"x\"").replace("otherwise = true", "message_id_prefix = \"x\"") =>
        "a.toml:4: the message_id_prefix `x` is already that of the rule in line 1";
    a_shorter_prefix_that_leaves_nothing_over_is_no_mistake_but_the_same_one_with_more_is:
        looking("message_id_prefix = \"x\"").replace("otherwise = true", "message_id_prefix = \"x\"\ncontains = \"y\"") =>
        "a.toml:4: this rule can never match: the one in line 1 takes all of it";
    an_empty_prefix_is_refused:
        looking("message_id_prefix = \"\"") => "a.toml:2: `message_id_prefix` must not be empty";

    an_unknown_step_is_refused: saying("{ workin = \"x\" }") => "a.toml:4: unknown key `workin`; did you mean `working`?";
    an_unknown_bare_step_is_refused: saying("\"don\"") => "a.toml:4: unknown step `don`; did you mean `done`?";
    a_bare_step_that_needs_a_value_is_refused:
        saying("\"reply\"") => "a.toml:4: `reply` needs a value: { reply = ... }";
    a_step_of_the_wrong_type_is_refused:
        saying("7") => "a.toml:4: `say` must be a list of steps, such as { working = \"...\" } or \"working\", and is an integer";
    an_empty_step_is_refused: saying("{}") =>
        "a.toml:4: an empty step; expected `reply`, `queued`, `working`, `ask`, `need_approval`, `done`, `failed`, \
         `rejected`, `canceled`, `artifact`, `log` or `sleep_ms`";
    two_steps_in_one_are_refused: saying("{ working = \"x\",\n done = \"y\" }") =>
        "a.toml:5: `working` and `done` are two steps; expected one in each { }";
    an_unknown_key_of_a_step_is_refused:
        saying("{ done = \"x\", name = \"y\" }") => "a.toml:4: unknown key `name`; expected `done`";
    words_of_the_wrong_type_are_refused: saying("{ done = 1 }") => "a.toml:4: `done` must be a text or a list of parts, and is an integer";
    an_artifact_without_parts_is_refused:
        saying("{ artifact = \"x\" }, \"done\"") => "a.toml:4: an artifact needs `parts = [...]`";
    a_flag_of_the_wrong_type_is_refused: saying("{ artifact = \"x\", append = 1, parts = [{ text = \"t\" }] }, \"done\"") =>
        "a.toml:4: `append` must be true or false, and is an integer";
    a_log_without_lines_is_refused: saying("{ log = \"x\" }, \"done\"") => "a.toml:4: a log needs `lines = [...]`";
    a_line_with_a_line_break_is_refused: saying("{ log = \"x\", lines = [\n\"a\",\n\"b\\n\"] }, \"done\"") =>
        "a.toml:6: a line of a log holds no line break; it gets one at its end";
    a_part_with_two_contents_is_refused: saying("{ done = [{ text = \"a\", url = \"b\" }] }") =>
        "a.toml:4: a part has exactly one of `text`, `json`, `file`, `base64` or `url`";
    json_that_is_none_is_refused_at_its_own_line: saying("{ done = [{ json = '''\n{\n  \"a\": ,\n}''' }] }") =>
        "a.toml:6: this is no JSON: expected value";
    json_that_is_cut_short_is_refused: saying("{ done = [{ json = '{' }] }") =>
        "a.toml:4: this is no JSON: EOF while parsing an object";
    json_that_cannot_be_sent_is_refused: saying("{ done = [{ json = '\"\\uD800\"' }] }") =>
        "a.toml:4: this JSON cannot be sent: a lone surrogate escape is no text";
    a_stated_media_type_that_is_none_is_refused: saying("{ done = [{ text = \"a\", media_type = \"a/b/c\" }] }") =>
        "a.toml:4: `a/b/c` is no media type; expected one such as `text/plain`";
    a_negative_sleep_is_refused: saying("{ sleep_ms = -1 }, \"done\"") =>
        "a.toml:4: `sleep_ms` must be a whole number that is not negative";
    a_sleep_of_three_times_is_refused: saying("{ sleep_ms = [1, 2, 3] }, \"done\"") =>
        "a.toml:4: `sleep_ms` must be a whole number, or [least, most] with the smaller one first";
    a_sleep_whose_times_are_the_wrong_way_round_is_refused: saying("{ sleep_ms = [2, 1] }, \"done\"") =>
        "a.toml:4: `sleep_ms` must be a whole number, or [least, most] with the smaller one first";
    a_sleep_of_the_wrong_type_is_refused: saying("{ sleep_ms = \"long\" }, \"done\"") =>
        "a.toml:4: `sleep_ms` must be a whole number, and is a string";
    base64_that_is_none_is_refused: saying("{ done = [{ base64 = \"?\" }] }") =>
        "a.toml:4: this is no base64: Invalid symbol 63, offset 0.";
    a_flaw_with_a_value_is_refused:
        saying("{ panic = \"x\" }") => "a.toml:4: `panic` takes no value; expected \"panic\"";
    a_misspelt_flaw_is_refused: saying("\"never_ends\"") => "a.toml:4: unknown step `never_ends`; did you mean `never_end`?";
    a_step_after_a_flaw_that_ends_the_turn_is_refused:
        saying("\"never_end\",\n\"done\"") => "a.toml:5: `never_end` ends the turn; nothing can be said after it";
    ignoring_the_cancel_alone_is_no_end: saying("\"ignore_cancel\"") =>
        "a.toml:4: the turn does not end here; expected `reply`, `ask`, `need_approval`, `done`, `failed`, `rejected` or \
         `canceled` last";
    a_misspelt_placeholder_is_refused: saying("{ done = \"{aprove_url}\" }") =>
        "a.toml:4: unknown placeholder `{aprove_url}`; did you mean `{approve_url}`?";
    a_placeholder_in_a_reply_is_refused: saying("{ reply = \"{task_id}\" }") =>
        "a.toml:4: a reply belongs to no task, and so has no `{task_id}` or `{approve_url}`";

    steps_that_do_not_end_the_turn_are_refused: saying("{ working = \"x\" },\n\"working\"") =>
        "a.toml:5: the turn does not end here; expected `reply`, `ask`, `need_approval`, `done`, `failed`, `rejected` or \
         `canceled` last";
    a_step_after_the_end_is_refused:
        saying("\"done\",\n\"working\"") => "a.toml:5: `done` ends the turn; nothing can be said after it";
    a_step_after_a_reply_is_refused:
        saying("{ reply = \"x\" },\n\"done\"") => "a.toml:5: `reply` ends the turn; nothing can be said after it";
    a_reply_after_another_step_is_refused: saying("\"working\",\n{ reply = \"x\" }") =>
        "a.toml:5: a `reply` stands alone; a task that was begun ends with `done`";
    an_append_to_an_artifact_that_was_not_begun_is_refused:
        saying("{ artifact = \"x\", append = true, parts = [{ text = \"t\" }] }, \"done\"") =>
        "a.toml:4: the artifact `x` was not begun; its first piece has no `append`";
    a_piece_after_the_last_chunk_is_refused:
        saying("{ log = \"x\", lines = [\"1\"] },\n{ artifact = \"x\", append = true, parts = [{ text = \"t\" }] }, \"done\"") =>
        "a.toml:5: the last chunk of the artifact `x` was already said";
}

#[test]
fn a_story_that_is_not_there_or_not_of_this_agent_says_what_was_expected() {
    let open = |agent, file| Script::open(agent, file).unwrap_err().to_string();
    let missing = open("deployer", "no/such/story.toml");
    assert!(missing.starts_with("no/such/story.toml: cannot be read: "), "{missing}");
    assert!(missing.ends_with("; expected a file or `payments-api`"), "{missing}");
    assert_eq!(
        open("dancer", "payments-api"),
        "payments-api: the story has no rules for dancer, only for `code-reviewer`, `deployer` or `test-runner`"
    );
    assert_eq!(
        open("deployer", "none"),
        "--story none: this deployer can only recite; expected a file or `payments-api`"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*|(\\[\\[a\\.rule\\]\\]|say|=|\\[|\\]|\\{|\\}|\"|'''|done|json|\n| |,|1){0,40}") {
        let _ = Story::parse("a.toml", &text);
    }

    #[test]
    fn no_damage_to_a_good_story_makes_the_reader_panic(at in 0usize..8000, gone in 0usize..200, instead in "[a-z\"{}=\\[\\]\n1é]{0,3}") {
        let story: Vec<char> = stories::PAYMENTS_API.chars().collect();
        let (before, rest) = story.split_at(at.min(story.len()));
        let after = &rest[gone.min(rest.len())..];
        let text: String = before.iter().copied().chain(instead.chars()).chain(after.iter().copied()).collect();
        if let Err(mistake) = Story::parse("a.toml", &text) {
            let lines = text.lines().count() + 1;
            prop_assert!(mistake.line.is_some_and(|line| (1..=lines).contains(&line)), "{mistake}");
        }
    }
}
