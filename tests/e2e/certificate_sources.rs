//! Serving certificates that another program issues.

use std::fs;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use lockstep_certs::{CertKeyPair, CertificateAuthority};
use lockstep_envtest::{
    Cluster, Installation, Moto, Options, eventually, stays, wait_until_fail_closed,
};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::env::{database, root, validating_webhook};
use crate::standalone_webhook::new_ca;

const SECRET: &str = "lockstep-webhook-tls";

struct Site {
    installation: Installation,
    cluster: Cluster,
    _moto: Moto,
}

/// Signs a serving certificate for the webhook's Service, as an issuer does.
fn pair_of(ca: &CertificateAuthority) -> CertKeyPair {
    let names = ["lockstep-webhook.lockstep-system.svc".to_owned()];
    let lifetime = Duration::from_hours(24);
    let pair = ca.sign(&names, lifetime, OffsetDateTime::now_utc());
    pair.expect("a TLS key pair")
}

impl Site {
    async fn apply(controller_args: &[&str]) -> Self {
        let cluster = Cluster::start_without_workloads().await.expect("a cluster");
        let moto = Moto::start().await.expect("moto");
        let options = Options {
            program: env!("CARGO_BIN_EXE_lockstep").into(),
            controller_env: moto.environment(),
            controller_args: controller_args.iter().map(ToString::to_string).collect(),
            controller_server: None,
        };
        let manifests = root().join("manifests/config");
        let installation = Installation::apply(&cluster, &manifests, options);
        Self {
            installation: installation.await.expect("manifests"),
            cluster,
            _moto: moto,
        }
    }

    fn start(&mut self) {
        self.installation
            .start_controller()
            .expect("the process starts");
        self.installation
            .start_webhook()
            .expect("the process starts");
    }

    async fn fill_secret(&self, ca: &CertificateAuthority, pair: &CertKeyPair) {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": SECRET},
            "data": {
                "ca.crt": bytes(&ca.certificate),
                "tls.crt": bytes(&pair.certificate),
                "tls.key": bytes(&pair.key),
            },
        });
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), "lockstep-system");
        let params = PatchParams::apply("issuer").force();
        let filled = secrets.patch(SECRET, &params, &Patch::Apply(&secret)).await;
        filled.expect("the Secret is filled");
    }

    /// CA bundle that the API server trusts.
    fn bundle(&self) -> String {
        let read = validating_webhook(&self.cluster, "clientConfig.caBundle");
        let bytes: ByteString = serde_json::from_value(Value::String(read)).expect("base64");
        String::from_utf8(bytes.0).expect("PEM")
    }

    fn served(&self) -> Option<String> {
        fs::read_to_string(self.cluster.directory().join("tls/tls.crt")).ok()
    }

    async fn serves(&self, pair: &CertKeyPair) {
        eventually("the serving of the certificate", async || {
            (self.served().as_ref() == Some(&pair.certificate)).then_some(())
        })
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.output()));
    }

    /// Checks that the API server calls the webhook and trusts its certificate.
    async fn denies(&self, name: &str) {
        wait_until_fail_closed(&self.cluster)
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.output()));
        let mut invalid = database(name);
        invalid["spec"]["credentials"]["username"] = "user".into();
        let path = self.cluster.directory().join("invalid.json");
        fs::write(&path, invalid.to_string()).expect("a file");
        let applied = self
            .cluster
            .run_kubectl(&["apply", "-f", &path.to_string_lossy()]);
        let rejection = applied.expect_err("the object is denied").to_string();
        assert!(rejection.contains("[username-reserved]"), "{rejection}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_from_an_issuer_is_served_only_after_its_ca_is_trusted() {
    let quick = [
        "--cert-source=secret",
        "--ca-propagation-delay=2s",
        "--cert-check-interval=200ms",
    ];
    let mut site = Site::apply(&quick).await;
    site.start();
    eventually("the report of the missing Secret", async || {
        let output = site.installation.output();
        output
            .contains("the Secret does not exist yet")
            .then_some(())
    })
    .await
    .expect("the controller waits for the issuer");

    let (first, second) = (new_ca(), new_ca());
    let pair = pair_of(&first);
    site.fill_secret(&first, &pair).await;
    site.serves(&pair).await;
    site.denies("orders").await;
    assert_eq!(site.bundle(), first.certificate);

    // CA and certificate change in one update: the new CA is trusted in addition to the old one before the new
    // certificate is served.
    let other = pair_of(&second);
    site.fill_secret(&second, &other).await;
    let both = format!("{}{}", second.certificate, first.certificate);
    eventually("both CAs", async || (site.bundle() == both).then_some(()))
        .await
        .expect("both CAs are trusted");
    assert_eq!(
        site.served().as_ref(),
        Some(&pair.certificate),
        "the new certificate is served too early"
    );
    site.serves(&other).await;
    site.denies("bills").await;

    // The key does not match the certificate: the previous key pair stays in use, and an Event reports it.
    let unfit = CertKeyPair {
        key: pair.key.clone(),
        ..pair_of(&second)
    };
    site.fill_secret(&second, &unfit).await;
    let events = ["get", "events", "-n", "lockstep-system", "-o", "wide"];
    eventually("an Event", async || {
        let events = site.cluster.run_kubectl(&events).ok()?;
        (events.contains("InvalidServingCertificate")
            && events.contains("`tls.key` does not match `tls.crt`"))
        .then_some(())
    })
    .await
    .unwrap_or_else(|error| panic!("{error}\n{}", site.installation.output()));
    // The certificate is signed by another CA than `ca.crt`: no API server would trust it.
    site.fill_secret(&second, &pair_of(&first)).await;
    eventually("another Event", async || {
        let events = site.cluster.run_kubectl(&events).ok()?;
        events.contains("with the CAs in `ca.crt`").then_some(())
    })
    .await
    .unwrap_or_else(|error| panic!("{error}\n{}", site.installation.output()));
    stays(Duration::from_secs(3), "certificate", async || {
        site.served()
    })
    .await;
    assert_eq!(site.served().as_ref(), Some(&other.certificate));
    site.denies("stocks").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_from_files_is_trusted_through_the_given_ca_bundle() {
    let ca_file = tempfile::NamedTempFile::new().expect("a file");
    let ca_option = format!("--ca-bundle-file={}", ca_file.path().display());
    let options = [
        "--cert-source=files",
        &ca_option,
        "--cert-check-interval=200ms",
    ];
    let mut site = Site::apply(&options).await;
    let ca = new_ca();
    let pair = pair_of(&ca);
    fs::write(ca_file.path(), &ca.certificate).expect("a file");
    let directory = site.cluster.directory().join("tls");
    fs::create_dir(&directory).expect("a folder");
    crate::standalone_webhook::write_pair(&directory, &pair);
    site.start();
    site.denies("orders").await;
    assert_eq!(site.bundle(), ca.certificate);
    let secrets: Api<Secret> = Api::namespaced(site.cluster.client(), "lockstep-system");
    let made = secrets.get_opt(SECRET).await.expect("a response");
    assert!(
        made.is_none(),
        "a Secret was created although files are used"
    );
}
