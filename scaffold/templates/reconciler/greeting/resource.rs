//! Custom resource: its schema, its default and its CEL rule.

use kube::{CustomResource, KubeSchema};
use lockstep_sdk::shared_validation::ValidatedResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rules::rules;

/// Text that an HTTP API stores.
#[derive(CustomResource, KubeSchema, ValidatedResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "demo.example.com", version = "v1alpha1", kind = "Greeting")]
#[kube(plural = "greetings", namespaced, status = "GreetingStatus")]
#[validated(example = example, rules = rules)]
#[serde(rename_all = "camelCase")]
pub struct GreetingSpec {
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
pub struct GreetingStatus {
    /// Id with which the API stores the text.
    pub id: String,
    /// Text that the API stores.
    pub text: String,
}

fn example() -> Value {
    json!({"spec": {"text": "Hello, {user}!"}})
}
