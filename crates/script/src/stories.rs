//! The stories that come with the workspace, embedded so that a binary needs no file beside it.

/// The name of the story that the agents recite by default.
pub const DEFAULT: &str = "payments-api";

/// The story of payments-api, as `scenarios/stories/payments-api.toml` tells it.
pub const PAYMENTS_API: &str = include_str!("../../../scenarios/stories/payments-api.toml");

/// The text of an embedded story.
pub(crate) fn embedded(name: &str) -> Option<&'static str> {
    (name == DEFAULT).then_some(PAYMENTS_API)
}
