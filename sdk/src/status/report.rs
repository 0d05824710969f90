//! Report on an installation, and its text.

use jiff::Timestamp;
use serde::Serialize;

use crate::installation::age::age;
use crate::printer::plain_table;
use crate::status::certificate::Certificate;
use crate::status::crds::CrdReport;
use crate::status::leader::LeaderReport;
use crate::status::objects::KindReport;
use crate::status::pods::{DeploymentStatus, PodStatus};
use crate::status::queue::QueueDepth;
use crate::status::visible::Visible;
use crate::status::watches::DisconnectedWatch;
use crate::status::webhooks::{WebhookReport, Webhooks};

/// Report on an installation.
#[derive(Serialize)]
pub(crate) struct Report {
    /// Sentences; empty if the installation is healthy as far as it is visible.
    pub(crate) problems: Vec<String>,
    pub(crate) namespace: String,
    /// The watched namespaces; empty for all.
    pub(crate) watched_namespaces: Vec<String>,
    pub(crate) deployments: Visible<Vec<DeploymentStatus>>,
    pub(crate) pods: Visible<Vec<PodStatus>>,
    pub(crate) crds: Vec<CrdReport>,
    /// Absent in a namespaced installation.
    pub(crate) webhooks: Option<Webhooks>,
    /// Absent if only the webhook runs, as are the queues.
    pub(crate) leader: Option<Visible<LeaderReport>>,
    pub(crate) queues: Option<Visible<Vec<QueueDepth>>>,
    /// Watches that are down or silent, for every Pod.
    pub(crate) watches: Visible<Vec<DisconnectedWatch>>,
    /// Rights that the controller lacks, of those that the manifests grant.
    pub(crate) missing_rights: Visible<Vec<String>>,
    pub(crate) objects: Vec<KindReport>,
}

impl Report {
    /// Returns the report as one screen of text.
    pub(crate) fn to_text(&self) -> String {
        let now = Timestamp::now();
        let mut out = self.summary();
        out.push_str(&self.workloads());
        out.push_str(&self.controllers(now));
        if let Some(webhooks) = &self.webhooks {
            out.push_str(&webhooks_text(webhooks, now));
        }
        out.push_str(&self.crds_text());
        out.push_str(&self.objects_text());
        out
    }

    fn summary(&self) -> String {
        let scope = match self.watched_namespaces.as_slice() {
            [] => "all namespaces".to_owned(),
            names => names.join(", "),
        };
        let place = format!("Installation in {}, for {scope}", self.namespace);
        if self.problems.is_empty() {
            return format!("{place}: healthy\n\n");
        }
        let problems = self
            .problems
            .iter()
            .map(|problem| format!("  - {problem}\n"));
        let problems: String = problems.collect();
        format!("{place}: {} problems\n{problems}\n", self.problems.len())
    }

    fn workloads(&self) -> String {
        let mut table = plain_table(["DEPLOYMENT / POD", "READY", "RESTARTS", "IMAGE"]);
        match &self.deployments {
            Visible::Known(all) => {
                for one in all {
                    let ready = format!("{}/{}", one.ready, one.desired);
                    table.add_row([&one.name, &ready, "", &one.images.join(", ")]);
                }
            }
            unknown @ Visible::Unknown { .. } => {
                table.add_row(["Deployments", &unknown.text(|_| String::new())]);
            }
        }
        match &self.pods {
            Visible::Known(all) => {
                for one in all {
                    let name = format!("  {}", one.name);
                    let restarts = one.restarts.to_string();
                    let ready = if one.is_ready { "yes" } else { "no" };
                    table.add_row([&name, ready, &restarts, &one.images.join(", ")]);
                }
            }
            unknown @ Visible::Unknown { .. } => {
                table.add_row(["Pods", &unknown.text(|_| String::new())]);
            }
        }
        format!("{}\n\n", table.trim_fmt())
    }

    fn controllers(&self, now: Timestamp) -> String {
        let (Some(leader), Some(queues)) = (&self.leader, &self.queues) else {
            return String::new();
        };
        let mut table = plain_table(["LEADER", "SINCE", "QUEUE DEPTH", "WATCHES", "RIGHTS"]);
        let since = leader.known().and_then(|leader| leader.since);
        let since = since.map_or(String::new(), |since| age(since, now));
        let queues = queues.text(|queues| {
            let each = queues.iter();
            let each = each.map(|queue| format!("{} {}", queue.controller, queue.depth));
            each.collect::<Vec<_>>().join(", ")
        });
        let watches = self.watches.text(|watches| match watches.len() {
            0 => "all connected".to_owned(),
            count => format!("{count} not connected"),
        });
        let rights = rights_text(&self.missing_rights);
        table.add_row([
            leader.text(LeaderReport::text),
            since,
            queues,
            watches,
            rights,
        ]);
        format!("{}\n\n", table.trim_fmt())
    }

    fn crds_text(&self) -> String {
        let mut table = plain_table(["CRD", "STATE"]);
        for crd in &self.crds {
            let state = crd.state.text(|state| state.text().to_owned());
            table.add_row([&crd.name, &state]);
        }
        format!("{}\n\n", table.trim_fmt())
    }

    fn objects_text(&self) -> String {
        let header = [
            "KIND",
            "OBJECTS",
            "READY",
            "RECONCILING",
            "INVALID",
            "STALLED",
            "PAUSED",
            "DELETING",
        ];
        let mut table = plain_table(header);
        for KindReport { kind, objects } in &self.objects {
            match objects {
                Visible::Known(counts) => {
                    let numbers = [
                        counts.total,
                        counts.ready,
                        counts.reconciling,
                        counts.invalid,
                        counts.stalled,
                        counts.paused,
                        counts.deleting,
                    ];
                    let numbers = numbers.map(|number| number.to_string());
                    table.add_row([&[kind.clone()][..], &numbers].concat());
                }
                unknown @ Visible::Unknown { .. } => {
                    table.add_row([kind, &unknown.text(|_| String::new())]);
                }
            }
        }
        format!("{}\n", table.trim_fmt())
    }
}

fn rights_text(missing: &Visible<Vec<String>>) -> String {
    missing.text(|missing| match missing.len() {
        0 => "complete".to_owned(),
        count => format!("{count} missing"),
    })
}

fn webhooks_text(webhooks: &Webhooks, now: Timestamp) -> String {
    let mut table = plain_table(["WEBHOOK", "FAILURE POLICY", "CA", "AGE", "EXPIRES IN"]);
    let mut add = |kind: &str, found: &Visible<Vec<WebhookReport>>| match found {
        Visible::Known(found) => {
            for webhook in found {
                let (name, policy) = (&webhook.webhook, &webhook.failure_policy);
                let [count, since, until] = validity(&webhook.ca_bundle, now);
                table.add_row([name, policy, &count, &since, &until]);
            }
        }
        unknown @ Visible::Unknown { .. } => {
            table.add_row([kind, &unknown.text(|_| String::new())]);
        }
    };
    add("validating", &webhooks.validating);
    add("mutating", &webhooks.mutating);
    match &webhooks.serving {
        Visible::Known(serving) => {
            let [_, since, until] = validity(serving.get(..1).unwrap_or_default(), now);
            table.add_row(["serving certificate", "", "", &since, &until]);
        }
        unknown @ Visible::Unknown { .. } => {
            table.add_row(["serving certificate", &unknown.text(|_| String::new())]);
        }
    }
    format!("{}\n\n", table.trim_fmt())
}

/// Returns the number of certificates, and the age and remaining validity of the one that is valid the longest.
fn validity(certificates: &[Certificate], now: Timestamp) -> [String; 3] {
    let latest = certificates
        .iter()
        .max_by_key(|certificate| certificate.not_after);
    let Some(latest) = latest else {
        return ["none".to_owned(), String::new(), String::new()];
    };
    let until = if latest.not_after > now {
        age(now, latest.not_after)
    } else {
        "expired".to_owned()
    };
    let count = match certificates.len() {
        1 => "1 certificate".to_owned(),
        count => format!("{count} certificates"),
    };
    [count, age(latest.not_before, now), until]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_cannot_be_checked_are_shown_as_unknown() {
        assert_eq!(rights_text(&Visible::forbidden()), "unknown (forbidden)");
        assert_eq!(rights_text(&Visible::Known(Vec::new())), "complete");
        let missing = vec!["list secrets".to_owned()];
        assert_eq!(rights_text(&Visible::Known(missing)), "1 missing");
    }
}
