//! Whether what a rule says can be said in this order.

use std::collections::HashSet;

use protocol::ArtifactId;
use server::Chunk;

use super::{Draft, Said};
use crate::mistake::{Mistake, one_of};
use crate::step::{Step, Verb};
use crate::table::Source;

/// The artifacts that a turn may find begun, because a rule that ends in a wait began them.
pub(super) fn carried(drafts: &[Draft]) -> HashSet<ArtifactId> {
    let steps = drafts.iter().filter(|draft| draft.waits()).flat_map(|draft| &draft.said);
    let begun = steps.filter_map(|said| match &said.step {
        Step::Artifact(chunk) if !chunk.append => Some(chunk.artifact.artifact_id.clone()),
        _ => None,
    });
    begun.collect()
}

/// Refuses a step that the server would not take when it comes.
pub(super) fn check(source: Source<'_>, draft: &Draft, mut begun: HashSet<ArtifactId>) -> Result<(), Mistake> {
    let mut closed = HashSet::new();
    let (mut end, mut spoken): (Option<&str>, bool) = (None, false);
    let mut last_line = draft.line;
    for Said { step, line } in &draft.said {
        let refuse = |words: String| Err(source.mistake(*line, words));
        last_line = *line;
        if let Some(end) = end {
            return refuse(format!("`{end}` ends the turn; nothing can be said after it"));
        }
        match step {
            Step::Words(Verb::Reply, _) if spoken => {
                return refuse("a `reply` stands alone; a task that was begun ends with `done`".to_owned());
            }
            Step::Words(verb, _) => end = verb.ends_turn().then_some(verb.word()),
            Step::Flaw(flaw) => end = flaw.ends_turn().then_some(flaw.word()),
            Step::Artifact(Chunk { artifact, append, last_chunk }) => {
                let id = &artifact.artifact_id;
                if closed.contains(id) {
                    return refuse(format!("the last chunk of the artifact `{id}` was already said"));
                }
                if *append && !begun.contains(id) {
                    return refuse(format!("the artifact `{id}` was not begun; its first piece has no `append`"));
                }
                begun.insert(id.clone());
                if *last_chunk {
                    closed.insert(id.clone());
                }
            }
            Step::Sleep { .. } => continue,
        }
        spoken = true;
    }
    if end.is_some() {
        return Ok(());
    }
    let ends = |word: &&str| Verb::from_word(word).is_some_and(Verb::ends_turn);
    let ends: Vec<&str> = Verb::WORDS.into_iter().filter(ends).collect();
    Err(source.mistake(last_line, format!("the turn does not end here; expected {} last", one_of(&ends))))
}
