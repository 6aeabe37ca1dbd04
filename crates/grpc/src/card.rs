//! The card.

use protocol::AgentCard;
use protocol::card::{
    AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    ApiKeySecurityScheme, HttpAuthSecurityScheme, MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlow, OAuthFlows,
    OpenIdConnectSecurityScheme, SecurityRequirement, SecurityScheme, StringList,
};

use crate::data;
use crate::read::{At, Reading, optional, written};
use crate::wire::{self, o_auth_flows::Flow, security_scheme::Scheme};

impl Reading<'_> {
    pub(crate) fn card(&mut self, at: At<'_>, card: &wire::AgentCard) -> Option<AgentCard> {
        let capabilities = card.capabilities.as_ref();
        let capabilities = capabilities.map(|it| self.capabilities(at.field("capabilities"), it));
        let schemes = card.security_schemes.iter();
        let schemes =
            schemes.map(|(name, scheme)| Some((name.clone(), self.scheme(at.field("securitySchemes"), scheme)?)));
        let schemes = schemes.collect::<Option<_>>();
        let signatures = card.signatures.iter().enumerate();
        let signatures = signatures.map(|(place, it)| {
            let header = self.object(at.entry("signatures", place).field("header"), it.header.as_ref())?;
            Some(AgentCardSignature { protected: it.protected.clone(), signature: it.signature.clone(), header })
        });
        let signatures = signatures.collect::<Option<_>>();
        Some(AgentCard {
            name: card.name.clone(),
            description: card.description.clone(),
            supported_interfaces: card.supported_interfaces.iter().map(Into::into).collect(),
            provider: card.provider.as_ref().map(|provider| AgentProvider {
                url: provider.url.clone(),
                organization: provider.organization.clone(),
            }),
            version: card.version.clone(),
            documentation_url: card.documentation_url.as_deref().and_then(optional),
            capabilities: capabilities.unwrap_or_else(|| Some(AgentCapabilities::default()))?,
            security_schemes: schemes?,
            security_requirements: card.security_requirements.iter().map(Into::into).collect(),
            default_input_modes: card.default_input_modes.clone(),
            default_output_modes: card.default_output_modes.clone(),
            skills: card.skills.iter().map(Into::into).collect(),
            signatures: signatures?,
            icon_url: card.icon_url.as_deref().and_then(optional),
        })
    }

    fn capabilities(&mut self, at: At<'_>, capabilities: &wire::AgentCapabilities) -> Option<AgentCapabilities> {
        let extensions = capabilities.extensions.iter().enumerate();
        let extensions = extensions.map(|(place, extension)| {
            Some(AgentExtension {
                uri: extension.uri.clone(),
                description: optional(&extension.description),
                required: extension.required,
                params: self.object(at.entry("extensions", place).field("params"), extension.params.as_ref())?,
            })
        });
        Some(AgentCapabilities {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extensions: extensions.collect::<Option<_>>()?,
            extended_agent_card: capabilities.extended_agent_card,
        })
    }

    /// A scheme that the proto does not know is there without a word about it.
    fn scheme(&mut self, at: At<'_>, scheme: &wire::SecurityScheme) -> Option<SecurityScheme> {
        Some(match &scheme.scheme {
            Some(Scheme::ApiKeySecurityScheme(it)) => SecurityScheme::ApiKey(ApiKeySecurityScheme {
                description: optional(&it.description),
                location: it.location.clone(),
                name: it.name.clone(),
            }),
            Some(Scheme::HttpAuthSecurityScheme(it)) => SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
                description: optional(&it.description),
                scheme: it.scheme.clone(),
                bearer_format: optional(&it.bearer_format),
            }),
            Some(Scheme::Oauth2SecurityScheme(it)) => {
                let flow = it.flows.as_ref().and_then(|flows| flows.flow.as_ref());
                SecurityScheme::OAuth2(OAuth2SecurityScheme {
                    description: optional(&it.description),
                    flows: self.there(at.field("flows"), flow)?.into(),
                    oauth2_metadata_url: optional(&it.oauth2_metadata_url),
                })
            }
            Some(Scheme::OpenIdConnectSecurityScheme(it)) => {
                SecurityScheme::OpenIdConnect(OpenIdConnectSecurityScheme {
                    description: optional(&it.description),
                    open_id_connect_url: it.open_id_connect_url.clone(),
                })
            }
            Some(Scheme::MtlsSecurityScheme(it)) => {
                SecurityScheme::MutualTls(MutualTlsSecurityScheme { description: optional(&it.description) })
            }
            None => SecurityScheme::Other(self.object(at, Some(&prost_types::Struct::default()))??),
        })
    }
}

impl From<&wire::AgentInterface> for AgentInterface {
    fn from(interface: &wire::AgentInterface) -> Self {
        Self {
            url: interface.url.clone(),
            protocol_binding: interface.protocol_binding.clone(),
            tenant: optional(&interface.tenant),
            protocol_version: interface.protocol_version.clone(),
        }
    }
}

impl From<&wire::AgentSkill> for AgentSkill {
    fn from(skill: &wire::AgentSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            tags: skill.tags.clone(),
            examples: skill.examples.clone(),
            input_modes: skill.input_modes.clone(),
            output_modes: skill.output_modes.clone(),
            security_requirements: skill.security_requirements.iter().map(Into::into).collect(),
        }
    }
}

impl From<&wire::SecurityRequirement> for SecurityRequirement {
    fn from(requirement: &wire::SecurityRequirement) -> Self {
        let schemes = requirement.schemes.iter();
        Self { schemes: schemes.map(|(name, it)| (name.clone(), StringList { list: it.list.clone() })).collect() }
    }
}

/// Each flow has the fields that it needs.
impl From<&Flow> for OAuthFlows {
    #[allow(deprecated, reason = "two flows that OAuth 2.1 does not have any more")]
    fn from(flow: &Flow) -> Self {
        let none = || OAuthFlow {
            device_authorization_url: None,
            authorization_url: None,
            token_url: None,
            refresh_url: None,
            scopes: Default::default(),
            pkce_required: false,
        };
        match flow {
            Flow::AuthorizationCode(it) => Self::AuthorizationCode(OAuthFlow {
                authorization_url: optional(&it.authorization_url),
                token_url: optional(&it.token_url),
                refresh_url: optional(&it.refresh_url),
                scopes: it.scopes.clone(),
                pkce_required: it.pkce_required,
                ..none()
            }),
            Flow::ClientCredentials(it) => Self::ClientCredentials(OAuthFlow {
                token_url: optional(&it.token_url),
                refresh_url: optional(&it.refresh_url),
                scopes: it.scopes.clone(),
                ..none()
            }),
            Flow::Implicit(it) => Self::Implicit(OAuthFlow {
                authorization_url: optional(&it.authorization_url),
                refresh_url: optional(&it.refresh_url),
                scopes: it.scopes.clone(),
                ..none()
            }),
            Flow::Password(it) => Self::Password(OAuthFlow {
                token_url: optional(&it.token_url),
                refresh_url: optional(&it.refresh_url),
                scopes: it.scopes.clone(),
                ..none()
            }),
            Flow::DeviceCode(it) => Self::DeviceCode(OAuthFlow {
                device_authorization_url: optional(&it.device_authorization_url),
                token_url: optional(&it.token_url),
                refresh_url: optional(&it.refresh_url),
                scopes: it.scopes.clone(),
                ..none()
            }),
        }
    }
}

impl From<&AgentCard> for wire::AgentCard {
    fn from(card: &AgentCard) -> Self {
        let schemes = card.security_schemes.iter();
        Self {
            name: card.name.clone(),
            description: card.description.clone(),
            supported_interfaces: card.supported_interfaces.iter().map(Into::into).collect(),
            provider: card.provider.as_ref().map(|provider| wire::AgentProvider {
                url: provider.url.clone(),
                organization: provider.organization.clone(),
            }),
            version: card.version.clone(),
            documentation_url: card.documentation_url.clone(),
            capabilities: Some((&card.capabilities).into()),
            security_schemes: schemes.map(|(name, scheme)| (name.clone(), scheme.into())).collect(),
            security_requirements: card.security_requirements.iter().map(Into::into).collect(),
            default_input_modes: card.default_input_modes.clone(),
            default_output_modes: card.default_output_modes.clone(),
            skills: card.skills.iter().map(Into::into).collect(),
            signatures: card.signatures.iter().map(Into::into).collect(),
            icon_url: card.icon_url.clone(),
        }
    }
}

impl From<&AgentInterface> for wire::AgentInterface {
    fn from(interface: &AgentInterface) -> Self {
        Self {
            url: interface.url.clone(),
            protocol_binding: interface.protocol_binding.clone(),
            tenant: written(interface.tenant.as_ref()),
            protocol_version: interface.protocol_version.clone(),
        }
    }
}

impl From<&AgentCapabilities> for wire::AgentCapabilities {
    fn from(capabilities: &AgentCapabilities) -> Self {
        let extensions = capabilities.extensions.iter();
        Self {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extensions: extensions
                .map(|extension| wire::AgentExtension {
                    uri: extension.uri.clone(),
                    description: written(extension.description.as_ref()),
                    required: extension.required,
                    params: data::fields(&extension.params),
                })
                .collect(),
            extended_agent_card: capabilities.extended_agent_card,
        }
    }
}

impl From<&AgentSkill> for wire::AgentSkill {
    fn from(skill: &AgentSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            tags: skill.tags.clone(),
            examples: skill.examples.clone(),
            input_modes: skill.input_modes.clone(),
            output_modes: skill.output_modes.clone(),
            security_requirements: skill.security_requirements.iter().map(Into::into).collect(),
        }
    }
}

impl From<&AgentCardSignature> for wire::AgentCardSignature {
    fn from(signature: &AgentCardSignature) -> Self {
        Self {
            protected: signature.protected.clone(),
            signature: signature.signature.clone(),
            header: data::fields(&signature.header),
        }
    }
}

impl From<&SecurityRequirement> for wire::SecurityRequirement {
    fn from(requirement: &SecurityRequirement) -> Self {
        let schemes = requirement.schemes.iter();
        Self { schemes: schemes.map(|(name, it)| (name.clone(), wire::StringList { list: it.list.clone() })).collect() }
    }
}

impl From<&SecurityScheme> for wire::SecurityScheme {
    fn from(scheme: &SecurityScheme) -> Self {
        let scheme = match scheme {
            SecurityScheme::ApiKey(it) => Some(Scheme::ApiKeySecurityScheme(wire::ApiKeySecurityScheme {
                description: written(it.description.as_ref()),
                location: it.location.clone(),
                name: it.name.clone(),
            })),
            SecurityScheme::HttpAuth(it) => Some(Scheme::HttpAuthSecurityScheme(wire::HttpAuthSecurityScheme {
                description: written(it.description.as_ref()),
                scheme: it.scheme.clone(),
                bearer_format: written(it.bearer_format.as_ref()),
            })),
            SecurityScheme::OAuth2(it) => Some(Scheme::Oauth2SecurityScheme(wire::OAuth2SecurityScheme {
                description: written(it.description.as_ref()),
                flows: Some(wire::OAuthFlows { flow: Some((&it.flows).into()) }),
                oauth2_metadata_url: written(it.oauth2_metadata_url.as_ref()),
            })),
            SecurityScheme::OpenIdConnect(it) => {
                Some(Scheme::OpenIdConnectSecurityScheme(wire::OpenIdConnectSecurityScheme {
                    description: written(it.description.as_ref()),
                    open_id_connect_url: it.open_id_connect_url.clone(),
                }))
            }
            SecurityScheme::MutualTls(it) => Some(Scheme::MtlsSecurityScheme(wire::MutualTlsSecurityScheme {
                description: written(it.description.as_ref()),
            })),
            SecurityScheme::Other(_) => None,
        };
        Self { scheme }
    }
}

impl From<&OAuthFlows> for Flow {
    #[allow(deprecated, reason = "two flows that OAuth 2.1 does not have any more")]
    fn from(flows: &OAuthFlows) -> Self {
        let text = |text: &Option<String>| written(text.as_ref());
        match flows {
            OAuthFlows::AuthorizationCode(it) => Self::AuthorizationCode(wire::AuthorizationCodeOAuthFlow {
                authorization_url: text(&it.authorization_url),
                token_url: text(&it.token_url),
                refresh_url: text(&it.refresh_url),
                scopes: it.scopes.clone(),
                pkce_required: it.pkce_required,
            }),
            OAuthFlows::ClientCredentials(it) => Self::ClientCredentials(wire::ClientCredentialsOAuthFlow {
                token_url: text(&it.token_url),
                refresh_url: text(&it.refresh_url),
                scopes: it.scopes.clone(),
            }),
            OAuthFlows::Implicit(it) => Self::Implicit(wire::ImplicitOAuthFlow {
                authorization_url: text(&it.authorization_url),
                refresh_url: text(&it.refresh_url),
                scopes: it.scopes.clone(),
            }),
            OAuthFlows::Password(it) => Self::Password(wire::PasswordOAuthFlow {
                token_url: text(&it.token_url),
                refresh_url: text(&it.refresh_url),
                scopes: it.scopes.clone(),
            }),
            OAuthFlows::DeviceCode(it) => Self::DeviceCode(wire::DeviceCodeOAuthFlow {
                device_authorization_url: text(&it.device_authorization_url),
                token_url: text(&it.token_url),
                refresh_url: text(&it.refresh_url),
                scopes: it.scopes.clone(),
            }),
        }
    }
}
