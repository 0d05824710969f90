//! Credentials of the master user: who makes the password, and where it is.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Credentials of the master user. The password is in a Secret that users create (`secretName`), in a Secret that the
/// controller creates (`generate`), or in AWS Secrets Manager (`managed`): exactly one of them must be set.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.secretName) || has(self.generate) || has(self.managed)")
        .message("is required, unless `generate` or `managed` is set [credentials-required]")
        .reason(Reason::FieldValueRequired)
        .field_path(".secretName"),
    validation = Rule::new("[has(self.secretName), has(self.generate), has(self.managed)].filter(is_set, is_set).size() <= 1")
        .message("must have only one of `secretName`, `generate` and `managed` [credentials-exclusive]"),
    validation = Rule::new("has(self.username) || !(has(self.generate) || has(self.managed))")
        .message("is required with `generate` and `managed` [username-required]")
        .reason(Reason::FieldValueRequired)
        .field_path(".username")
)]
pub struct Credentials {
    /// Master username. It takes precedence over the username in the Secret, and is required without `secretName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), regex(pattern = r"^[A-Za-z][A-Za-z0-9_]*$"))]
    pub username: Option<String>,

    /// Name of a Secret with the password, in the namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub secret_name: Option<String>,

    /// Keys of the username and the password in the Secret that `secretName` names.
    #[serde(default)]
    pub selectors: SecretSelectors,

    /// If set, the controller generates the password, and stores it in the Secret `NAME-master-user`, where NAME is the name of
    /// the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<GeneratedPassword>,

    /// If set, RDS generates the password, stores it in AWS Secrets Manager and rotates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedPassword>,
}

/// Password that the controller generates. It has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratedPassword {}

/// Password that RDS manages in AWS Secrets Manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedPassword {
    /// KMS key that encrypts the secret, by key ID, ARN, alias or alias ARN. Defaults to the key `aws/secretsmanager` of the
    /// account. RDS sets it when the secret is created, and does not change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048), regex(pattern = r"^[A-Za-z0-9:/_-]+$"))]
    pub kms_key: Option<String>,
}

/// Keys of the username and the password in a Secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretSelectors {
    /// Key of the username. It is read only if `spec.credentials.username` is not set.
    #[serde(default = "default_username_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub username: String,

    /// Key of the password.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub password: String,
}

impl Default for SecretSelectors {
    fn default() -> Self {
        Self {
            username: default_username_key(),
            password: default_password_key(),
        }
    }
}

fn default_username_key() -> String {
    "username".to_owned()
}

fn default_password_key() -> String {
    "password".to_owned()
}
