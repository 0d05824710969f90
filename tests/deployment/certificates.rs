//! Serving certificate from another issuer, as cert-manager fills the Secret.

use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, ListParams, Patch, PatchParams};
use lockstep_certs::CertificateAuthority;
use lockstep_envtest::eventually_within;
use serde_json::json;
use time::OffsetDateTime;

use crate::installation::{create_credentials, denies_a_reserved_name, install_by};
use crate::load::Load;
use crate::overlay::{apply, overlay, patch};
use crate::rollout::{report, stop};
use crate::site::{NAMESPACE, PODS, Site};

const SECRET: &str = "lockstep-webhook-tls";
const DAY: Duration = Duration::from_hours(24);

pub async fn from_another_issuer(site: &Site) {
    let args = ["--cert-source=secret", "--ca-propagation-delay=2s"];
    let operations = args.map(
        |arg| json!({"op": "add", "path": "/spec/template/spec/containers/1/args/-", "value": arg}),
    );
    let operations = json!(operations);
    let fields = json!({"patches": [patch("Deployment", "lockstep", &operations)]});
    let issued = overlay(site, "issued", fields);
    install_by(site, async |site| {
        apply(site, &issued);
        issue(site, &authority(), DAY).await;
    })
    .await;
    denies_a_reserved_name(site);
    create_credentials(site, "default").await;

    // The issuer renews the certificate, with another CA.
    let load = Load::start(site.cluster()).await;
    let started = Instant::now();
    issue(site, &authority(), 10 * DAY).await;
    let renewed = eventually_within(PODS, "the new certificate in each Pod", async || {
        let lives = lifetimes(site).await?;
        lives.iter().all(|life| *life > 5 * DAY).then_some(lives)
    });
    let renewed = renewed.await;
    let lives = renewed.unwrap_or_else(|error| site.fail(&error.to_string()));
    assert_eq!(lives.len(), 2);
    let counts = stop(site, load).await;
    report("a renewal by another CA", started.elapsed(), &counts);
    denies_a_reserved_name(site);
}

fn authority() -> CertificateAuthority {
    let life = 365 * DAY;
    CertificateAuthority::generate(life, OffsetDateTime::now_utc()).expect("a CA")
}

/// Fills the Secret as cert-manager does for a `Certificate`.
async fn issue(site: &Site, ca: &CertificateAuthority, life: Duration) {
    let names = [format!("lockstep-webhook.{NAMESPACE}.svc")];
    let pair = ca.sign(&names, life, OffsetDateTime::now_utc());
    let pair = pair.expect("a TLS key pair");
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
    let secrets: Api<Secret> = Api::namespaced(site.cluster().client(), NAMESPACE);
    let params = PatchParams::apply("cert-manager-certificates-issuing").force();
    let filled = secrets.patch(SECRET, &params, &Patch::Apply(&secret)).await;
    filled.expect("the Secret is filled");
}

/// Returns the remaining lifetime of the certificate that each webhook serves, from its metrics.
async fn lifetimes(site: &Site) -> Option<Vec<Duration>> {
    let pods: Api<Pod> = Api::namespaced(site.cluster().client(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await.ok()?;
    let mut lives = Vec::new();
    for pod in pods {
        let name = pod.metadata.name?;
        let url = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}:8080/proxy/metrics");
        let metrics = site.cluster().run_kubectl(&["get", "--raw", &url]).ok()?;
        let until = metrics.lines().find_map(|line| {
            line.strip_prefix("lockstep_webhook_certificate_expiration_timestamp_seconds ")
        });
        let until: f64 = until?.parse().ok()?;
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are exact")]
        let now = OffsetDateTime::now_utc().unix_timestamp() as f64;
        lives.push(Duration::try_from_secs_f64(until - now).ok()?);
    }
    Some(lives)
}
