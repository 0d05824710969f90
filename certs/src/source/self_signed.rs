//! Self-signed certificates: the installation generates its own CA.

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use crate::api::ClusterApi;
use crate::ca::bundle::CertificateBundle;
use crate::ca::repair::Witnesses;
use crate::ca::rotation::RotationPolicy;
use crate::error::CertError;
use crate::inject::target::{InjectOutcome, InjectTarget};
use crate::store::secret;

/// Maximum number of passes in a row, each of which may end in a conflict with another replica. After them, the next
/// attempt waits for the next tick.
const ATTEMPTS: usize = 32;

/// Updates the Secret, the serving certificate and the CA bundles by all steps that are due now, and returns the
/// resulting keys.
///
/// # Guarantees
///
/// Any number of replicas may run this concurrently, and each may stop at any point: every step is one write with
/// optimistic concurrency, and depends only on stored data. The configurations are read before the Secret, so that
/// a replica that was suspended in between cannot overwrite anything newer.
pub(crate) async fn sync(
    cluster: &impl ClusterApi,
    name: &str,
    policy: &RotationPolicy,
    targets: &[InjectTarget],
) -> Result<CertificateBundle, CertError> {
    for _ in 0..ATTEMPTS {
        // A failure for one target must not block the other targets or the webhook.
        let mut failure = None;
        let mut found = Vec::new();
        for target in targets {
            match cluster.get_target(target).await {
                Ok(one) => found.extend(one.map(|one| (target, one))),
                Err(error) => failure = Some(error),
            }
        }
        let Some((mut stored, keys)) = load(cluster, name, policy, targets).await? else {
            continue;
        };
        // The stored pair may be served at any time, even before its CA is injected where it is missing: it is
        // stored only when it may be served (see `RotationPolicy::next`).
        cluster.write_files(&keys.serving)?;
        let trusted = keys.ca_bundle();
        let lacks = |target: &InjectTarget, found| {
            let injected = target.injected_cas(found);
            injected.iter().any(|one| one.as_deref() != Some(&trusted))
        };
        // Store the restart of the propagation delay before the CA bundle is restored: a replica that continues
        // from here must not count the time before.
        if found.iter().any(|(target, found)| lacks(target, found))
            && let Some(restarted) = keys.with_restarted_delay()
        {
            secret::write(&mut stored, &restarted);
            cluster.put_secret(&stored).await?;
            continue;
        }
        let mut conflict = false;
        for (target, found) in &found {
            match cluster.inject_ca(target, found, &trusted).await {
                Ok(InjectOutcome::Already | InjectOutcome::Now) => {}
                Ok(InjectOutcome::Conflict) => conflict = true,
                Err(error) => failure = Some(error),
            }
        }
        if conflict {
            continue;
        }
        let mut all_serve = false;
        if !keys.previous_cas.is_empty() {
            match cluster
                .all_replicas_serve(&keys.current_ca.certificate)
                .await
            {
                Ok(serve) => all_serve = serve,
                Err(error) => failure = Some(error),
            }
        }
        let now = cluster.now();
        let next = match &failure {
            None => policy.next(&keys, all_serve, now)?,
            // A new pair of the same CA needs no change of any configuration.
            Some(_) => policy.renew_cert(&keys, now)?,
        };
        let Some((next, step)) = next else {
            return failure.map_or(Ok(keys), Err);
        };
        secret::write(&mut stored, &next);
        if cluster.put_secret(&stored).await? == InjectOutcome::Now {
            tracing::info!(secret = name, phase = next.phase().as_str(), "{step}");
        }
    }
    Err(CertError::Conflict)
}

/// Returns the Secret and its keys, or `None` once new or repaired keys have been written.
///
/// # Errors
///
/// The Secret cannot be read or written, or its content belongs to another owner.
async fn load(
    cluster: &impl ClusterApi,
    name: &str,
    policy: &RotationPolicy,
    targets: &[InjectTarget],
) -> Result<Option<(Secret, CertificateBundle)>, CertError> {
    let Some(mut stored) = cluster.get_secret().await? else {
        tracing::info!(secret = name, "generating a new CA and serving certificate");
        let mut stored = empty(name);
        secret::write(&mut stored, &policy.generate(cluster.now())?);
        cluster.put_secret(&stored).await?;
        return Ok(None);
    };
    let damage = match read(&stored) {
        Ok(keys) => return Ok(Some((stored, keys))),
        Err(damage) => damage,
    };
    let remains = secret::remains(&stored);
    if let Some(reason) = remains.foreign_content() {
        return Err(CertError::UnmanagedSecret { reason, damage });
    }
    // An installer may have created the Secret without content.
    let is_damaged = !secret::is_empty(&stored);
    let injected = if is_damaged && remains.has_lost_cas {
        injected_cas(cluster, targets).await?
    } else {
        Vec::new()
    };
    let witnesses = Witnesses {
        injected,
        served: cluster.read_served(),
    };
    let keys = policy.repair(&remains, &witnesses, cluster.now())?;
    secret::write(&mut stored, &keys);
    if cluster.put_secret(&stored).await? == InjectOutcome::Now && is_damaged {
        cluster.on_secret_repaired(damage);
    }
    Ok(None)
}

/// Returns the keys in the Secret, or the damage.
fn read(stored: &Secret) -> Result<CertificateBundle, &'static str> {
    let keys = secret::read(stored);
    let keys = keys.ok_or("a certificate or a key is missing or not readable")?;
    keys.check().map(|()| keys)
}

/// Returns the CA certificates in the configurations. All contain the same ones, so one of them is enough.
///
/// # Errors
///
/// A configuration cannot be read, and no other one contains a CA. New CAs would not be trusted there, and the lost ones
/// may still be.
async fn injected_cas(
    cluster: &impl ClusterApi,
    targets: &[InjectTarget],
) -> Result<Vec<String>, CertError> {
    let (mut certificates, mut failure) = (Vec::new(), None);
    for target in targets {
        match cluster.get_target(target).await {
            Ok(found) => {
                let found = found.iter();
                let bundles = found.flat_map(|found| target.injected_cas(found)).flatten();
                certificates
                    .extend(bundles.flat_map(|bundle| secret::readable_certificates(&bundle)));
            }
            Err(error) => {
                tracing::warn!(
                    target = target.name,
                    kind = ?target.kind,
                    %error,
                    "cannot read the CAs that are lost in the Secret from this configuration"
                );
                failure = Some(error);
            }
        }
    }
    match failure {
        Some(error) if certificates.is_empty() => Err(error),
        _ => Ok(certificates),
    }
}

fn empty(name: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests;
