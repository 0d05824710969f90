//! Custom resource: its schema, its default and its CEL rule.

use kube::{CustomResource, KubeSchema};
use lockstep_sdk::shared_validation::ValidatedResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rules::rules;

/// Text that is stored in a `ConfigMap`.
#[derive(CustomResource, KubeSchema, ValidatedResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "notes.example.com", version = "v1alpha1", kind = "Note")]
#[kube(plural = "notes", namespaced, status = "NoteStatus")]
#[validated(example = example, rules = rules)]
#[serde(rename_all = "camelCase")]
pub struct NoteSpec {
    /// Text, in which a name in braces is a placeholder: `Hello, {user}!`.
    #[schemars(length(min = 1, max = 280))]
    #[x_kube(validation = Rule::new("!self.contains('\\n')").message("must be one line [single-line]"))]
    pub text: String,
    /// Language of the text, such as `en` or `de`.
    #[serde(default = "default_language")]
    #[schemars(regex(pattern = "^[a-z]{2}$"))]
    pub language: String,
}

fn default_language() -> String {
    "en".to_owned()
}

/// Observed state of the object.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoteStatus {
    /// Name of the `ConfigMap` with the text.
    pub config_map: String,
}

fn example() -> Value {
    json!({"spec": {"text": "Hello, {user}!"}})
}
