//! Modifications that RDS rejects: each is visible at its object, and keeps no other one from being applied.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{NAMESPACE, condition};

/// Error of RDS, and the words by which it is recognized.
const CODE: &str = "InvalidParameterCombination";
const TEXT: &str = "this window is refused";

/// Annotation that requests a reconciliation.
const REQUESTED_AT: &str = "lockstep.dev/reconcile-requested-at";

/// Maintenance windows that databases get.
const WINDOWS: [&str; 3] = [
    "sun:01:00-sun:02:00",
    "mon:01:00-mon:02:00",
    "tue:01:00-tue:02:00",
];

/// Lets RDS reject every change of a maintenance window.
pub fn start(rds: &Simulator) {
    rds.refuse("ModifyDBInstance", "PreferredMaintenanceWindow", CODE, TEXT);
}

/// Accepts the changes from now on, and requests those that were rejected again, as users do when they know of the reason.
pub async fn end(rds: &Simulator, databases: &Api<DynamicObject>) {
    rds.clear_injections();
    let all = databases.list(&ListParams::default()).await;
    for database in all.expect("databases") {
        request(databases, &database).await.expect("a request");
    }
}

/// Requests the reconciliation of an object.
async fn request(
    databases: &Api<DynamicObject>,
    database: &DynamicObject,
) -> Result<(), kube::Error> {
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let patch = json!({"metadata": {"annotations": {REQUESTED_AT: now}}});
    let params = PatchParams::default();
    let name = database.name_any();
    let patched = databases.patch(&name, &params, &Patch::Merge(patch)).await;
    patched.map(drop)
}

/// Requests again what may have been changed although its answer was lost, or a process has ended before it, as the condition says.
/// Returns the number of objects.
pub async fn requests_unknown_outcomes(databases: &Api<DynamicObject>) -> Option<usize> {
    let mut requested = 0;
    for database in databases.list(&ListParams::default()).await.ok()? {
        let synced = condition(&database, "Synced");
        // The reason is that of the most important field, such as a refusal. The message says what to do about each.
        let is_unknown = synced.is_some_and(|synced| synced.message.contains(REQUESTED_AT));
        let before = database.annotations().get(REQUESTED_AT);
        let handled = database.data["status"]["lastHandledReconcileAt"].as_str();
        if is_unknown && before.map(String::as_str) == handled {
            request(databases, &database).await.ok()?;
            requested += 1;
        }
    }
    Some(requested)
}

/// Gives a database a maintenance window, which it may have had before.
pub fn add_window(object: &mut Value, rng: &mut Rng) {
    object["spec"]["maintenanceWindow"] = json!(WINDOWS[rng.usize(..WINDOWS.len())]);
}

/// Refusals that are visible in Events, by the UIDs of their objects.
#[derive(Default)]
pub struct Reported(BTreeMap<String, BTreeSet<String>>);

impl Reported {
    /// Reads the Events; None if the API server does not respond.
    pub async fn read(client: Client) -> Option<Self> {
        let events: Api<Event> = Api::namespaced(client, NAMESPACE);
        let events = events.list(&ListParams::default()).await.ok()?;
        let mut reported = Self::default();
        for event in events {
            let uid = event.regarding.and_then(|it| it.uid).unwrap_or_default();
            let note = event.note.unwrap_or_default();
            if event.type_.as_deref() == Some("Warning") && note.contains(TEXT) {
                reported.0.entry(uid).or_default().insert(note);
            }
        }
        Some(reported)
    }

    /// Returns a problem of an object whose window RDS has refused, unless `Synced` and an Event tell it.
    pub fn problem(&self, object: &DynamicObject) -> Option<String> {
        let name = object.name_any();
        let synced = condition(object, "Synced");
        let is_told = synced
            .as_ref()
            .is_some_and(|it| it.status == "False" && it.message.contains(TEXT));
        if !is_told {
            return Some(format!("{name} does not report a refusal: {synced:?}"));
        }
        let uid = object.uid().unwrap_or_default();
        (!self.0.contains_key(&uid)).then(|| format!("{name} has no Event of a refusal"))
    }
}
