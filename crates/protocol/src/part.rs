//! `Part`, the smallest container of content (specification 4.1.6): exactly one of text, raw bytes, a URL or data.

use std::sync::Arc;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{alphabet, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::{Json, Object};
use crate::media;
use crate::read::{self, Text};

/// One piece of content with what is said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The content itself.
    pub content: Content,
    /// A key and value object about this part.
    pub metadata: Option<Object>,
    /// The file's name, such as `refunds.diff`.
    pub filename: Option<Arc<str>>,
    /// The media type of the content. [`Part::media_type`] gives the one to assume when it is absent.
    pub media_type: Option<Arc<str>>,
}

/// The content of a part: the oneof of the proto.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(Arc<str>),
    /// The bytes of a file. JSON carries them as base64.
    Raw(Bytes),
    /// Where the file's content can be fetched.
    Url(Arc<str>),
    /// Any JSON value, `null` included.
    Data(Json),
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Content::Text(text.into()).into()
    }

    /// A data part, written as `application/json`.
    pub fn data(data: Json) -> Self {
        Self { media_type: Some(media::JSON.into()), ..Content::Data(data).into() }
    }

    /// A part that holds the bytes of a file.
    pub fn raw(bytes: impl Into<Bytes>, filename: impl Into<Arc<str>>, media_type: impl Into<Arc<str>>) -> Self {
        let content: Self = Content::Raw(bytes.into()).into();
        Self { filename: Some(filename.into()), media_type: Some(media_type.into()), ..content }
    }

    /// The text, when this is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The stated media type, or the one that its kind of content has by default.
    pub fn media_type(&self) -> &str {
        match (&self.media_type, &self.content) {
            (Some(stated), _) => stated,
            (None, Content::Text(_)) => media::TEXT,
            (None, Content::Data(_)) => media::JSON,
            (None, Content::Raw(_) | Content::Url(_)) => media::BYTES,
        }
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, metadata: None, filename: None, media_type: None }
    }
}

/// Reads base64 in the standard or the URL-safe alphabet, padded or not.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    const ANY: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY);
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// The members as they stand on the wire. `#[serde(flatten)]` on an enum would let two kinds of content pass.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    text: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    raw: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    url: Option<Text<'a>>,
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    data: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Object>,
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    filename: Option<Arc<str>>,
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none", alias = "media_type")]
    media_type: Option<Arc<str>>,
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(read::ObjectOnly(deserializer))?;
        let content = match (wire.text, wire.raw, wire.url, wire.data) {
            (Some(text), None, None, None) => Content::Text(text.0.into()),
            (None, Some(raw), None, None) => {
                let bytes = base64(&raw.0).ok_or_else(|| de::Error::custom("raw must be base64"))?;
                Content::Raw(bytes.into())
            }
            (None, None, Some(url), None) => Content::Url(url.0.into()),
            (None, None, None, Some(data)) => Content::Data(data),
            _ => return Err(de::Error::custom("exactly one of text, raw, url and data must be there")),
        };
        Ok(Self { content, metadata: wire.metadata, filename: wire.filename, media_type: wire.media_type })
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut text, mut raw, mut url, mut data) = (None, None, None, None);
        match &self.content {
            Content::Text(content) => text = Some(Text((&**content).into())),
            Content::Raw(bytes) => raw = Some(Text(BASE64_STANDARD.encode(bytes).into())),
            Content::Url(content) => url = Some(Text((&**content).into())),
            Content::Data(json) => data = Some(json.clone()),
        }
        let wire = Wire {
            text,
            raw,
            url,
            data,
            metadata: self.metadata.clone(),
            filename: self.filename.clone(),
            media_type: self.media_type.clone(),
        };
        wire.serialize(serializer)
    }
}
