//! TLS of the webhook: client certificates, and the reload of certificates and CAs.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::ByteString;
use lockstep_certs::CertKeyPair;
use lockstep_envtest::{eventually, eventually_within};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use time::OffsetDateTime;

use crate::env::{TestEnv, database};
use crate::standalone_webhook::{
    StandaloneWebhook, new_ca, pair_of, send_on, start_http, write_pair,
};

/// CA for client certificates, with one client certificate.
struct Clients {
    ca: String,
    certificate: String,
    key: String,
}

impl Clients {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
            .expect("a CA");
        let mut params = CertificateParams::new(["api-server".to_owned()]).expect("a name");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &ca).expect("a certificate");
        Self {
            ca: ca.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Returns true if the webhook responds to this client.
    async fn are_served(&self, webhook: &StandaloneWebhook) -> bool {
        responds(webhook, Some((&self.certificate, &self.key))).await
    }
}

/// Returns true if the webhook responds. In TLS 1.3, a rejected client notices it only at the first response.
async fn responds(webhook: &StandaloneWebhook, client: Option<(&str, &str)>) -> bool {
    let Ok(stream) = webhook.tls_as(client).await else {
        return false;
    };
    let mut connection = start_http(stream).await;
    send_on(&mut connection).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_with_a_certificate_of_the_ca_are_served_and_the_ca_is_reloaded() {
    let (first, second) = (Clients::new(), Clients::new());
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("clients.pem");
    std::fs::write(&file, &first.ca).expect("a file");
    let option = format!("--client-ca-file={}", file.display());
    let webhook = StandaloneWebhook::start(&[&option]).await;
    assert!(first.are_served(&webhook).await);
    assert!(!second.are_served(&webhook).await);
    assert!(
        !responds(&webhook, None).await,
        "a client without a certificate was served"
    );

    std::fs::write(&file, "no CA").expect("a file");
    eventually("the count of the invalid file", async || {
        let errors = webhook
            .count("certwatcher_read_certificate_errors_total")
            .await;
        errors.filter(|errors| *errors > 0)
    })
    .await
    .expect("the error is counted");
    assert!(
        first.are_served(&webhook).await,
        "the last valid CA stays in use"
    );

    std::fs::write(&file, &second.ca).expect("a file");
    eventually("the reload of the CA", async || {
        second.are_served(&webhook).await.then_some(())
    })
    .await
    .expect("the new CA is loaded");
    assert!(!first.are_served(&webhook).await);
}

/// Serving certificate that a new connection gets.
async fn shown(webhook: &StandaloneWebhook) -> CertificateDer<'static> {
    let stream = webhook.tls().await;
    let chain = stream.get_ref().1.peer_certificates().expect("a chain");
    chain[0].clone().into_owned()
}

async fn becomes(webhook: &StandaloneWebhook, pair: &CertKeyPair) {
    let expected = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).expect("PEM");
    eventually("the reload of the certificate", async || {
        (shown(webhook).await == expected).then_some(())
    })
    .await
    .expect("the new certificate is served");
}

/// Replaces the key pair as the kubelet does for a Secret: writes a new folder and swaps a symlink to it.
fn swap(directory: &Path, generation: usize, pair: &CertKeyPair) {
    let folder = format!("..{generation}");
    std::fs::create_dir(directory.join(&folder)).expect("a folder");
    write_pair(&directory.join(&folder), pair);
    let link = directory.join("..data_tmp");
    symlink(&folder, &link).expect("a link");
    std::fs::rename(link, directory.join("..data")).expect("the link is replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_reloaded_while_a_connection_stays_open() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_owned();
    let ca = new_ca();
    swap(&path, 0, &pair_of(&ca));
    for name in ["tls.crt", "tls.key"] {
        symlink(format!("..data/{name}"), path.join(name)).expect("a link");
    }
    let webhook = StandaloneWebhook::start_with(directory, ca, &[]).await;
    let mut connection = start_http(webhook.tls().await).await;
    for generation in 1..=10 {
        let keys = pair_of(&webhook.ca);
        swap(&path, generation, &keys);
        becomes(&webhook, &keys).await;
        let response = send_on(&mut connection)
            .await
            .expect("the connection is still open");
        assert_eq!(response.status(), 200);
    }

    // The files are overwritten in place, the certificate first: the old key pair stays in use until both match.
    let keys = pair_of(&webhook.ca);
    std::fs::write(path.join("tls.crt"), &keys.certificate).expect("a file");
    let errors = "certwatcher_read_certificate_errors_total";
    eventually("the count of the mismatch", async || {
        webhook.count(errors).await.filter(|errors| *errors > 0)
    })
    .await
    .expect("the error is counted");
    assert_eq!(
        webhook.send_review().await.status(),
        200,
        "the old key pair stays in use"
    );
    std::fs::write(path.join("tls.key"), &keys.key).expect("a file");
    becomes(&webhook, &keys).await;
    let response = send_on(&mut connection)
        .await
        .expect("the connection is still open");
    assert_eq!(response.status(), 200);
    let expiry = webhook.count("lockstep_webhook_certificate_expiration_timestamp_seconds");
    let now = u64::try_from(OffsetDateTime::now_utc().unix_timestamp()).expect("after 1970");
    assert!(expiry.await.is_some_and(|expiry| expiry > now));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overwritten_ca_bundle_is_restored_immediately() {
    let env = TestEnv::start().await;
    let bundle = async |kind: &str| {
        let path = "jsonpath={.webhooks[0].clientConfig.caBundle}";
        let read = env.kubectl(&["get", kind, "lockstep", "-o", path]);
        read.expect("the configuration")
    };
    let other = json!(ByteString(new_ca().certificate.into_bytes()));
    let patch =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other}]);
    for kind in [
        "validatingwebhookconfiguration",
        "mutatingwebhookconfiguration",
    ] {
        let before = bundle(kind).await;
        let patch = patch.to_string();
        let arguments = ["patch", kind, "lockstep", "--type=json", "-p", &patch];
        env.kubectl(&arguments)
            .expect("the CA bundle is overwritten");
        // Well before the next periodic check, which runs once a minute.
        eventually_within(Duration::from_secs(15), "old CA", async || {
            (bundle(kind).await == before).then_some(())
        })
        .await
        .expect("the CA bundle is restored");
    }
    // The API server trusts the webhook again: it calls the webhook, which denies the object.
    let mut invalid = database("orders");
    invalid["spec"]["credentials"]["username"] = "user".into();
    let rejection = env
        .kubectl_apply(&invalid)
        .expect_err("the object is denied");
    assert!(rejection.contains("[username-reserved]"), "{rejection}");
}
