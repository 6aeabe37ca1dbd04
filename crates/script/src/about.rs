//! Who a scripted agent is: its card, and how it is served.

use protocol::AgentCard;
use server::Dedupe;

/// Who an agent is and how it is served, beside what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Its card, without the interfaces, which the server knows.
    pub card: AgentCard,
    /// The card that callers with the token see.
    pub extended_card: Option<AgentCard>,
    /// The port it listens on.
    pub port: u16,
    /// The bearer token that callers must send.
    pub token: Option<String>,
    /// Which resent messages join their first attempt.
    pub dedupe: Dedupe,
    /// Its webhooks may lead to this machine and to private networks.
    pub allow_local_webhooks: bool,
    /// Its HTTP+JSON answers are `application/json`, whatever the request was.
    pub plain_json: bool,
}
