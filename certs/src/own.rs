//! Keys that an installation makes for itself.

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;

use crate::bundle::{Target, Written};
use crate::cluster::Cluster;
use crate::keeper::KeeperError;
use crate::keys::Keys;
use crate::plan::{Plan, Sight};
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
pub(crate) async fn tend(
    cluster: &impl Cluster,
    name: &str,
    plan: &Plan,
    targets: &[Target],
) -> Result<Keys, KeeperError> {
    for _ in 0..ATTEMPTS {
        let mut found = Vec::new();
        for target in targets {
            found.push((target, cluster.look(target).await?));
        }
        let (mut stored, keys) = match cluster.load().await? {
            None => (empty(name), None),
            // A Secret made empty by an installer, or one that somebody broke, holds none.
            Some(stored) => {
                let keys = secret::read(&stored);
                (stored, keys)
            }
        };
        let Some(keys) = keys else {
            tracing::info!(secret = name, "making a new CA and serving certificate");
            secret::write(&mut stored, &plan.fresh(cluster.now())?);
            cluster.store(&stored).await?;
            continue;
        };
        // What is trusted can be served, before anybody is told to trust it.
        cluster.serve(&keys.serving)?;
        let trusted = keys.trusted();
        let (mut repaired, mut conflict) = (false, false);
        for (target, found) in &found {
            if let Some(found) = found {
                match cluster.carry(target, found, &trusted).await? {
                    Written::Already => {}
                    Written::Now => repaired = true,
                    Written::Conflict => conflict = true,
                }
            }
        }
        if conflict {
            continue;
        }
        let all_show =
            !keys.outgoing.is_empty() && cluster.all_show(&keys.signing.certificate).await?;
        let sight = Sight { repaired, all_show };
        let Some((next, step)) = plan.next(&keys, sight, cluster.now())? else {
            return Ok(keys);
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
