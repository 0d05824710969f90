//! Repair of what other clients damage: the Secret with the certificates, and the CA bundles of the configurations. A
//! configuration of another installation is left alone.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::ByteString;
use lockstep_envtest::{Installation, Options, eventually, stays};
use serde_json::{Value, json};

use crate::env::{TestEnv, database, root, validating_webhook};
use crate::standalone_webhook::new_ca;
use crate::uninstall::{lockstep, text};

const SECRET: [&str; 4] = ["secret", "lockstep-webhook-tls", "-n", "lockstep-system"];

/// Content of `tls.crt` after the first line of a certificate was written: `-----BEGIN`.
const TRUNCATED: &str = "LS0tLS1CRUdJTg==";

fn patch_secret(env: &TestEnv, data: &Value) {
    let patch = json!({ "data": data }).to_string();
    let patched = env.kubectl(&[&["patch"], &SECRET[..], &["-p", &patch]].concat());
    patched.expect("the Secret is patched");
}

fn secret_data(env: &TestEnv) -> Value {
    let read = env.kubectl(&[&["get"], &SECRET[..], &["-o", "jsonpath={.data}"]].concat());
    serde_json::from_str(&read.expect("the Secret")).expect("JSON")
}

/// Waits for an Event with this reason. Returns all Events.
async fn event(env: &TestEnv, reason: &str) -> String {
    let events = eventually(reason, async || {
        let events = env.kubectl(&["get", "events", "-A", "-o", "wide"]).ok()?;
        events.contains(reason).then_some(events)
    });
    let events = events.await;
    events.unwrap_or_else(|error| env.fail(&error.to_string()))
}

/// Asserts that the API server calls the webhook and trusts its certificate.
async fn denies(env: &TestEnv, name: &str) {
    let mut invalid = database(name);
    invalid["spec"]["credentials"]["username"] = "user".into();
    let denied = eventually("the denial by a rule", async || {
        let rejection = env.kubectl_apply(&invalid).err()?;
        rejection.contains("[username-reserved]").then_some(())
    });
    denied
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_certificate_in_the_secret_is_replaced_by_one_of_the_same_ca() {
    let mut env = TestEnv::start().await;
    let before = secret_data(&env);
    // The Pod restarts with an empty volume.
    let controller = env.installation.controller();
    controller.terminate().expect("a signal");
    controller.ended().await;
    let pair = env.cluster.directory().join("tls");
    for name in ["tls.crt", "tls.key"] {
        fs::remove_file(pair.join(name)).expect("the file exists");
    }
    patch_secret(&env, &json!({"tls.crt": TRUNCATED}));
    env.installation
        .start_controller()
        .expect("the process starts");
    eventually("another certificate", async || {
        let data = secret_data(&env);
        (data["tls.crt"] != TRUNCATED && pair.join("tls.crt").exists()).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    let after = secret_data(&env);
    assert_ne!(after["tls.crt"], before["tls.crt"]);
    for unchanged in ["ca.crt", "ca.key"] {
        assert_eq!(after[unchanged], before[unchanged], "{unchanged}");
    }
    event(&env, "CertificatesRepaired").await;
    denies(&env, "orders").await;

    // A certificate of another CA belongs to the user that stored it.
    let foreign = new_ca();
    let bytes = |text: String| json!(ByteString(text.into_bytes()));
    let issued = lockstep_certs::CertKeyPair::self_signed(
        "lockstep-webhook.lockstep-system.svc",
        Duration::from_hours(24),
        std::time::SystemTime::now(),
    )
    .expect("a pair");
    patch_secret(
        &env,
        &json!({
            "ca.crt": bytes(foreign.certificate), "ca.key": Value::Null,
            "tls.crt": bytes(issued.certificate), "tls.key": bytes(issued.key),
        }),
    );
    event(&env, "InvalidServingCertificate").await;
    stays(Duration::from_secs(3), "the Secret", async || {
        secret_data(&env)
    })
    .await;
    assert_eq!(secret_data(&env)["ca.key"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repaired_ca_bundle_has_an_event_and_a_metric() {
    let env = TestEnv::start().await;
    let before = validating_webhook(&env.cluster, "clientConfig.caBundle");
    let other = json!(ByteString(new_ca().certificate.into_bytes()));
    let patch =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other}]);
    let kind = "validatingwebhookconfiguration";
    env.kubectl(&[
        "patch",
        kind,
        "lockstep",
        "--type=json",
        "-p",
        &patch.to_string(),
    ])
    .expect("the CA bundle is overwritten");
    eventually("the old CA", async || {
        (validating_webhook(&env.cluster, "clientConfig.caBundle") == before).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    let events = event(&env, "CABundleRepaired").await;
    assert!(events.contains(kind), "{events}");
    let url = env.installation.controller_health_url();
    let metrics = env.metrics(&url).await;
    let repairs = "lockstep_ca_bundle_repairs_total{kind=\"ValidatingWebhookConfiguration\",name=\"lockstep\"} 1";
    assert!(metrics.contains(repairs), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_of_another_installation_is_left_alone_and_named() {
    let env = TestEnv::start().await;
    let own = validating_webhook(&env.cluster, "clientConfig.caBundle");
    let foreign = new_ca();
    let other = json!(ByteString(foreign.certificate.into_bytes()));
    let kind = "validatingwebhookconfiguration";
    let refer_to = |namespace: &str| {
        let patch = json!([
            {"op": "replace", "path": "/webhooks/0/clientConfig/service/namespace", "value": namespace},
            {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other},
            {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
        ]);
        let arguments = [
            "patch",
            kind,
            "lockstep",
            "--type=json",
            "-p",
            &patch.to_string(),
        ];
        env.kubectl(&arguments)
            .expect("the configuration is patched");
    };
    refer_to("other");
    let events = event(&env, "OwnedByAnotherInstallation").await;
    assert!(
        events.contains("the Service other/lockstep-webhook"),
        "{events}"
    );
    let version = || {
        let path = "jsonpath={.metadata.resourceVersion}";
        env.kubectl(&["get", kind, "lockstep", "-o", path])
            .expect("the configuration")
    };
    stays(Duration::from_secs(5), "the configuration", async || {
        version()
    })
    .await;
    assert_eq!(
        json!(validating_webhook(&env.cluster, "clientConfig.caBundle")),
        other
    );
    assert_eq!(validating_webhook(&env.cluster, "failurePolicy"), "Ignore");
    let output = lockstep(&env.cluster.kubeconfig(), &["status", "--output=json"]);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let problems = report["problems"].to_string();
    assert!(
        problems.contains("refers to the Service other/lockstep-webhook"),
        "{problems}"
    );

    // Once it refers to this installation again, this one maintains it again.
    refer_to("lockstep-system");
    eventually("the own CA and failure policy", async || {
        let bundle = validating_webhook(&env.cluster, "clientConfig.caBundle");
        let policy = validating_webhook(&env.cluster, "failurePolicy");
        (bundle == own && policy == "Fail").then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Writes the manifests of the repository for another namespace.
fn manifests_for_namespace(env: &TestEnv, namespace: &str) -> PathBuf {
    let folder = env.cluster.directory().join(namespace);
    fs::create_dir(&folder).expect("a folder");
    for entry in fs::read_dir(root().join("manifests/config")).expect("a folder") {
        let file = entry.expect("a file").path();
        if file.is_file() {
            let text = fs::read_to_string(&file).expect("a text");
            let text = text.replace("lockstep-system", namespace);
            fs::write(folder.join(file.file_name().expect("a name")), text).expect("a file");
        }
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn two_installations_with_the_same_configurations_do_not_fight_over_them() {
    let env = TestEnv::start().await;
    let folder = manifests_for_namespace(&env, "other");
    let options = Options {
        program: env!("CARGO_BIN_EXE_lockstep").into(),
        controller_env: env.aws_environment(),
        controller_args: Vec::new(),
        controller_server: None,
    };
    // The configurations refer to the second installation from now on.
    let other = Installation::apply(&env.cluster, &folder, options).await;
    let other = other.and_then(|other| other.with_files_in(&folder));
    let mut other = other.expect("the manifests are applied");
    let started = other.start(&env.cluster).await;
    started.unwrap_or_else(|error| env.fail(&error.to_string()));
    let events = event(&env, "OwnedByAnotherInstallation").await;
    assert!(
        events.contains("the Service other/lockstep-webhook"),
        "{events}"
    );
    let kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
    stays(Duration::from_secs(10), "the configurations", async || {
        let path = "jsonpath={.items[*].metadata.resourceVersion}";
        env.kubectl(&["get", kinds, "-o", path])
            .expect("the configurations")
    })
    .await;
    for created in 0..20 {
        let valid = database(&format!("valid-{created}"));
        let admitted = env.kubectl_apply(&valid);
        assert!(admitted.is_ok(), "{admitted:?}");
    }
    denies(&env, "invalid").await;
}
