//! Leader of the controllers.

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
}

pub(crate) async fn read(
    installation: &Installation<'_>,
) -> Result<Section<Visible<LeaderReport>>, kube::Error> {
    let leader = Leader::read(installation).await;
    let leader = Visible::of(leader)?;
    let problem = leader.known().and_then(problem);
    let content = leader.map(|leader| {
        let handover = leader == Leader::Handover;
        let (holder, since) = match leader {
            Leader::Held { holder, since } => (Some(holder), since),
            _ => (None, None),
        };
        LeaderReport {
            holder,
            since,
            handover,
        }
    });
    Ok(Section {
        content,
        problems: problem.into_iter().collect(),
    })
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
