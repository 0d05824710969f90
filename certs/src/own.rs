//! Keys that an installation makes for itself.

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use crate::bundle::{InjectOutcome, InjectTarget};
use crate::cluster::ClusterApi;
use crate::keeper::CertError;
use crate::keys::CertificateBundle;
use crate::plan::RotationPolicy;
use crate::secret;

/// How often in a row another replica may be faster before one waits for the next tick.
const ATTEMPTS: usize = 32;

/// Brings Secret, serving pair and configurations forward, as far as they go now, and gives the keys that
/// then stand.
///
/// # Guarantees
///
/// Any number of replicas may do it at once, and each may stop anywhere: every step is one write that
/// counts on what was read before, and is decided from what is stored alone. The configurations are looked
/// at before the Secret is: whoever has slept since can overwrite nothing newer.
pub(crate) async fn sync(
    cluster: &impl ClusterApi,
    name: &str,
    plan: &RotationPolicy,
    targets: &[InjectTarget],
) -> Result<CertificateBundle, CertError> {
    for _ in 0..ATTEMPTS {
        // What fails for one target must not keep the others, or the gate, from what they need.
        let mut failure = None;
        let mut found = Vec::new();
        for target in targets {
            match cluster.get_target(target).await {
                Ok(one) => found.extend(one.map(|one| (target, one))),
                Err(error) => failure = Some(error),
            }
        }
        let (mut stored, keys) = match cluster.get_secret().await? {
            None => (empty(name), None),
            // A Secret made empty by an installer, or one that somebody broke, holds none.
            Some(stored) => {
                let keys = secret::read(&stored);
                if let Some(keys) = &keys {
                    keys.check().map_err(CertError::UnmanagedSecret)?;
                }
                (stored, keys)
            }
        };
        let Some(keys) = keys else {
            tracing::info!(secret = name, "making a new CA and serving certificate");
            secret::write(&mut stored, &plan.generate(cluster.now())?);
            cluster.put_secret(&stored).await?;
            continue;
        };
        // What is trusted can be served, before anybody is told to trust it.
        cluster.write_files(&keys.serving)?;
        let trusted = keys.ca_bundle();
        let lacks = |target: &InjectTarget, found| {
            let carried = target.injected_cas(found);
            carried.iter().any(|one| one.as_deref() != Some(&trusted))
        };
        // Written down before it is repaired: whoever goes on must not count on time that is void.
        if found.iter().any(|(target, found)| lacks(target, found))
            && let Some(anew) = keys.with_restarted_delay()
        {
            secret::write(&mut stored, &anew);
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
        let mut all_show = false;
        if !keys.previous_cas.is_empty() {
            match cluster
                .all_replicas_serve(&keys.current_ca.certificate)
                .await
            {
                Ok(shown) => all_show = shown,
                Err(error) => failure = Some(error),
            }
        }
        let now = cluster.now();
        let next = match &failure {
            None => plan.next(&keys, all_show, now)?,
            // Nobody has to hear of a new pair of the same CA.
            Some(_) => plan.renew_cert(&keys, now)?,
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
