//! Leader of the controllers, or the replicas that share the objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::installation::Installation;
use crate::installation::lease::Leader;
use crate::status::section::Section;
use crate::status::visible::Visible;

/// Leader of the controllers, if there is one.
#[derive(Serialize)]
pub(crate) struct LeaderReport {
    pub(crate) holder: Option<String>,
    pub(crate) since: Option<Timestamp>,
    /// The last leader has just released the Lease.
    pub(crate) handover: bool,
    /// Number of shards that each replica holds, if replicas share the objects by shards.
    pub(crate) shards: Option<BTreeMap<String, usize>>,
}

impl LeaderReport {
    /// Returns the names of the Pods that reconcile objects.
    pub(crate) fn reconciling(&self) -> Vec<&str> {
        match &self.shards {
            Some(shards) => shards.keys().map(String::as_str).collect(),
            None => self.holder.as_deref().into_iter().collect(),
        }
    }

    /// Returns who reconciles objects, as text.
    pub(crate) fn text(&self) -> String {
        if let Some(shards) = &self.shards {
            let each = shards.iter();
            let each = each.map(|(replica, count)| format!("{replica} ({count} shards)"));
            return each.collect::<Vec<_>>().join(", ");
        }
        match &self.holder {
            Some(holder) => holder.clone(),
            None if self.handover => "none (handover)".to_owned(),
            None => "none".to_owned(),
        }
    }
}

pub(crate) async fn read(
    installation: &Installation<'_>,
) -> Result<Section<Visible<LeaderReport>>, kube::Error> {
    let read = async {
        let leader = Leader::read(installation).await?;
        let shards = leader.read_shards(installation).await?;
        Ok((leader, shards))
    };
    let leader = Visible::of(read.await)?;
    let problem = leader.known().and_then(|(leader, shards)| {
        let of_shards = problem_of_shards(shards);
        problem(leader).or(of_shards)
    });
    let content = leader.map(|(leader, shards)| report(leader, &shards));
    Ok(Section {
        content,
        problems: problem.into_iter().collect(),
    })
}

fn report(leader: Leader, shards: &[Leader]) -> LeaderReport {
    let mut counts = BTreeMap::new();
    for shard in shards {
        if let Leader::Held { holder, .. } = shard {
            *counts.entry(holder.clone()).or_default() += 1;
        }
    }
    let handover = leader == Leader::Handover;
    let (holder, since) = match leader {
        Leader::Held { holder, since } => (Some(holder), since),
        _ => (None, None),
    };
    LeaderReport {
        holder,
        since,
        handover,
        shards: (!shards.is_empty()).then_some(counts),
    }
}

fn problem(leader: &Leader) -> Option<String> {
    let why = match leader {
        Leader::Held { .. } | Leader::Handover => return None,
        Leader::NoLease => "the Lease does not exist".to_owned(),
        Leader::Released => "the Lease is released".to_owned(),
        Leader::Expired { holder, renewed } => {
            format!("{holder} renewed the Lease at {renewed} for the last time")
        }
    };
    Some(format!(
        "no controller is the leader, so no object is reconciled: {why}"
    ))
}

fn problem_of_shards(shards: &[Leader]) -> Option<String> {
    let is_held = |shard: &Leader| matches!(shard, Leader::Held { .. } | Leader::Handover);
    let without = shards
        .iter()
        .enumerate()
        .filter(|(_, shard)| !is_held(shard));
    let without: Vec<_> = without.map(|(at, _)| at.to_string()).collect();
    (!without.is_empty()).then(|| {
        format!(
            "no controller holds these shards, so their objects are not reconciled: {}",
            without.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(holder: &str) -> Leader {
        Leader::Held {
            holder: holder.to_owned(),
            since: None,
        }
    }

    #[test]
    fn the_shards_of_each_replica_are_counted_and_those_without_a_holder_are_a_problem() {
        let shards = [
            held("pod-0"),
            Leader::Handover,
            held("pod-1"),
            held("pod-0"),
        ];
        let found = report(held("shards/4"), &shards);
        assert_eq!(found.text(), "pod-0 (2 shards), pod-1 (1 shards)");
        assert_eq!(found.reconciling(), ["pod-0", "pod-1"]);
        assert_eq!(problem_of_shards(&shards), None);
        let shards = [held("pod-0"), Leader::NoLease, Leader::Released];
        let problem = problem_of_shards(&shards).expect("a problem");
        assert!(problem.ends_with("are not reconciled: 1, 2"), "{problem}");
        let alone = report(held("pod-0"), &[]);
        assert_eq!(alone.text(), "pod-0");
        assert_eq!(alone.reconciling(), ["pod-0"]);
    }
}
