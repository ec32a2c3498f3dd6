//! Schemas of the wire types, and the forms of endpoints that refer to them.

use serde_json::{Map, Value, json};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, JobId, LeaseId, TokenId, TrialId},
    tokens::ServerToken,
};
use std::collections::BTreeMap;
use utoipa::{
    ToSchema,
    openapi::{RefOr, schema::Schema},
};

/// Where the document has its schemas.
const SCHEMAS: &str = "#/components/schemas/";

/// A body of bytes, as they are.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is there for its schema")]
pub(crate) struct Bytes(Vec<u8>);

/// How the body of an upload is encoded, where it isn't sent as it is.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "it is there for its schema")]
pub(crate) enum ContentEncoding {
    /// Compressed by Zstandard.
    Zstd,
}

/// A type of parameters: described by name, or where it is.
pub(crate) trait Parameter: ToSchema {
    /// Whether the schema stands where the parameter is, since its type has no name of ours.
    const IS_INLINE: bool = false;
}

macro_rules! parameters {
    ($($name:ty),+; inline $($inline:ty),+) => {
        $( impl Parameter for $name {} )+
        $( impl Parameter for $inline { const IS_INLINE: bool = true; } )+
    };
}

parameters!(
    JobId, TrialId, HostId, LeaseId, TokenId, Digest, ServerToken, ContentEncoding;
    inline u32, u64, bool, String
);

/// The forms of an endpoint.
#[derive(Debug)]
pub(crate) struct Forms {
    pub(crate) parameters: Vec<Value>,
    pub(crate) body: Option<Value>,
    /// By status.
    pub(crate) answers: Vec<(u16, Value)>,
}

/// Schemas that endpoints refer to, by name.
#[derive(Default)]
pub struct Schemas(BTreeMap<String, RefOr<Schema>>);

impl Schemas {
    /// Refers to a type's schema.
    pub fn reference<T: ToSchema>(&mut self) -> Value {
        let name = T::name().into_owned();
        let mut others = Vec::new();
        T::schemas(&mut others);
        self.0.extend(others);
        let reference = format!("{SCHEMAS}{name}");
        self.0.insert(name, T::schema());
        json!({ "$ref": reference })
    }

    /// All of them.
    ///
    /// # Errors
    /// For a schema that can't be written as JSON.
    pub fn into_json(self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self.0)
    }

    pub(crate) fn parameter<T: Parameter>(
        &mut self,
        place: &str,
        name: &str,
        required: bool,
        about: &str,
    ) -> Value {
        let schema = if T::IS_INLINE { json!(T::schema()) } else { self.reference::<T>() };
        json!({ "name": name, "in": place, "required": required, "description": about, "schema": schema })
    }

    pub(crate) fn json_body<T: ToSchema>(&mut self) -> Value {
        let schema = self.reference::<T>();
        json!({ "required": true, "content": { "application/json": { "schema": schema } } })
    }

    pub(crate) fn bytes_body(&mut self, about: &str) -> Value {
        let content = self.content("application/octet-stream");
        json!({ "required": true, "description": about, "content": content })
    }

    pub(crate) fn json_answer<T: ToSchema>(&mut self, about: &str) -> Value {
        let schema = self.reference::<T>();
        json!({ "description": about, "content": { "application/json": { "schema": schema } } })
    }

    pub(crate) fn json_list<T: ToSchema>(&mut self, about: &str) -> Value {
        let schema = json!({ "type": "array", "items": self.reference::<T>() });
        json!({ "description": about, "content": { "application/json": { "schema": schema } } })
    }

    /// An answer that isn't one of our types; `header` with the sentence about it.
    pub(crate) fn other_answer(
        &mut self,
        about: &str,
        content: Option<&str>,
        header: Option<(&str, &str)>,
    ) -> Value {
        let mut answer = Map::from_iter([("description".to_owned(), json!(about))]);
        if let Some(kind) = content {
            answer.insert("content".to_owned(), self.content(kind));
        }
        if let Some((name, about)) = header {
            let header = json!({ "description": about, "schema": { "type": "string" } });
            answer.insert("headers".to_owned(), json!({ (name): header }));
        }
        answer.into()
    }

    fn content(&mut self, kind: &str) -> Value {
        let schema = match kind {
            "application/octet-stream" => self.reference::<Bytes>(),
            "application/json" => json!({ "type": "object" }),
            _ => json!({ "type": "string" }),
        };
        json!({ (kind): { "schema": schema } })
    }
}
