//! A card's signature, step by step, as a text to read.

use protocol::AgentCard;
use signature::{Key, SignatureError};

/// Shows how a served card was signed, and that a copy with another description does not verify.
pub(crate) fn text(card: &AgentCard, key: &Key, forged: &str) -> Result<String, SignatureError> {
    let steps = key.steps(card)?;
    let entry = serde_json::to_string_pretty(&steps.signature).unwrap_or_default();
    let header = capture::json::line(&steps.header).unwrap_or_default();
    let mut copy = card.clone();
    forged.clone_into(&mut copy.description);
    let verifies = |card: &AgentCard| if signature::verify(card, std::slice::from_ref(key)) { "True" } else { "False" };
    Ok(format!(
        "# 1. canonical payload (RFC 8785): the card without signatures, keys sorted, no spaces\n{}\n\n\
         # 2. protected header, decoded\n{header}\n\n\
         # 3. JWS signing input: BASE64URL(header) '.' BASE64URL(payload)\n{}\n\n\
         # 4. the signature entry published in the card\n{entry}\n\n\
         # 5. verify the published card: {}\n\
         # 6. verify after changing the description to name production: {}\n",
        steps.payload,
        steps.signing_input,
        verifies(card),
        verifies(&copy),
    ))
}
