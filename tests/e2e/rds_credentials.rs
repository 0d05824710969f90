//! Ways to the password of the master user, and the Secret for applications, on a simulator of RDS.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::Api;
use lockstep_envtest::{eventually, stays};
use rds_simulator::{Outcome, Simulator};
use serde_json::{Value, json};

use crate::env::{EnvOptions, NAMESPACE, TestEnv, database};

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden call.
const WHILE: Duration = Duration::from_secs(2);

/// Status of an instance while RDS sets a password.
const RESETTING: &str = "resetting-master-credentials";

/// Certificates that the controller is given for applications.
const CA_BUNDLE: &str = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";

/// Database with a Secret for applications.
struct App<'a> {
    env: &'a TestEnv,
    rds: &'a Simulator,
    name: &'static str,
    id: String,
}

impl<'a> App<'a> {
    async fn create(env: &'a TestEnv, rds: &'a Simulator, name: &'static str, spec: Value) -> Self {
        let mut object = database(name);
        for (field, value) in spec.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        env.kubectl_apply(&object)
            .unwrap_or_else(|error| env.fail(&error));
        Self::of(env, rds, name).await
    }

    /// Returns a database that exists.
    async fn of(env: &'a TestEnv, rds: &'a Simulator, name: &'static str) -> Self {
        let stored = env.databases().get(name).await.expect("the object");
        let uid = stored.metadata.uid.expect("a UID");
        Self {
            env,
            rds,
            name,
            id: format!("cdb-{uid}"),
        }
    }

    fn kubectl(&self, args: &[&str]) {
        self.env
            .kubectl(args)
            .unwrap_or_else(|error| self.env.fail(&error));
    }

    fn patch(&self, spec: &Value) {
        let patch = json!({"spec": spec}).to_string();
        let target = format!("cdb/{}", self.name);
        self.kubectl(&["patch", &target, "--type=merge", "--patch", &patch]);
    }

    async fn is_synced(&self) {
        self.env.condition(self.name, "Ready", "True").await;
        self.env.condition(self.name, "Synced", "True").await;
    }

    async fn status(&self) -> Value {
        let object = self.env.databases().get(self.name).await;
        object.expect("the object").data["status"].clone()
    }

    fn password(&self) -> String {
        self.rds.password(&self.id).expect("a password")
    }

    fn connection(&self) -> String {
        format!("{}-connection", self.name)
    }

    /// Waits until the Secret for applications has this password, which it must not have before the instance.
    async fn publishes(&self, password: &str) {
        let published = eventually("the password in the Secret", async || {
            let values = values(self.env, &self.connection()).await?;
            let is_published = values.get("password")? == password;
            let has = self.password();
            assert!(!is_published || has == password, "the instance has {has}");
            is_published.then_some(())
        });
        published
            .await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()));
    }

    /// Returns the modifications of the password that RDS has accepted.
    fn modifications(&self) -> Vec<Value> {
        let calls = self.rds.calls("ModifyDBInstance").into_iter();
        let of_password = |parameters: &Value| {
            ["MasterUserPassword", "ManageMasterUserPassword"]
                .iter()
                .any(|name| !parameters[*name].is_null())
        };
        calls
            .filter(|it| it.parameters["DBInstanceIdentifier"] == self.id.as_str())
            .filter(|it| it.outcome == Outcome::Succeeded && of_password(&it.parameters))
            .map(|it| it.parameters)
            .collect()
    }
}

fn secrets(env: &TestEnv) -> Api<Secret> {
    Api::namespaced(env.cluster.client(), NAMESPACE)
}

/// Returns the values of a Secret, if it exists.
async fn values(env: &TestEnv, name: &str) -> Option<BTreeMap<String, String>> {
    let secret = secrets(env).get_opt(name).await.expect("a response")?;
    let values = secret.data.unwrap_or_default().into_iter();
    let text = |value: Vec<u8>| String::from_utf8(value).expect("text");
    Some(values.map(|(key, value)| (key, text(value.0))).collect())
}

async fn gone(env: &TestEnv, name: &str) {
    let gone = eventually("the deletion of the Secret", async || {
        values(env, name).await.is_none().then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

fn set_password(env: &TestEnv, secret: &str, password: &str) {
    let patch = json!({"stringData": {"password": password}}).to_string();
    let target = format!("secret/{secret}");
    env.kubectl(&["patch", &target, "--patch", &patch])
        .unwrap_or_else(|error| env.fail(&error));
}

/// Sets if a state of instances lasts for a time longer than the test.
fn lasts(rds: &Simulator, state: &str, is_long: bool) {
    rds.set_timing(|timing| {
        if is_long {
            timing
                .states
                .insert(state.to_owned(), Duration::from_hours(1));
        } else {
            timing.states.remove(state);
        }
    });
}

/// Returns the values of the Secret for applications with a password, which is also given as a part of a URI.
fn expected(orders: &App<'_>, password: &str, encoded: &str) -> Option<BTreeMap<String, String>> {
    let instance = orders.rds.instance(&orders.id)?;
    let endpoint = &instance["Endpoint"];
    let host = endpoint["Address"].as_str()?;
    let port = endpoint["Port"].to_string();
    let uri = format!("postgresql://app:{encoded}@{host}:{port}/shop?sslmode=require");
    let values = [
        ("ca.crt", CA_BUNDLE),
        ("database", "shop"),
        ("engine", "postgres"),
        ("host", host),
        ("password", password),
        ("port", &port),
        ("uri", &uri),
        ("username", "app"),
    ];
    let values = values.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Some(BTreeMap::from(values))
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_connect_with_a_secret_whatever_the_way_to_the_password_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let ca_bundle = folder.path().join("ca.pem");
    std::fs::write(&ca_bundle, CA_BUNDLE).expect("a file");
    let options = EnvOptions {
        controller_args: vec![format!("--rds-ca-bundle={}", ca_bundle.display())],
        ..EnvOptions::default()
    };
    let (mut env, rds) = TestEnv::start_on_simulator_with(options).await;
    the_secret_follows_the_instance(&env, &rds).await;
    a_password_is_published_when_the_instance_has_it(&env, &rds).await;
    a_secret_that_is_not_asked_for_is_deleted(&env, &rds).await;
    a_secret_of_another_owner_is_left_alone(&env, &rds).await;
    let used = a_generated_password_stays_and_can_be_replaced(&mut env, &rds).await;
    rds_can_take_over_the_password_and_give_it_back(&env, &rds).await;

    // Nothing secret is anywhere but in Secrets.
    let shown = env.kubectl(&["get", "clouddatabases,events", "-o", "json"]);
    let shown = shown.expect("the objects") + &env.installation.output();
    let known = ["correct-horse", "battery-staple", "a:b?c", "a%3Ab%3Fc"];
    for secret in known.into_iter().chain(used.iter().map(String::as_str)) {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

/// The Secret has the endpoint as soon as it is known, drift is repaired, and a password arrives when the instance has it.
async fn the_secret_follows_the_instance(env: &TestEnv, rds: &Simulator) {
    env.make_secret("orders-db", &json!({"password": "correct-horse"}))
        .await;
    lasts(rds, "creating", true);
    let spec = json!({
        "databaseName": "shop", "connectionSecret": {},
        "credentials": {"username": "app", "secretName": "orders-db"},
    });
    let orders = App::create(env, rds, "orders", spec).await;
    let creating = eventually("the creation of the instance", async || {
        (orders.status().await["phase"] == "creating").then_some(())
    });
    creating.await.expect("an instance");
    let name = orders.connection();
    assert_eq!(values(env, &name).await, None, "there is no endpoint yet");
    lasts(rds, "creating", false);
    rds.release(&orders.id);
    orders.is_synced().await;
    let first = expected(&orders, "correct-horse", "correct-horse");
    assert_eq!(values(env, &name).await, first);
    let secret = secrets(env).get(&name).await.expect("the Secret");
    let [owner] = secret.owner_references() else {
        panic!("one owner is expected: {secret:?}");
    };
    assert_eq!(
        (owner.kind.as_str(), owner.controller),
        ("CloudDatabase", Some(true))
    );
    assert_eq!(format!("cdb-{}", owner.uid), orders.id);
    assert_eq!(orders.status().await["ownedSecrets"], json!([name]));

    // Neither a changed nor a deleted Secret stays like this.
    set_password(env, &name, "of-another-client");
    let is_repaired = async || (values(env, &name).await == first).then_some(());
    let repaired = eventually("the repair of the Secret", is_repaired).await;
    repaired.unwrap_or_else(|error| env.fail(&error.to_string()));
    orders.kubectl(&["delete", "secret", &name]);
    let repaired = eventually("another Secret", is_repaired).await;
    repaired.unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// A password that RDS rejects does not reach applications, nor does one that it has not applied yet.
async fn a_password_is_published_when_the_instance_has_it(env: &TestEnv, rds: &Simulator) {
    let orders = App::of(env, rds, "orders").await;
    let name = orders.connection();
    let first = values(env, &name).await;
    rds.refuse(
        "ModifyDBInstance",
        "MasterUserPassword",
        "InvalidParameterValue",
        "no",
    );
    set_password(env, "orders-db", "rejected-1");
    env.condition_because("orders", "Synced", "Rejected").await;
    assert_eq!(values(env, &name).await, first);
    rds.clear_injections();
    lasts(rds, RESETTING, true);
    set_password(env, "orders-db", "a:b?c#d%e&f+");
    let resetting = eventually("the new password in RDS", async || {
        let status = orders.status().await;
        (status["phase"] == RESETTING).then_some(())
    });
    resetting
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(
        values(env, &name).await,
        first,
        "RDS has not applied it yet"
    );
    lasts(rds, RESETTING, false);
    rds.release(&orders.id);
    orders.publishes("a:b?c#d%e&f+").await;
    let second = expected(&orders, "a:b?c#d%e&f+", "a%3Ab%3Fc%23d%25e%26f%2B");
    assert_eq!(values(env, &name).await, second);
    orders.is_synced().await;

    // Without a change, nothing is written.
    rds.clear_journal();
    let state = async || {
        let secret = secrets(env).get(&name).await.expect("the Secret");
        (secret.resource_version(), rds.writes().len())
    };
    stays(WHILE, "the Secret, or the number of writes,", state).await;
}

/// A Secret that is no longer asked for is deleted, also if it was renamed, and if its password is unknown by then.
async fn a_secret_that_is_not_asked_for_is_deleted(env: &TestEnv, rds: &Simulator) {
    let orders = App::of(env, rds, "orders").await;
    let name = orders.connection();
    let second = values(env, &name).await;
    orders.kubectl(&["delete", "secret", "orders-db"]);
    let unknown = env.condition("orders", "Synced", "False").await;
    assert!(
        unknown.message.contains("'orders-db'"),
        "{}",
        unknown.message
    );
    assert_eq!(values(env, &name).await, second);
    orders.patch(&json!({"connectionSecret": {"name": "orders-app"}}));
    gone(env, &name).await;
    assert_eq!(values(env, "orders-app").await, second);
    orders.patch(&json!({"connectionSecret": null}));
    gone(env, "orders-app").await;
    let forgotten = eventually("the end of the record", async || {
        orders.status().await["ownedSecrets"]
            .is_null()
            .then_some(())
    });
    forgotten
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

async fn a_secret_of_another_owner_is_left_alone(env: &TestEnv, rds: &Simulator) {
    env.make_secret("taken", &json!({"password": "of-another-owner"}))
        .await;
    let spec = json!({"connectionSecret": {"name": "taken"}});
    let bills = App::create(env, rds, "bills", spec).await;
    let refused = env
        .condition_because("bills", "Ready", "ChildNotOwned")
        .await;
    assert!(refused.message.contains("'taken'"), "{}", refused.message);
    let kept = BTreeMap::from([("password".to_owned(), "of-another-owner".to_owned())]);
    assert_eq!(values(env, "taken").await, Some(kept));
    bills.patch(&json!({"connectionSecret": {"name": null}}));
    bills.publishes("correct-horse").await;
    bills.is_synced().await;
}

/// Returns the passwords that were used.
async fn a_generated_password_stays_and_can_be_replaced(
    env: &mut TestEnv,
    rds: &Simulator,
) -> Vec<String> {
    const STORED: &str = "ledger-master-user";
    let stored = async |env: &TestEnv| {
        let values = values(env, STORED).await?;
        assert_eq!(values["username"], "app");
        values.get("password").cloned()
    };
    let spec = json!({
        "engine": "mysql", "engineVersion": "8.0", "connectionSecret": {},
        "credentials": {"username": "app", "generate": {}},
    });
    App::create(env, rds, "ledger", spec)
        .await
        .is_synced()
        .await;
    let first = stored(env).await.expect("a password");
    let is_strong = first.len() == 40 && first.chars().all(|c| c.is_ascii_alphanumeric());
    assert!(is_strong, "{} characters", first.len());
    App::of(env, rds, "ledger").await.publishes(&first).await;

    // It survives a restart. The change of the backups shows that the new process has seen the object.
    rds.clear_journal();
    env.installation
        .restart_controller_with(&[])
        .expect("the controller starts");
    let ledger = App::of(env, rds, "ledger").await;
    ledger.patch(&json!({"backup": {"retentionDays": 9}}));
    let seen = eventually("the change by the new process", async || {
        let instance = rds.instance(&ledger.id).expect("the instance");
        (instance["BackupRetentionPeriod"] == 9).then_some(())
    });
    seen.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    ledger.is_synced().await;
    assert_eq!(stored(env).await.as_ref(), Some(&first));
    assert_eq!(ledger.modifications(), Vec::<Value>::new());

    // Another one is made on request, once for each request, and when the Secret is deleted.
    let rotate = [
        "annotate",
        "cdb/ledger",
        "database.example.com/rotate-password=1",
    ];
    ledger.kubectl(&rotate);
    let is_new = async |old: &str| {
        let new = eventually("another password", async || {
            stored(env).await.filter(|now| now != old)
        });
        new.await
            .unwrap_or_else(|error| env.fail(&error.to_string()))
    };
    let second = is_new(&first).await;
    ledger.publishes(&second).await;
    ledger.is_synced().await;
    ledger.kubectl(&["delete", "secret", STORED]);
    let third = is_new(&second).await;
    ledger.publishes(&third).await;
    ledger.is_synced().await;
    let passwords = async || (stored(env).await, ledger.modifications().len());
    assert_eq!(passwords().await, (Some(third.clone()), 2));
    stays(WHILE, "the password", passwords).await;
    vec![first, second, third]
}

async fn rds_can_take_over_the_password_and_give_it_back(env: &TestEnv, rds: &Simulator) {
    let ledger = App::of(env, rds, "ledger").await;
    rds.clear_journal();
    ledger.patch(&json!({"credentials": {"generate": null, "managed": {}}}));
    let managed = eventually("the secret in the status", async || {
        let secret = ledger.status().await["masterUserSecret"].clone();
        (secret["status"] == "active").then_some(secret)
    });
    let managed = managed.await;
    let managed = managed.unwrap_or_else(|error| env.fail(&error.to_string()));
    ledger.is_synced().await;
    let [change] = &ledger.modifications()[..] else {
        panic!("one modification is expected: {:?}", rds.journal());
    };
    assert!(change["MasterUserPassword"].is_null(), "{change}");
    gone(env, "ledger-master-user").await;
    let published = eventually("the ARN in the Secret", async || {
        let values = values(env, &ledger.connection()).await?;
        values.contains_key("masterUserSecretArn").then_some(values)
    });
    let published = published.await;
    let published = published.unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(published["masterUserSecretArn"], managed["arn"]);
    assert!(!published.contains_key("password") && !published.contains_key("uri"));

    rds.report(
        &ledger.id,
        json!({"MasterUserSecret": {"SecretArn": managed["arn"], "SecretStatus": "impaired"}}),
    );
    let impaired = env.condition("ledger", "Synced", "False").await;
    assert!(
        impaired.message.contains("can no longer rotate"),
        "{}",
        impaired.message
    );
    rds.clear_report(&ledger.id);
    ledger.is_synced().await;

    rds.clear_journal();
    let back = json!({"credentials": {"managed": null, "secretName": "ledger-db"}});
    env.make_secret("ledger-db", &json!({"password": "battery-staple"}))
        .await;
    ledger.patch(&back);
    let back = eventually("the password of the user", async || {
        let values = values(env, &ledger.connection()).await?;
        let password = values.get("password")?;
        (password == "battery-staple").then_some(values)
    });
    let back = back.await;
    let back = back.unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(ledger.password(), "battery-staple");
    assert!(
        !back.contains_key("masterUserSecretArn"),
        "{:?}",
        back.keys()
    );
    ledger.is_synced().await;
    assert!(ledger.status().await["masterUserSecret"].is_null());
    assert_eq!(ledger.modifications().len(), 1);

    // From the start, and with a key.
    let key = rds.add_kms_key("alias/secrets");
    let spec = json!({
        "credentials": {"username": "app", "managed": {"kmsKey": "alias/secrets"}},
        "connectionSecret": {"name": "vault-app"},
    });
    let vault = App::create(env, rds, "vault", spec).await;
    vault.is_synced().await;
    let instance = rds.instance(&vault.id).expect("the instance");
    assert_eq!(instance["MasterUserSecret"]["KmsKeyId"], json!(key));
    let created = eventually("the ARN in the Secret", async || {
        let values = values(env, "vault-app").await?;
        values.get("masterUserSecretArn").cloned()
    });
    let created = created.await.expect("an ARN");
    assert_eq!(created, instance["MasterUserSecret"]["SecretArn"]);
    assert_eq!(vault.status().await["ownedSecrets"], json!(["vault-app"]));
}
