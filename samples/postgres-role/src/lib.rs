//! Sample operator: Postgres roles with generated passwords, over an HTTP API.

mod management_api;

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::{Client, CustomResource, KubeSchema, ResourceExt};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, OwnedType, Readiness, ReconcileError,
    ReconcileOutput, Reconciler, SyncRequest, require_existing,
};
use lockstep_shared_validation::{
    Diagnostics, Rule, RuleContext, Severity, ValidatedResource, field, fields,
};
use rand::distr::{Alphanumeric, SampleString};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use crate::management_api::{ManagementApi, Role, StoredRole};

/// Interval at which changes that were made outside the cluster are looked for.
const RESYNC: Duration = Duration::from_mins(10);

/// Postgres role.
#[derive(CustomResource, KubeSchema, ValidatedResource, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "postgres.example.com",
    version = "v1",
    kind = "PostgresRole",
    namespaced
)]
#[kube(plural = "postgresroles", status = "PostgresRoleStatus")]
#[validated(example = example, rules = rules)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.roleName == oldSelf.roleName")
    .message("the name of a role cannot change [immutable-name]"))]
pub struct PostgresRoleSpec {
    /// Name of the role.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z_][a-z0-9_]*$"))]
    pub role_name: String,
    /// If true, the role can log in.
    #[serde(default)]
    pub login: bool,
    /// Maximum number of connections.
    #[serde(default = "ten")]
    #[schemars(range(max = 1_000))]
    pub connection_limit: u32,
}

/// State of the role.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresRoleStatus {
    /// Name of the Secret with the password.
    pub secret_name: Option<String>,
}

fn ten() -> u32 {
    10
}

fn example() -> Value {
    json!({"spec": {"roleName": "app", "login": true}})
}

fn rules() -> Vec<Rule<PostgresRole>> {
    vec![Rule {
        id: "reserved-name",
        description: "The name of a role must not begin with `pg_`, which Postgres reserves.",
        severity: Severity::Error,
        reference: "https://www.postgresql.org/docs/current/predefined-roles.html",
        fields: fields!(PostgresRole, "spec.roleName"),
        validate: is_not_reserved,
    }]
}

fn is_not_reserved(context: &RuleContext<'_, PostgresRole>, diagnostics: &mut Diagnostics) {
    let name = &context.object.spec.role_name;
    if name.starts_with("pg_") {
        diagnostics.invalid(
            field!(PostgresRole, "spec.roleName"),
            name.clone(),
            "must not begin with `pg_`",
        );
    }
}

/// Operator of roles.
pub struct PostgresRoles {
    /// API that manages the server.
    pub api: ManagementApi,
    /// Client for the API server.
    pub client: Client,
    /// Time until which this process is the leader.
    pub leadership: Leadership,
}

/// Password in a Secret.
struct Password {
    secret_uid: String,
    value: String,
}

/// Returns the name of the Secret of an object.
pub fn secret_name(object: &str) -> String {
    format!("{object}-password")
}

/// Returns the Secret of an object. It is immutable: a new password is a new Secret.
fn secret(object: &str, password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "immutable": true,
        "metadata": {"name": secret_name(object)},
        "data": {"password": ByteString(password.as_bytes().to_vec())},
    })
}

/// Returns the role that an object wants.
pub fn desired(object: &PostgresRole, password_id: &str) -> Role {
    Role {
        name: object.spec.role_name.clone(),
        owner: object.uid().unwrap_or_default(),
        login: object.spec.login,
        connection_limit: object.spec.connection_limit,
        password_id: password_id.to_owned(),
    }
}

impl PostgresRoles {
    /// Returns the password of an object. It is read from the API server: one that exists must not be replaced because no
    /// watch has delivered it yet.
    async fn password(&self, object: &PostgresRole) -> Result<Option<Password>, ReconcileError> {
        let namespace = object.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let found = secrets.get_opt(&secret_name(&object.name_any())).await;
        let found = found.map_err(|error| {
            ReconcileError::transient(
                "SecretUnreadable",
                format!("the Secret cannot be read: {error}"),
            )
        })?;
        let is_own = |secret: &Secret| {
            let mut owners = secret.owner_references().iter();
            owners.any(|owner| Some(&owner.uid) == object.metadata.uid.as_ref())
        };
        Ok(found.filter(is_own).and_then(|secret| {
            let secret_uid = secret.uid()?;
            let value = String::from_utf8(secret.data?.remove("password")?.0).ok()?;
            Some(Password { secret_uid, value })
        }))
    }

    /// Brings the role of an object to the desired state.
    async fn bring(
        &self,
        object: &PostgresRole,
        password: &Password,
    ) -> Result<(), ReconcileError> {
        let wanted = desired(object, &password.secret_uid);
        let stored = self.api.get(&wanted.name).await?;
        match &stored {
            Some(stored) if stored.role == wanted => return Ok(()),
            Some(stored) if stored.role.owner != wanted.owner => {
                let message = format!(
                    "the role {} belongs to another owner: delete it, or choose another name",
                    wanted.name
                );
                let error = ReconcileError::permanent("NameTaken", message);
                // Its owner may delete it there, which no watch reports.
                return Err(error.requeue_after(RESYNC));
            }
            Some(_) => {}
            None => require_existing(&self.client, object).await?,
        }
        self.leadership.require(self.api.timeout())?;
        self.api
            .put(&wanted, &password.value, stored.as_ref())
            .await
    }
}

#[async_trait]
impl Reconciler for PostgresRoles {
    type Kind = PostgresRole;

    fn finalizer(&self) -> Option<&'static str> {
        Some("postgres.example.com/role")
    }

    fn owns(&self) -> Vec<OwnedType> {
        vec![OwnedType::namespaced::<Secret>()]
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, PostgresRole>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let object = request.parent();
        let name = object.name_any();
        let mut status = Map::new();
        status.insert("secretName".to_owned(), secret_name(&name).into());
        // A password is stored before the server gets it, so that it is never lost.
        let Some(password) = self.password(object).await? else {
            let generated = Alphanumeric.sample_string(&mut rand::rng(), 32);
            return Ok(ReconcileOutput {
                status,
                children: vec![secret(&name, &generated)],
                reads_children: true,
                readiness: Some(Readiness {
                    ready: false,
                    reason: "PasswordGenerated",
                    message: "the role gets the password of its new Secret".to_owned(),
                }),
                ..ReconcileOutput::default()
            });
        };
        self.bring(object, &password).await?;
        Ok(ReconcileOutput {
            status,
            children: vec![secret(&name, &password.value)],
            requeue_after: RESYNC,
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let text = |pointer| {
            deleted
                .object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let stored = self.api.get(text("/spec/roleName")).await?;
        if let Some(stored) = stored.filter(|it| it.role.owner == text("/metadata/uid")) {
            self.leadership.require(self.api.timeout())?;
            self.api.delete(&stored).await?;
        }
        Ok(FinalizeOutcome::Done)
    }
}
