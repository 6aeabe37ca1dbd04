//! The agent card (specification 4.4): who an agent is, what it can do, and where and how it is called.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::Object;
use crate::{media, read};

/// What an agent says of itself at `/.well-known/agent-card.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AgentCard {
    /// A name to show.
    pub name: String,
    /// What the agent is for.
    pub description: String,
    /// Where it is called, the preferred interface first.
    #[serde(default, deserialize_with = "read::or_default", alias = "supported_interfaces")]
    pub supported_interfaces: Vec<AgentInterface>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<AgentProvider>,
    /// The agent's own version.
    pub version: String,
    /// Where more is written about it.
    #[serde(
        default,
        deserialize_with = "read::text",
        skip_serializing_if = "Option::is_none",
        alias = "documentation_url"
    )]
    pub documentation_url: Option<String>,
    /// What it can do beyond the minimum.
    #[serde(default, deserialize_with = "read::or_default")]
    pub capabilities: AgentCapabilities,
    /// Ways to authenticate, by name.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "BTreeMap::is_empty",
        alias = "security_schemes"
    )]
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Which of them a caller must use: any one entry of the list.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "Vec::is_empty",
        alias = "security_requirements"
    )]
    pub security_requirements: Vec<SecurityRequirement>,
    /// The media types it takes, unless a skill says otherwise.
    #[serde(default, deserialize_with = "read::or_default", alias = "default_input_modes")]
    pub default_input_modes: Vec<String>,
    /// The media types it gives, unless a skill says otherwise.
    #[serde(default, deserialize_with = "read::or_default", alias = "default_output_modes")]
    pub default_output_modes: Vec<String>,
    /// What it can be asked to do.
    #[serde(default, deserialize_with = "read::or_default")]
    pub skills: Vec<AgentSkill>,
    /// Signatures over the card without this member (specification 8.4).
    #[serde(default, deserialize_with = "read::or_default", skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<AgentCardSignature>,
    /// An icon to show.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none", alias = "icon_url")]
    pub icon_url: Option<String>,
}

impl AgentCard {
    /// A card with what every card must have: text in, text out, none of the optional operations, and no interface,
    /// which a server knows.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        version: impl Into<String>,
        skills: Vec<AgentSkill>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            supported_interfaces: Vec::new(),
            provider: None,
            version: version.into(),
            documentation_url: None,
            capabilities: AgentCapabilities::default(),
            security_schemes: BTreeMap::new(),
            security_requirements: Vec::new(),
            default_input_modes: vec![media::TEXT.to_owned()],
            default_output_modes: vec![media::TEXT.to_owned()],
            skills,
            signatures: Vec::new(),
            icon_url: None,
        }
    }
}

/// One place where the agent is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AgentInterface {
    /// An absolute URL; for gRPC `host:port`.
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON`, `GRPC`, or a word of somebody else's.
    #[serde(alias = "protocol_binding")]
    pub protocol_binding: String,
    /// The tenant to name in each request.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The version spoken here, such as `1.0`.
    #[serde(alias = "protocol_version")]
    pub protocol_version: String,
}

/// Who runs an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AgentProvider {
    /// Their site.
    pub url: String,
    /// Their name.
    pub organization: String,
}

/// What an agent can do beyond the minimum. Absent counts as no.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    /// It answers the two streaming operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// It posts a task's events to webhooks.
    #[serde(skip_serializing_if = "Option::is_none", alias = "push_notifications")]
    pub push_notifications: Option<bool>,
    /// The extensions it knows.
    #[serde(deserialize_with = "read::or_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
    /// It shows authenticated callers a longer card.
    #[serde(skip_serializing_if = "Option::is_none", alias = "extended_agent_card")]
    pub extended_agent_card: Option<bool>,
}

/// An extension that an agent knows (specification 4.6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AgentExtension {
    /// Names the extension.
    pub uri: String,
    /// How this agent uses it.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A client that does not name it is refused.
    #[serde(default, deserialize_with = "read::or_default", skip_serializing_if = "read::is_false")]
    pub required: bool,
    /// The extension's own settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Object>,
}

/// One thing that an agent can be asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AgentSkill {
    /// Unique within the card.
    pub id: String,
    /// A name to show.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    #[serde(default, deserialize_with = "read::or_default")]
    pub tags: Vec<String>,
    /// Things one could write to it.
    #[serde(default, deserialize_with = "read::or_default", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The media types it takes, instead of the card's.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "Vec::is_empty",
        alias = "input_modes"
    )]
    pub input_modes: Vec<String>,
    /// The media types it gives, instead of the card's.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "Vec::is_empty",
        alias = "output_modes"
    )]
    pub output_modes: Vec<String>,
    /// What a caller must show for this skill.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "Vec::is_empty",
        alias = "security_requirements"
    )]
    pub security_requirements: Vec<SecurityRequirement>,
}

impl AgentSkill {
    /// A skill with what every skill must have.
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>, tags: &[&str]) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }
}

/// A JSON Web Signature over a card (specification 8.4, RFC 7515).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AgentCardSignature {
    /// The protected header, base64url.
    pub protected: String,
    /// The signature, base64url.
    pub signature: String,
    /// The unprotected header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Object>,
}

/// Schemes that must be satisfied together, each with its scopes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct SecurityRequirement {
    /// Scopes by the name of the scheme.
    #[serde(default, deserialize_with = "read::or_default")]
    pub schemes: BTreeMap<String, StringList>,
}

/// A list of texts in a place where the proto cannot have a bare list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct StringList {
    /// The texts.
    #[serde(default, deserialize_with = "read::or_default")]
    pub list: Vec<String>,
}

/// One way to authenticate: exactly one of the proto's five, or one that this workspace does not know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum SecurityScheme {
    /// An API key.
    #[serde(rename = "apiKeySecurityScheme")]
    ApiKey(ApiKeySecurityScheme),
    /// HTTP authentication, such as a bearer token.
    #[serde(rename = "httpAuthSecurityScheme")]
    HttpAuth(HttpAuthSecurityScheme),
    /// OAuth 2.0.
    #[serde(rename = "oauth2SecurityScheme")]
    OAuth2(OAuth2SecurityScheme),
    /// OpenID Connect.
    #[serde(rename = "openIdConnectSecurityScheme")]
    OpenIdConnect(OpenIdConnectSecurityScheme),
    /// Mutual TLS.
    #[serde(rename = "mtlsSecurityScheme")]
    MutualTls(MutualTlsSecurityScheme),
    /// None of these, or one that is not as it should be. A card can be read all the same, and names it as it came.
    #[serde(untagged)]
    Other(Object),
}
read::oneof!(visitor SecurityScheme {
    ApiKey: "apiKeySecurityScheme" | "api_key_security_scheme",
    HttpAuth: "httpAuthSecurityScheme" | "http_auth_security_scheme",
    OAuth2: "oauth2SecurityScheme" | "oauth2_security_scheme",
    OpenIdConnect: "openIdConnectSecurityScheme" | "open_id_connect_security_scheme",
    MutualTls: "mtlsSecurityScheme" | "mtls_security_scheme",
});

impl<'de> Deserialize<'de> for SecurityScheme {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Object::deserialize(deserializer)?;
        let known = read::one_of(&mut serde_json::Deserializer::from_str(object.text()));
        Ok(known.unwrap_or(Self::Other(object)))
    }
}

/// An API key in a query parameter, a header or a cookie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct ApiKeySecurityScheme {
    /// What to know about it.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `query`, `header` or `cookie`.
    pub location: String,
    /// The parameter's name.
    pub name: String,
}

/// HTTP authentication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct HttpAuthSecurityScheme {
    /// What to know about it.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The scheme of the `Authorization` header.
    pub scheme: String,
    /// What a bearer token looks like, such as `JWT`.
    #[serde(
        default,
        deserialize_with = "read::text",
        skip_serializing_if = "Option::is_none",
        alias = "bearer_format"
    )]
    pub bearer_format: Option<String>,
}

/// OAuth 2.0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct OAuth2SecurityScheme {
    /// What to know about it.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The flow to use.
    pub flows: OAuthFlows,
    /// Where the authorization server describes itself (RFC 8414).
    #[serde(
        default,
        rename = "oauth2MetadataUrl",
        deserialize_with = "read::text",
        skip_serializing_if = "Option::is_none",
        alias = "oauth2_metadata_url"
    )]
    pub oauth2_metadata_url: Option<String>,
}

/// OpenID Connect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct OpenIdConnectSecurityScheme {
    /// What to know about it.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where the provider describes itself.
    #[serde(alias = "open_id_connect_url")]
    pub open_id_connect_url: String,
}

/// Mutual TLS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct MutualTlsSecurityScheme {
    /// What to know about it.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// One OAuth 2.0 flow: exactly one of the five. The implicit and password flows are deprecated (conflict D11).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum OAuthFlows {
    /// Authorization code.
    AuthorizationCode(OAuthFlow),
    /// Client credentials.
    ClientCredentials(OAuthFlow),
    /// Implicit, deprecated.
    Implicit(OAuthFlow),
    /// Password, deprecated.
    Password(OAuthFlow),
    /// Device code (RFC 8628).
    DeviceCode(OAuthFlow),
}
read::oneof!(OAuthFlows {
    AuthorizationCode: "authorizationCode" | "authorization_code",
    ClientCredentials: "clientCredentials" | "client_credentials",
    Implicit: "implicit",
    Password: "password",
    DeviceCode: "deviceCode" | "device_code",
});

/// The settings of a flow. Which of the URLs are there depends on the flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct OAuthFlow {
    /// Where a device asks for its code.
    #[serde(
        default,
        deserialize_with = "read::text",
        skip_serializing_if = "Option::is_none",
        alias = "device_authorization_url"
    )]
    pub device_authorization_url: Option<String>,
    /// Where the user allows it.
    #[serde(
        default,
        deserialize_with = "read::text",
        skip_serializing_if = "Option::is_none",
        alias = "authorization_url"
    )]
    pub authorization_url: Option<String>,
    /// Where tokens are given out.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none", alias = "token_url")]
    pub token_url: Option<String>,
    /// Where tokens are renewed.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none", alias = "refresh_url")]
    pub refresh_url: Option<String>,
    /// Each scope with what it allows.
    #[serde(default, deserialize_with = "read::or_default")]
    pub scopes: BTreeMap<String, String>,
    /// RFC 7636 is required.
    #[serde(
        default,
        deserialize_with = "read::or_default",
        skip_serializing_if = "read::is_false",
        alias = "pkce_required"
    )]
    pub pkce_required: bool,
}

read::object!(
    AgentCard,
    AgentInterface,
    AgentProvider,
    AgentCapabilities,
    AgentExtension,
    AgentSkill,
    AgentCardSignature,
    SecurityRequirement,
    StringList,
    ApiKeySecurityScheme,
    HttpAuthSecurityScheme,
    OAuth2SecurityScheme,
    OpenIdConnectSecurityScheme,
    MutualTlsSecurityScheme,
    OAuthFlow,
);
