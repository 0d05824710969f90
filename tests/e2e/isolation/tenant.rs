//! Users of one namespace.

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use lockstep_envtest::{Installation, eventually};
use serde_json::Value;

use crate::env::TestEnv;
use crate::isolation::readable::{Access, Subject};
use crate::isolation::{FOR_TENANTS, FOREIGN, attempts};

/// User with a built-in role in one namespace, which has the name of the user.
pub struct Tenant {
    pub name: &'static str,
    pub role: &'static str,
    /// Kind for administrators that the user may create, too.
    pub additional_kind: Option<&'static str>,
}

impl Tenant {
    pub fn subject(&self) -> Subject {
        Subject {
            user: self.name.to_owned(),
            groups: vec!["system:authenticated".to_owned()],
        }
    }

    fn may_create(&self, kind: &str) -> bool {
        FOR_TENANTS.contains(&kind) || self.additional_kind == Some(kind)
    }

    /// Creates the namespace with the bindings of the user, and waits for the aggregation of the built-in roles. The controller
    /// may read and write the Secrets of the namespace.
    pub async fn is_admitted(&self, env: &TestEnv) {
        let (user, namespace) = (format!("--user={}", self.name), self.name);
        let kubectl = |arguments: &[&str]| {
            let done = env.kubectl(arguments);
            done.unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        };
        kubectl(&["create", "namespace", namespace]);
        let role = format!("--clusterrole={}", self.role);
        kubectl(&[
            "create",
            "rolebinding",
            "user",
            &role,
            &user,
            "-n",
            namespace,
        ]);
        if let Some(kind) = self.additional_kind {
            let resource = format!(
                "--resource={}s.observability.kaasops.io",
                kind.to_lowercase()
            );
            kubectl(&[
                "create",
                "role",
                "more",
                "--verb=create",
                &resource,
                "-n",
                namespace,
            ]);
            kubectl(&[
                "create",
                "rolebinding",
                "more",
                "--role=more",
                &user,
                "-n",
                namespace,
            ]);
        }
        let allowed = Installation::allow_secrets(&env.cluster, namespace).await;
        allowed.expect("a RoleBinding");
        let secret = [
            "create",
            "secret",
            "generic",
            crate::env::SECRET,
            "-n",
            namespace,
        ];
        let values = [
            "--from-literal=username=app",
            "--from-literal=password=battery-staple",
        ];
        kubectl(&[&secret[..], &values].concat());
        let aggregated = eventually("the aggregation of the role", async || {
            let question = [
                "auth",
                "can-i",
                "create",
                "clouddatabases",
                "-n",
                namespace,
                "--as",
                self.name,
            ];
            env.kubectl(&question).ok()
        });
        aggregated.await.expect("the role is aggregated");
    }

    /// Asserts that the user cannot take the rights on the kinds for administrators.
    pub fn cannot_become_administrator(&self, env: &TestEnv) {
        let (user, tenant) = (
            format!("--user={}", self.name),
            ["-n", self.name, "--as", self.name],
        );
        let bind = [
            "create",
            "rolebinding",
            "more",
            "--clusterrole=lockstep-administrator",
            &user,
        ];
        let bound = env.kubectl(&[&bind[..], &tenant].concat());
        let error = bound.expect_err("the user has no rights to grant");
        assert!(
            error.contains("attempting to grant RBAC permissions not currently held"),
            "{error}"
        );
    }

    /// Creates objects of a kind as the user, and returns those that were created. The user may create a plain object of a kind
    /// for tenants, and none of a kind for administrators.
    pub fn attempts(&self, env: &TestEnv, kind: &str) -> Vec<Value> {
        let mut created = Vec::new();
        for (number, object) in attempts(kind, self.name).into_iter().enumerate() {
            let file = env.cluster.directory().join("attempt.json");
            std::fs::write(&file, object.to_string()).expect("a file");
            let done = env.kubectl(&["create", "--as", self.name, "-f", &file.to_string_lossy()]);
            let is_forbidden = done
                .as_ref()
                .is_err_and(|error| error.contains("Forbidden"));
            assert_eq!(
                is_forbidden,
                !self.may_create(kind),
                "{}: {object}: {done:?}",
                self.name
            );
            // Others may be denied by a rule.
            assert!(
                number > 0 || is_forbidden || done.is_ok(),
                "{object}: {done:?}"
            );
            if done.is_ok() {
                created.push(object);
            }
        }
        created
    }

    /// Returns the rights that the service accounts of the namespace have outside of it. The user gets tokens of them.
    pub async fn service_account_rights(&self, env: &TestEnv, access: &Access) -> Vec<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(env.cluster.client(), self.name);
        let accounts = accounts.list(&ListParams::default()).await.expect("a list");
        let nothing = access.of_subject(&self.service_account("none")).await;
        let mut rights = Vec::new();
        for account in accounts.items.iter().map(ResourceExt::name_any) {
            let of_account = access.of_subject(&self.service_account(&account)).await;
            rights.extend(of_account.difference(&nothing).cloned());
            let read = ["get", "pods", "-n", FOREIGN, "--output=name"];
            if let Ok(pods) = self.with_token(env, &account, &read) {
                rights.push(format!("the token of {}/{account} lists {pods}", self.name));
            }
        }
        rights
    }

    fn service_account(&self, name: &str) -> Subject {
        let namespace = self.name;
        Subject {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }

    /// Runs kubectl with a token of a service account, which the user requests.
    fn with_token(
        &self,
        env: &TestEnv,
        account: &str,
        arguments: &[&str],
    ) -> Result<String, String> {
        let request = [
            "create", "token", account, "-n", self.name, "--as", self.name,
        ];
        let token = env.kubectl(&request).expect("the user gets a token");
        let token = format!("--token={}", token.trim());
        let server = format!("--server={}", env.cluster.server());
        let connection = [
            "--kubeconfig=/dev/null",
            &server,
            "--insecure-skip-tls-verify",
            &token,
        ];
        env.kubectl(&[&connection[..], arguments].concat())
    }
}
