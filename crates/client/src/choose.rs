//! Which of an agent's interfaces to call (specification 8.3.2).

use protocol::AgentCard;
use protocol::card::AgentInterface;

/// A way of calling that this client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// JSON-RPC.
    JsonRpc,
    /// HTTP+JSON.
    HttpJson,
    /// gRPC.
    #[cfg(feature = "grpc")]
    Grpc,
}

impl Binding {
    /// All that this build speaks.
    pub const SPOKEN: &[Self] = &[
        Self::JsonRpc,
        Self::HttpJson,
        #[cfg(feature = "grpc")]
        Self::Grpc,
    ];

    /// The binding of a card's word, when this client speaks it.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "JSONRPC" => Some(Self::JsonRpc),
            "HTTP+JSON" => Some(Self::HttpJson),
            #[cfg(feature = "grpc")]
            "GRPC" => Some(Self::Grpc),
            _ => None,
        }
    }

    /// The word of a card.
    pub fn word(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            #[cfg(feature = "grpc")]
            Self::Grpc => "GRPC",
        }
    }
}

/// The card offers nothing that this client speaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{agent} offers {offered}; {wanted} of version 1.0 was expected")]
pub struct NoInterface {
    /// The card's name.
    pub agent: String,
    /// What it offers.
    pub offered: String,
    /// What this client would take.
    pub wanted: String,
}

/// The first interface of the card, in the card's own order, that speaks version 1.0 over one of these bindings.
pub fn choose<'a>(card: &'a AgentCard, bindings: &[Binding]) -> Result<(&'a AgentInterface, Binding), NoInterface> {
    let spoken = |interface: &&AgentInterface| {
        let version = &interface.protocol_version;
        version == "1.0" || version.starts_with("1.0.")
    };
    let fits = |interface: &'a AgentInterface| {
        let binding = Binding::from_word(&interface.protocol_binding)?;
        bindings.contains(&binding).then_some((interface, binding))
    };
    card.supported_interfaces.iter().filter(spoken).find_map(fits).ok_or_else(|| {
        let offers = card.supported_interfaces.iter();
        let offers: Vec<_> = offers
            .map(|interface| {
                format!("{} {} at {}", interface.protocol_binding, interface.protocol_version, interface.url)
            })
            .collect();
        NoInterface {
            agent: card.name.clone(),
            offered: if offers.is_empty() { "no interface at all".to_owned() } else { offers.join(", ") },
            wanted: bindings.iter().map(|binding| binding.word()).collect::<Vec<_>>().join(" or "),
        }
    })
}
