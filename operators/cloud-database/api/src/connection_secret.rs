//! Secret for applications.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Secret for applications.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.name) || !self.name.endsWith('-master-user')")
    .message("must not end with '-master-user', as the Secrets with generated passwords do [connection-secret-reserved]")
    .field_path(".name"))]
pub struct ConnectionSecret {
    /// Name of the Secret, in the namespace of the object. Defaults to `NAME-connection`, where NAME is the name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: Option<String>,
}
