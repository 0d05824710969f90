//! Keys that somebody else makes and puts into a Secret: cert-manager, for example.

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

use crate::authority::{Pair, Period};
use crate::bundle::{Target, Written};
use crate::cluster::Cluster;
use crate::keeper::KeeperError;
use crate::secret;

/// What one replica remembers: since when every configuration has carried what, without a break.
#[derive(Default)]
pub(crate) struct Memory {
    carried: Option<(String, OffsetDateTime)>,
}

/// Takes a pair into service as soon as its CA is trusted everywhere. What was trusted before stays so
/// until every replica shows a certificate of the new CA.
pub(crate) async fn tend(
    cluster: &impl Cluster,
    name: &str,
    settle: Duration,
    targets: &[Target],
    memory: &mut Memory,
) -> Result<(), KeeperError> {
    let mut found = Vec::new();
    for target in targets {
        if let Some(one) = cluster.look(target).await? {
            found.push((target, one));
        }
    }
    let secret = cluster.load().await?.ok_or(KeeperError::Awaited)?;
    let pair = secret::pair(&secret).ok_or(KeeperError::Lacks("tls.crt and tls.key"))?;
    let ca = secret::trusted(&secret)
        .and_then(|trusted| secret::certificates(&trusted))
        .filter(|certificates| !certificates.is_empty())
        .ok_or(KeeperError::Lacks("ca.crt"))?;
    let now = cluster.now();
    check(&pair, &ca, name, now)?;

    let is_over = |certificate: &str| {
        Period::of(certificate).map_or(true, |period: Period| period.is_over(now))
    };
    let mut before: Vec<String> = Vec::new();
    for (target, found) in &found {
        let carried = target.carried(found).into_iter().flatten();
        for certificate in carried
            .filter_map(|text| secret::certificates(&text))
            .flatten()
        {
            if !ca.contains(&certificate)
                && !before.contains(&certificate)
                && !is_over(&certificate)
            {
                before.push(certificate);
            }
        }
    }
    let trusted_now = ca.concat();
    if !before.is_empty() && cluster.all_show(&trusted_now).await? {
        before.clear();
    }
    let trusted = format!("{trusted_now}{}", before.concat());
    for (target, found) in &found {
        match cluster.carry(target, found, &trusted).await? {
            Written::Already => {}
            Written::Now | Written::Conflict => memory.carried = None,
        }
    }
    let served = cluster.served();
    if served.as_ref() == Some(&pair) {
        return Ok(());
    }
    let carried = memory.carried.take();
    let since = carried.filter(|(what, since)| *what == trusted && *since <= now);
    let since = since.map_or(now, |(_, since)| since);
    memory.carried = Some((trusted, since));
    let nothing_to_lose =
        before.is_empty() || served.is_some_and(|served| is_over(&served.certificate));
    if nothing_to_lose || now >= since + settle {
        tracing::info!("serving the pair of the Secret");
        cluster.serve(&pair)?;
    }
    Ok(())
}

/// Refuses a pair that could not be served, or that no API server would trust.
fn check(pair: &Pair, ca: &[String], name: &str, now: OffsetDateTime) -> Result<(), KeeperError> {
    let unfit = |problem: String| KeeperError::Unfit(problem);
    let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
    let chain: Vec<_> = chain
        .collect::<Result<_, _>>()
        .map_err(|error| unfit(format!("`tls.crt` is no PEM: {error}")))?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())
        .map_err(|_| unfit("`tls.key` holds no PEM private key".to_owned()))?;
    let key = any_supported_type(&key)
        .map_err(|error| unfit(format!("`tls.key` cannot sign: {error}")))?;
    CertifiedKey::new(chain.clone(), key)
        .keys_match()
        .map_err(|error| unfit(format!("`tls.key` is not the key of `tls.crt`: {error}")))?;
    is_trusted(&chain, ca, name, now).map_err(|error| {
        unfit(format!(
            "`tls.crt` is not one for {name} by `ca.crt`: {error}"
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
