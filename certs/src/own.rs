//! Self-signed certificates: the installation generates its own CA.

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use crate::bundle::{Target, Written};
use crate::cluster::Cluster;
use crate::keeper::KeeperError;
use crate::keys::Keys;
use crate::plan::Plan;
use crate::secret;

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
pub(crate) async fn tend(
    cluster: &impl Cluster,
    name: &str,
    plan: &Plan,
    targets: &[Target],
) -> Result<Keys, KeeperError> {
    for _ in 0..ATTEMPTS {
        // A failure for one target must not block the other targets or the webhook.
        let mut failure = None;
        let mut found = Vec::new();
        for target in targets {
            match cluster.look(target).await {
                Ok(one) => found.extend(one.map(|one| (target, one))),
                Err(error) => failure = Some(error),
            }
        }
        let (mut stored, keys) = match cluster.load().await? {
            None => (empty(name), None),
            // A Secret that an installer created empty, or that is incomplete, contains no keys.
            Some(stored) => {
                let keys = secret::read(&stored);
                if let Some(keys) = &keys {
                    keys.check().map_err(KeeperError::Foreign)?;
                }
                (stored, keys)
            }
        };
        let Some(keys) = keys else {
            tracing::info!(secret = name, "generating a new CA and serving certificate");
            secret::write(&mut stored, &plan.fresh(cluster.now())?);
            cluster.store(&stored).await?;
            continue;
        };
        // The stored pair may be served at any time, even before its CA is injected where it is missing: it is
        // stored only when it may be served (see `Plan::next`).
        cluster.serve(&keys.serving)?;
        let trusted = keys.trusted();
        let lacks = |target: &Target, found| {
            let carried = target.carried(found);
            carried.iter().any(|one| one.as_deref() != Some(&trusted))
        };
        // Store the restart of the propagation delay before the CA bundle is restored: a replica that continues
        // from here must not count the time before.
        if found.iter().any(|(target, found)| lacks(target, found))
            && let Some(anew) = keys.waiting_anew()
        {
            secret::write(&mut stored, &anew);
            cluster.store(&stored).await?;
            continue;
        }
        let mut conflict = false;
        for (target, found) in &found {
            match cluster.carry(target, found, &trusted).await {
                Ok(Written::Already | Written::Now) => {}
                Ok(Written::Conflict) => conflict = true,
                Err(error) => failure = Some(error),
            }
        }
        if conflict {
            continue;
        }
        let mut all_show = false;
        if !keys.outgoing.is_empty() {
            match cluster.all_show(&keys.signing.certificate).await {
                Ok(shown) => all_show = shown,
                Err(error) => failure = Some(error),
            }
        }
        let now = cluster.now();
        let next = match &failure {
            None => plan.next(&keys, all_show, now)?,
            // A new pair of the same CA needs no change of any configuration.
            Some(_) => plan.renewed(&keys, now)?,
        };
        let Some((next, step)) = next else {
            return failure.map_or(Ok(keys), Err);
        };
        secret::write(&mut stored, &next);
        if cluster.store(&stored).await? == Written::Now {
            tracing::info!(secret = name, phase = next.phase().as_str(), "{step}");
        }
    }
    Err(KeeperError::Contended)
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
