//! Directory of the nodes in which the Pods of a workload keep their data.
//!
//! Pods of two workloads with one directory on one node take each other's locks of disk buffers and read positions, so that a
//! new workload has a directory of its own. One that has run in another one stays there, and so does its data.

use kube::api::ApiResource;
use lockstep_controller::{OperatorCondition, Reference, Watch};
use lockstep_vector_api::Workload;
use serde_json::Value;

use crate::run::condition::warning;
use crate::run::names::Names;

/// Directory of the operator of kaasops and of earlier releases, which all workloads had.
const SHARED: &str = "/var/lib/vector";

/// Parent of the directories of new workloads.
const PARENT: &str = "/var/lib/vector-workloads";

/// Field of the status with the directory.
pub(crate) const FIELD: &str = "dataDirectory";

/// Type of the condition of a workload whose directory another one has had before.
const CONDITION: &str = "DataDirectoryShared";

/// Facts that decide the directory of a workload.
pub(crate) struct Facts<'a> {
    pub(crate) workload: Option<&'a Workload>,
    pub(crate) names: &'a Names,
    /// The workload as stored.
    pub(crate) raw: &'a Value,
    /// Directory of its Pods.
    pub(crate) live: Option<&'a str>,
    /// If true, the object that runs Vector exists.
    pub(crate) exists: bool,
    /// If true, the policy has the preset for kaasops.
    pub(crate) is_kaasops: bool,
}

impl Facts<'_> {
    /// Returns the directory: the one that the workload names, else the one that its Pods have or had, else its own.
    pub(crate) fn directory(&self) -> String {
        let explicit = self
            .workload
            .and_then(|workload| workload.data_dir.as_deref());
        let explicit = explicit.filter(|directory| !directory.is_empty());
        let recorded = self.raw["status"][FIELD].as_str();
        let shared = (self.exists || self.is_kaasops).then_some(SHARED);
        let known = explicit.or(self.live).or(recorded).or(shared);
        known.map_or_else(
            || format!("{PARENT}/{}/{}", self.names.namespace, self.names.name),
            str::to_owned,
        )
    }
}

/// Workload, as far as another one of its kind with the same directory depends on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DirectoryUser {
    created: String,
    uid: String,
    name: String,
}

impl DirectoryUser {
    fn new(workload: &Value) -> Self {
        let metadata = &workload["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let name = match text("namespace") {
            "" => text("name").to_owned(),
            namespace => format!("{namespace}/{}", text("name")),
        };
        Self {
            created: text("creationTimestamp").to_owned(),
            uid: text("uid").to_owned(),
            name,
        }
    }
}

/// Returns the index key of the workloads with the directory of one that has Pods.
pub(crate) fn key(workload: &Value) -> Option<String> {
    let directory = workload["status"][FIELD].as_str()?;
    Some(format!("directory {directory}"))
}

/// Returns the watch by which a workload knows the others of its kind with its directory.
pub(crate) fn watch(kind: ApiResource) -> Watch {
    let references =
        |workload: &Value| key(workload).map(Reference::IndexKey).into_iter().collect();
    Watch::dynamic(kind, references).index_by(|workload| {
        let is_deleted = !workload["metadata"]["deletionTimestamp"].is_null();
        let keys = key(workload).filter(|_| !is_deleted);
        (keys.into_iter().collect(), DirectoryUser::new(workload))
    })
}

/// Returns the condition of a workload, with all that have its directory. None if there is nothing to report.
pub(crate) fn condition(
    workload: &Value,
    users: impl IntoIterator<Item = DirectoryUser>,
) -> Option<OperatorCondition> {
    let own = DirectoryUser::new(workload);
    let oldest = users.into_iter().min().filter(|oldest| *oldest < own);
    let directory = workload["status"][FIELD].as_str().unwrap_or_default();
    let problem = oldest.map(|oldest| {
        format!(
            "`{}` has the data directory '{directory}', too: where Pods of both run on one node, they take each other's disk buffers and read positions; set another `dataDir` here, or let the Pods run on other nodes",
            oldest.name
        )
    });
    warning(workload, CONDITION, problem)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn directory(explicit: Option<&str>, facts: &Facts<'_>) -> String {
        let workload = Workload {
            data_dir: explicit.map(str::to_owned),
            ..Workload::default()
        };
        let workload = Some(&workload);
        Facts { workload, ..*facts }.directory()
    }

    #[test]
    fn a_new_workload_has_its_own_and_data_stays_where_it_is() {
        let names = Names {
            name: "logs-agent".to_owned(),
            namespace: "infra".to_owned(),
            event_collector: String::new(),
        };
        let (nothing, recorded) = (json!({}), json!({"status": {FIELD: "/recorded"}}));
        let new = Facts {
            workload: None,
            names: &names,
            raw: &nothing,
            live: None,
            exists: false,
            is_kaasops: false,
        };
        let own = "/var/lib/vector-workloads/infra/logs-agent";
        assert_eq!(new.directory(), own);
        assert_eq!(directory(None, &new), own);
        assert_eq!(directory(Some(""), &new), own);
        assert_eq!(directory(Some("/d"), &new), "/d");
        let is_kaasops = Facts {
            is_kaasops: true,
            ..new
        };
        assert_eq!(directory(None, &is_kaasops), SHARED);
        let of_before = Facts {
            exists: true,
            ..new
        };
        assert_eq!(directory(None, &of_before), SHARED);
        let known = Facts {
            raw: &recorded,
            ..of_before
        };
        assert_eq!(directory(None, &known), "/recorded");
        let running = Facts {
            live: Some("/live"),
            ..known
        };
        assert_eq!(directory(None, &running), "/live");
        assert_eq!(directory(Some("/d"), &running), "/d");
    }

    fn workload(name: &str, second: u8, is_reported: bool) -> Value {
        let conditions = if is_reported {
            json!([{"type": CONDITION, "status": "True"}])
        } else {
            json!([])
        };
        json!({
            "metadata": {
                "namespace": "n",
                "name": name,
                "uid": name,
                "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
            },
            "status": {FIELD: "/var/lib/vector", "conditions": conditions},
        })
    }

    #[test]
    fn the_younger_of_two_with_one_directory_reports_it() {
        let (old, young) = (workload("b", 1, false), workload("a", 2, false));
        let users = || [&old, &young].map(DirectoryUser::new);
        assert_eq!(condition(&old, users()), None);
        let shared = condition(&young, users()).expect("a condition");
        assert!(
            shared.is_true && shared.message.starts_with("`n/b` has"),
            "{shared:?}"
        );
        let alone = condition(&workload("a", 2, true), [DirectoryUser::new(&young)]);
        assert!(!alone.expect("a condition").is_true);
        assert_eq!(condition(&young, [DirectoryUser::new(&young)]), None);
    }
}
