//! Tasks, messages and events in words.

use protocol::{AgentCard, Content, Message, Part, StreamResponse, Task};

/// A card, in a few lines.
pub fn card(card: &AgentCard) -> String {
    let mut lines = vec![format!("{} {}: {}", card.name, card.version, card.description)];
    for interface in &card.supported_interfaces {
        lines.push(format!("  {} {} at {}", interface.protocol_binding, interface.protocol_version, interface.url));
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

/// A message, in one line or a few.
pub fn message(message: &Message) -> String {
    message.parts.iter().map(part).collect::<Vec<_>>().join("\n")
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
        lines.push(format!("  {name}:"));
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
            format!("{name} {} {}", if update.append { "+" } else { "=" }, parts.join("\n"))
        }
    }
}
