//! Tasks, messages and events in words.

use client::{Seal, Source};
use protocol::{AgentCard, Content, Message, Object, Part, StreamResponse, Task, Timestamps};
use signature::Doubt;

/// A card, in a few lines.
pub fn card(card: &AgentCard) -> String {
    let mut lines = vec![format!("{} {}: {}", card.name, card.version, card.description)];
    for interface in &card.supported_interfaces {
        let tenant = interface.tenant.as_ref().map(|tenant| format!(", tenant {tenant}")).unwrap_or_default();
        let (binding, version) = (&interface.protocol_binding, &interface.protocol_version);
        lines.push(format!("  {binding} {version} at {}{tenant}", interface.url));
    }
    let capabilities = &card.capabilities;
    let can: Vec<_> = [
        ("streams", capabilities.streaming),
        ("posts to webhooks", capabilities.push_notifications),
        ("has a longer card", capabilities.extended_agent_card),
    ]
    .into_iter()
    .filter_map(|(word, can)| can.unwrap_or_default().then_some(word))
    .collect();
    if !can.is_empty() {
        lines.push(format!("  {}", can.join(", ")));
    }
    for extension in &capabilities.extensions {
        let required = if extension.required { " (required)" } else { "" };
        lines.push(format!("  extension {}{required}", extension.uri));
    }
    for skill in &card.skills {
        lines.push(format!("  skill {}: {}", skill.id, skill.description));
    }
    if !card.security_requirements.is_empty() {
        let schemes = card.security_requirements.iter().flat_map(|requirement| requirement.schemes.keys());
        lines.push(format!("  needs {}", schemes.cloned().collect::<Vec<_>>().join(" or ")));
    }
    lines.join("\n")
}

/// Whether a signature of a card holds, and if not, why.
pub fn seal(seal: &Seal) -> String {
    match (&seal.checked.result, &seal.source) {
        (Ok(form), Source::Read(url)) => format!("holds, over {}, with the key of {url}", form.words()),
        (Ok(form), _) => format!("holds, over {}", form.words()),
        (Err(Doubt::UnknownKey), Source::OtherOrigin(url)) => {
            format!("not checked: its key is at {url}, which is not of the card's origin; --jwks {url} trusts it")
        }
        (Err(Doubt::UnknownKey), Source::Unreadable { url, why }) => format!("not checked: no key at {url}: {why}"),
        (Err(Doubt::UnknownKey), Source::Nowhere) => {
            "not checked: it does not say where its key is; --jwks names a file or URL with it".to_owned()
        }
        (Err(doubt), _) => format!("does not hold: {doubt}"),
    }
}

/// A message, in one line or a few.
pub fn message(message: &Message) -> String {
    message.parts.iter().map(part).collect::<Vec<_>>().join("\n") + &made(message.metadata.as_ref())
}

/// When something was made, if the agent says so.
fn made(metadata: Option<&Object>) -> String {
    Timestamps::made(metadata).map(|made| format!(" (made {made})")).unwrap_or_default()
}

fn part(part: &Part) -> String {
    match &part.content {
        Content::Text(text) => text.trim_end().to_owned(),
        Content::Data(json) => json.text().to_owned(),
        Content::Url(url) => url.to_string(),
        Content::Raw(bytes) => {
            let name = part.filename.as_deref().unwrap_or("file");
            format!("[{name}, {}, {} bytes]", part.media_type(), bytes.len())
        }
    }
}

/// A task with all that it made.
pub fn task(task: &Task) -> String {
    let mut lines = vec![status(task)];
    for artifact in &task.artifacts {
        let name = artifact.name.as_deref().unwrap_or(artifact.artifact_id.as_str());
        lines.push(format!("  {name}{}:", made(artifact.metadata.as_ref())));
        let parts = artifact.parts.iter().map(part);
        lines.extend(parts.flat_map(|text| text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>()));
    }
    lines.join("\n")
}

/// A task in one line.
pub fn status(task: &Task) -> String {
    let said = task.status.message.as_ref().map(|said| format!(": {}", message(said))).unwrap_or_default();
    format!("task {} is {}{said}", task.id, task.status.state)
}

/// One event.
pub fn event(event: &StreamResponse) -> String {
    match event {
        StreamResponse::Task(task) => status(task),
        StreamResponse::Message(said) => message(said),
        StreamResponse::StatusUpdate(update) => {
            let said = update.status.message.as_ref().map(|said| format!(": {}", message(said))).unwrap_or_default();
            format!("{}{said}", update.status.state)
        }
        StreamResponse::ArtifactUpdate(update) => {
            let name = update.artifact.name.as_deref().unwrap_or(update.artifact.artifact_id.as_str());
            let parts: Vec<_> = update.artifact.parts.iter().map(part).collect();
            let made = made(update.artifact.metadata.as_ref());
            format!("{name}{made} {} {}", if update.append { "+" } else { "=" }, parts.join("\n"))
        }
    }
}
