use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::api::DynamicObject;
use serde_json::json;
use time::OffsetDateTime;

use super::*;
use crate::ca::authority::CertKeyPair;
use crate::inject::target::InjectTargetKind;

const DAY: Duration = Duration::from_hours(24);

/// Cluster with a Secret, and configurations each of which may be unreadable.
#[derive(Default)]
struct Cluster {
    secret: Mutex<Option<Secret>>,
    /// CA bundle of each configuration. One that is not listed cannot be read.
    bundles: BTreeMap<InjectTargetKind, String>,
}

impl Cluster {
    fn with(secret: Secret) -> Self {
        Self {
            secret: Mutex::new(Some(secret)),
            ..Self::default()
        }
    }

    fn keys(&self) -> Option<CertificateBundle> {
        let secret = self.secret.lock().expect("whole");
        secret.as_ref().and_then(|secret| read(secret).ok())
    }
}

impl ClusterApi for Cluster {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + 20_000 * DAY
    }

    async fn get_target(&self, target: &InjectTarget) -> Result<Option<DynamicObject>, CertError> {
        // Stands for any error of the request.
        let bundle = self.bundles.get(&target.kind).ok_or(CertError::Conflict)?;
        let service = json!({"namespace": "system", "name": "webhook"});
        let bundle = ByteString(bundle.clone().into_bytes());
        let client_config = json!({"service": service, "caBundle": bundle});
        let webhooks = json!([{"name": "one", "clientConfig": client_config}]);
        let found = json!({"metadata": {"name": "lockstep"}, "webhooks": webhooks});
        Ok(serde_json::from_value(found).ok())
    }

    async fn inject_ca(
        &self,
        _: &InjectTarget,
        _: &DynamicObject,
        _: &str,
    ) -> Result<InjectOutcome, CertError> {
        Ok(InjectOutcome::Already)
    }

    async fn get_secret(&self) -> Result<Option<Secret>, CertError> {
        Ok(self.secret.lock().expect("whole").clone())
    }

    async fn put_secret(&self, secret: &Secret) -> Result<InjectOutcome, CertError> {
        *self.secret.lock().expect("whole") = Some(secret.clone());
        Ok(InjectOutcome::Now)
    }

    fn on_secret_repaired(&self, _: &str) {}

    async fn all_replicas_serve(&self, _: &str) -> Result<bool, CertError> {
        Ok(false)
    }

    fn read_served(&self) -> Option<CertKeyPair> {
        None
    }

    fn write_files(&self, _: &CertKeyPair) -> Result<(), CertError> {
        Ok(())
    }
}

fn policy() -> RotationPolicy {
    RotationPolicy {
        dns_names: vec!["webhook".to_owned()],
        ca_duration: 90 * DAY,
        cert_duration: 30 * DAY,
        propagation_delay: Duration::from_mins(10),
    }
}

/// Returns generated keys, and a Secret with them but without some entries.
fn damaged(lost: &[&str]) -> (CertificateBundle, Secret) {
    let now = Cluster::default().now();
    let (keys, mut stored) = (policy().generate(now).expect("keys"), empty("keys"));
    secret::write(&mut stored, &keys);
    let data = stored.data.as_mut().expect("data");
    for name in lost {
        data.remove(*name);
    }
    (keys, stored)
}

async fn synced(cluster: &Cluster) -> Result<CertificateBundle, CertError> {
    let targets = [
        InjectTarget::sample(InjectTargetKind::Validating),
        InjectTarget::sample(InjectTargetKind::Mutating),
    ];
    sync(cluster, "keys", &policy(), &targets).await
}

#[tokio::test]
async fn the_first_keys_are_generated_without_the_configurations() {
    let cluster = Cluster::with(empty("keys"));
    assert!(synced(&cluster).await.is_err(), "nothing was injected");
    assert!(cluster.keys().is_some());
}

#[tokio::test]
async fn what_is_not_lost_needs_no_configuration() {
    let (before, stored) = damaged(&["tls.crt", "tls.key"]);
    let cluster = Cluster::with(stored);
    assert!(synced(&cluster).await.is_err(), "nothing was injected");
    let keys = cluster.keys().expect("repaired keys");
    assert!(keys.current_ca == before.current_ca);
}

#[tokio::test]
async fn lost_cas_are_read_from_any_readable_configuration() {
    let (before, stored) = damaged(&["ca.crt"]);
    let mut cluster = Cluster::with(stored);
    assert!(synced(&cluster).await.is_err());
    assert!(cluster.keys().is_none(), "the CAs may still be there");
    let bundle = before.ca_bundle();
    cluster.bundles = [(InjectTargetKind::Mutating, bundle)].into();
    assert!(
        synced(&cluster).await.is_err(),
        "one configuration is unreadable"
    );
    assert!(cluster.keys().is_some_and(|keys| keys == before));
}
