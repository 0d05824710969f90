//! Certificates that another component, such as cert-manager, issues and stores in a Secret.

use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;

use crate::api::ClusterApi;
use crate::ca::authority::{CertKeyPair, Validity};
use crate::error::CertError;
use crate::inject::target::{InjectOutcome, InjectTarget};
use crate::store::secret;

/// State of one replica: the CA bundle that every configuration must contain, and the time since which this replica
/// has seen it in all of them.
#[derive(Default)]
pub(crate) struct SyncState {
    injected: Option<(String, OffsetDateTime)>,
}

/// Serves the pair in the Secret as soon as its CA is trusted everywhere. Previous CAs remain trusted until every
/// replica serves a certificate of the new CA.
pub(crate) async fn sync(
    cluster: &impl ClusterApi,
    name: &str,
    propagation_delay: Duration,
    targets: &[InjectTarget],
    state: &mut SyncState,
) -> Result<(), CertError> {
    let mut found = Vec::new();
    for target in targets {
        if let Some(one) = cluster.get_target(target).await? {
            found.push((target, one));
        }
    }
    let now = cluster.now();
    let (pair, ca) = match read_secret(cluster, name, now).await {
        Ok(provided) => provided,
        Err(error) => {
            // Even if the Secret is invalid, the certificate in use must remain trusted.
            if let Some((trusted, since)) = &mut state.injected {
                for (target, found) in &found {
                    if cluster.inject_ca(target, found, trusted).await? != InjectOutcome::Already {
                        *since = now;
                    }
                }
            }
            return Err(error);
        }
    };
    let is_over = |certificate: &str| {
        Validity::of(certificate).map_or(true, |period: Validity| period.is_expired(now))
    };
    // CAs in the configurations now, and CAs from before another client overwrote them: replicas may still serve
    // certificates of both.
    let injected = found
        .iter()
        .flat_map(|(target, found)| target.injected_cas(found));
    let remembered = state.injected.iter().map(|(trusted, _)| trusted.clone());
    let mut before: Vec<String> = Vec::new();
    for certificate in injected
        .flatten()
        .chain(remembered)
        .filter_map(|text| secret::certificates(&text))
        .flatten()
    {
        if !ca.contains(&certificate) && !before.contains(&certificate) && !is_over(&certificate) {
            before.push(certificate);
        }
    }
    let trusted_now = ca.concat();
    if !before.is_empty() && cluster.all_replicas_serve(&trusted_now).await? {
        before.clear();
    }
    let trusted = format!("{trusted_now}{}", before.concat());
    let remembered = state.injected.clone();
    let remembered = remembered.filter(|(what, since)| *what == trusted && *since <= now);
    // A replica that has just started has no state yet, but `managedFields` contains the time of the last write.
    let mut written = Some(OffsetDateTime::UNIX_EPOCH);
    let mut is_injected = true;
    for (target, found) in &found {
        is_injected &= cluster.inject_ca(target, found, &trusted).await? == InjectOutcome::Already;
        written = written
            .zip(target.last_injection(found))
            .map(|(a, b)| a.max(b));
    }
    let since = match (is_injected, remembered, written) {
        (false, _, _) | (true, None, None) => now,
        (true, None, Some(since)) | (true, Some((_, since)), None) => since,
        // Another replica may have restored the CA bundle since then.
        (true, Some((_, observed)), Some(written)) => observed.max(written),
    };
    state.injected = Some((trusted, since));
    let served = cluster.read_served();
    if served.as_ref() == Some(&pair) {
        return Ok(());
    }
    let nothing_to_lose =
        before.is_empty() || served.is_some_and(|served| is_over(&served.certificate));
    if nothing_to_lose || now >= since + propagation_delay {
        tracing::info!("serving the TLS key pair of the Secret");
        cluster.write_files(&pair)?;
    }
    Ok(())
}

/// Returns the pair in the Secret, and the CAs that sign it.
async fn read_secret(
    cluster: &impl ClusterApi,
    name: &str,
    now: OffsetDateTime,
) -> Result<(CertKeyPair, Vec<String>), CertError> {
    let secret = cluster
        .get_secret()
        .await?
        .ok_or(CertError::SecretNotFound)?;
    let pair = secret::pair(&secret).ok_or(CertError::MissingKey("tls.crt and tls.key"))?;
    let ca = secret::ca_bundle(&secret)
        .and_then(|trusted| secret::certificates(&trusted))
        .filter(|certificates| !certificates.is_empty())
        .ok_or(CertError::MissingKey("ca.crt"))?;
    check(&pair, &ca, name, now)?;
    Ok((pair, ca))
}

/// Returns an error for a pair that cannot be served, or that no API server would trust.
fn check(
    pair: &CertKeyPair,
    ca: &[String],
    name: &str,
    now: OffsetDateTime,
) -> Result<(), CertError> {
    let unfit = |problem: String| CertError::InvalidKeyPair(problem);
    let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
    let chain: Vec<_> = chain
        .collect::<Result<_, _>>()
        .map_err(|error| unfit(format!("`tls.crt` is not valid PEM: {error}")))?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())
        .map_err(|_| unfit("`tls.key` contains no PEM private key".to_owned()))?;
    let key = any_supported_type(&key)
        .map_err(|error| unfit(format!("`tls.key` cannot sign: {error}")))?;
    CertifiedKey::new(chain.clone(), key)
        .keys_match()
        .map_err(|error| unfit(format!("`tls.key` does not match `tls.crt`: {error}")))?;
    is_trusted(&chain, ca, name, now).map_err(|error| {
        unfit(format!(
            "`tls.crt` is not valid for {name} with the CAs in `ca.crt`: {error}"
        ))
    })
}

fn is_trusted(
    chain: &[CertificateDer<'static>],
    ca: &[String],
    name: &str,
    now: OffsetDateTime,
) -> Result<(), rustls::Error> {
    let general = |error: String| rustls::Error::General(error);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.concat().as_bytes()) {
        roots.add(certificate.map_err(|error| general(error.to_string()))?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| general(error.to_string()))?;
    let name = ServerName::try_from(name).map_err(|error| general(error.to_string()))?;
    let seconds = u64::try_from(now.unix_timestamp()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let (leaf, intermediates) = chain
        .split_first()
        .ok_or(rustls::Error::NoCertificatesPresented)?;
    verifier
        .verify_server_cert(leaf, intermediates, &name, &[], now)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;
    use kube::api::DynamicObject;
    use serde_json::json;

    use super::*;
    use crate::ca::authority::CertificateAuthority;
    use crate::inject::target::InjectTargetKind;

    const NAME: &str = "webhook.example";
    const DAY: Duration = Duration::from_hours(24);
    const PROPAGATION_DELAY: time::Duration = time::Duration::minutes(10);
    const SECOND: time::Duration = time::Duration::SECOND;

    /// Cluster with one configuration, and the pair that the webhook serves.
    struct Fake {
        now: OffsetDateTime,
        secret: Option<Secret>,
        injected: Mutex<(String, OffsetDateTime)>,
        served: Mutex<Option<CertKeyPair>>,
    }

    impl Fake {
        /// Creates a cluster in which the configuration trusts an old CA, and the Secret has just got a pair of a
        /// new CA.
        fn new() -> Self {
            let now = OffsetDateTime::from_unix_timestamp(1_790_000_000).expect("a time");
            let ca = |lifetime| CertificateAuthority::generate(lifetime, now).expect("a CA");
            let (old, new) = (ca(30 * DAY), ca(30 * DAY));
            let pair = new.sign(&[NAME.to_owned()], DAY, now).expect("a pair");
            let data = [
                ("tls.crt", pair.certificate),
                ("tls.key", pair.key),
                ("ca.crt", new.certificate),
            ];
            let data = data.map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())));
            Self {
                now,
                secret: Some(Secret {
                    data: Some(data.into()),
                    ..Secret::default()
                }),
                injected: Mutex::new((old.certificate, now)),
                served: Mutex::default(),
            }
        }

        async fn sync_once(&self, state: &mut SyncState) -> Result<bool, CertError> {
            let target = InjectTarget::sample(InjectTargetKind::Validating);
            sync(
                self,
                NAME,
                PROPAGATION_DELAY.unsigned_abs(),
                &[target],
                state,
            )
            .await?;
            Ok(self.read_served().is_some())
        }

        fn trusted(&self) -> String {
            self.injected.lock().expect("no panic").0.clone()
        }
    }

    impl ClusterApi for Fake {
        fn now(&self) -> OffsetDateTime {
            self.now
        }

        async fn get_target(&self, _: &InjectTarget) -> Result<Option<DynamicObject>, CertError> {
            let (trusted, written) = self.injected.lock().expect("no panic").clone();
            let written = jiff::Timestamp::from_second(written.unix_timestamp());
            let found = json!({
                "metadata": {"managedFields": [
                    {"manager": "ca-injector", "time": written.expect("a time").to_string()},
                ]},
                "webhooks": [{"clientConfig": {
                    "service": {"namespace": "system", "name": "webhook"},
                    "caBundle": ByteString(trusted.into_bytes()),
                }}],
            });
            Ok(Some(serde_json::from_value(found).expect("an object")))
        }

        async fn inject_ca(
            &self,
            target: &InjectTarget,
            found: &DynamicObject,
            trusted: &str,
        ) -> Result<InjectOutcome, CertError> {
            if target.injected_cas(found) == [Some(trusted.to_owned())] {
                return Ok(InjectOutcome::Already);
            }
            *self.injected.lock().expect("no panic") = (trusted.to_owned(), self.now);
            Ok(InjectOutcome::Now)
        }

        async fn get_secret(&self) -> Result<Option<Secret>, CertError> {
            Ok(self.secret.clone())
        }

        async fn put_secret(&self, _: &Secret) -> Result<InjectOutcome, CertError> {
            panic!("only the certificate issuer may write the Secret");
        }

        fn on_secret_repaired(&self, _: &str) {
            panic!("only the certificate issuer may write the Secret");
        }

        async fn all_replicas_serve(&self, _: &str) -> Result<bool, CertError> {
            Ok(false)
        }

        fn read_served(&self) -> Option<CertKeyPair> {
            self.served.lock().expect("no panic").clone()
        }

        fn write_files(&self, pair: &CertKeyPair) -> Result<(), CertError> {
            *self.served.lock().expect("no panic") = Some(pair.clone());
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_replica_that_has_just_started_waits_no_longer_than_the_others() {
        let mut cluster = Fake::new();
        let mut first = SyncState::default();
        assert!(!cluster.sync_once(&mut first).await.expect("no error"));
        cluster.now += PROPAGATION_DELAY - SECOND;
        let mut second = SyncState::default();
        assert!(!cluster.sync_once(&mut first).await.expect("no error"));
        assert!(!cluster.sync_once(&mut second).await.expect("no error"));
        cluster.now += SECOND;
        assert!(cluster.sync_once(&mut second).await.expect("no error"));
    }

    #[tokio::test]
    async fn the_ca_bundle_is_restored_even_if_the_secret_is_missing() {
        let mut cluster = Fake::new();
        let mut state = SyncState::default();
        cluster.sync_once(&mut state).await.expect("no error");
        let trusted = cluster.trusted();
        let secret = cluster.secret.take();
        cluster.now += PROPAGATION_DELAY - SECOND;
        cluster.injected.lock().expect("no panic").0.clear();
        assert!(matches!(
            cluster.sync_once(&mut state).await,
            Err(CertError::SecretNotFound)
        ));
        assert_eq!(cluster.trusted(), trusted);
        // Restored, it has to wait for the propagation delay again.
        cluster.secret = secret;
        cluster.now += PROPAGATION_DELAY - SECOND;
        assert!(!cluster.sync_once(&mut state).await.expect("no error"));
        cluster.now += SECOND;
        assert!(cluster.sync_once(&mut state).await.expect("no error"));
    }
}
