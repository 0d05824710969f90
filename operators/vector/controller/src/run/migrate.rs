//! Names of components that change: which Pods run with which names, and which data must be moved.
//!
//! Vector keeps its data in directories with the names of its components. If the names change, the Pods are replaced one
//! by one, and each moves the data before Vector starts. Until then, an old Pod needs the configuration with the old
//! names: it would reload one with the new names at once, and begin anew. So the new names are published in another
//! Secret, and both are kept current until all Pods are replaced.
//!
//! The names with which the Pods run are recorded in an annotation of the object with their template. The stored parts do
//! not tell them: a write of that object can fail after theirs.
//!
//! ```text
//! settled ── other names, and data to move ─► migrating ── all Pods replaced ─► settled
//! ```

use std::collections::BTreeMap;

use lockstep_vector_api::ComponentNames;
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, DataLayout, DataMoves, PipelineKey, PipelinePart,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::gzip;
use crate::owned::{self, DATA_LAYOUT, DATA_MIGRATION, GLOBAL_OPTIONS_CHECKSUM};

/// Layout of the operator of kaasops, unless it merges sources.
pub(crate) const OF_KAASOPS: DataLayout = DataLayout {
    component_names: ComponentNames::Dashes,
    merge_sources: false,
};

/// Names of the present Pods of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PresentNames {
    /// End of the name of the Secret that the Pods mount.
    suffix: Option<String>,
    /// Layout with which the Pods of the template run. None if nothing at the workload tells it.
    recorded: Option<DataLayout>,
    /// Migration that is not finished.
    running: Option<Migration>,
    /// Image of the init container in the template.
    image: Option<String>,
    /// If true, the workload exists.
    exists: bool,
    /// If true, this controller has written the template.
    is_ours: bool,
}

/// Migration to other names, as it is recorded in an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Migration {
    /// Names of the Pods that are not replaced yet.
    from: DataLayout,
    /// Names of the new Pods.
    to: DataLayout,
    /// End of the name of the Secret that the old Pods mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// Names to publish.
#[derive(Debug, PartialEq)]
pub(crate) struct PublishedNames {
    /// End of the name of the Secret with the configuration.
    pub(crate) suffix: Option<String>,
    /// Layout of the configuration.
    pub(crate) layout: DataLayout,
    /// Migration that is not finished, with the configuration of the old Pods and the data to move. There is none to move
    /// if that is not wanted any more.
    pub(crate) running: Option<(Migration, Assembly, Option<DataMoves>)>,
}

impl PresentNames {
    /// Returns true if the workload exists.
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    /// Reads the names from the observed object that runs Vector.
    pub(crate) fn new(live: Option<&Value>, object_name: &str, is_rolled_out: bool) -> Self {
        let Some(live) = live else {
            return Self {
                suffix: None,
                recorded: None,
                running: None,
                image: None,
                exists: false,
                is_ours: false,
            };
        };
        let annotations = &live["metadata"]["annotations"];
        let running = annotations[DATA_MIGRATION].as_str();
        let running: Option<Migration> = running.and_then(|text| serde_json::from_str(text).ok());
        // Other operators have Secrets with other ends.
        let is_known = |suffix: &&str| layout_of(suffix).is_some();
        let suffix = owned::live_suffix(live, object_name).filter(is_known);
        let recorded = annotations[DATA_LAYOUT].as_str();
        let recorded = recorded.and_then(|layout| layout.parse().ok());
        let of_secret = || suffix.and_then(layout_of);
        // The labels of the toolkit can be written without the template. This annotation is part of each template, or
        // written together with it.
        let template = &live["spec"]["template"]["metadata"]["annotations"];
        let mut checksums = [annotations, template].into_iter();
        Self {
            recorded: recorded.or_else(of_secret),
            suffix: suffix.map(str::to_owned),
            running: running.filter(|_| !is_rolled_out),
            image: owned::migration_image(live).map(str::to_owned),
            exists: true,
            is_ours: checksums.any(|it| it[GLOBAL_OPTIONS_CHECKSUM].is_string()),
        }
    }

    /// Returns the image of the init container that remains in the template after the migration: its removal alone would
    /// replace all Pods once more. If moves are not wanted, it is removed nevertheless: Pods may wait for its image.
    pub(crate) fn remaining_image(
        &self,
        published: &PublishedNames,
        is_wanted: bool,
    ) -> Option<&str> {
        let image = self.image.as_deref();
        image.filter(|_| is_wanted && published.running.is_none())
    }

    /// Returns the layout in which the workload is assembled. A migration is finished before another one begins: otherwise
    /// the names on a node would be unknown.
    pub(crate) fn layout(&self, desired: DataLayout, may_move: bool) -> DataLayout {
        let running = self.running.as_ref().filter(|_| may_move);
        running.map_or(desired, |migration| migration.to)
    }

    /// Returns the names of the Pods after the migration that runs now.
    pub(crate) fn after_migration(&self) -> Self {
        let settled = self.running.as_ref().map(|migration| migration.to);
        Self {
            recorded: settled.or(self.recorded),
            running: None,
            ..self.clone()
        }
    }

    /// Returns the names to publish. `before` are the parts that are published now.
    pub(crate) fn publish(
        &self,
        options: &AssemblyOptions,
        assembly: &Assembly,
        before: &BTreeMap<PipelineKey, PipelinePart>,
        may_move: bool,
    ) -> PublishedNames {
        let settled = PublishedNames {
            suffix: self.suffix.clone(),
            layout: options.layout(),
            running: None,
        };
        if !self.exists {
            return settled;
        }
        if !may_move {
            // The Pods that are not replaced yet need their configuration nevertheless.
            let running = self.running.clone().map(|migration| {
                let old = assembly.in_layout(&options.in_layout(migration.from));
                let to = options.layout();
                (Migration { to, ..migration }, old, None)
            });
            return PublishedNames { running, ..settled };
        }
        let (migration, suffix) = match &self.running {
            Some(running) => (running.clone(), self.suffix.clone()),
            None => {
                let migration = Migration {
                    from: self.present_layout(options, before),
                    to: options.layout(),
                    secret: self.suffix.clone(),
                };
                (migration, Some(self.next_suffix(options)))
            }
        };
        let old = assembly.in_layout(&options.in_layout(migration.from));
        let moves = Some(DataMoves::between(&old, assembly));
        if self.running.is_none() && !has_data_to_move(&old, assembly, before) {
            return settled;
        }
        PublishedNames {
            suffix,
            layout: options.layout(),
            running: Some((migration, old, moves)),
        }
    }

    /// Returns the layout with which the Pods run.
    fn present_layout(
        &self,
        options: &AssemblyOptions,
        before: &BTreeMap<PipelineKey, PipelinePart>,
    ) -> DataLayout {
        self.recorded.unwrap_or_else(|| {
            if !self.is_ours {
                return OF_KAASOPS;
            }
            let of_parts = DataLayout::of_parts(before.values());
            of_parts.unwrap_or_else(|| options.layout())
        })
    }

    /// Returns an end of the name of a Secret that no Pod mounts.
    fn next_suffix(&self, options: &AssemblyOptions) -> String {
        let suffix = options.layout().to_string();
        if self.suffix.as_ref() == Some(&suffix) {
            return format!("{suffix}{SECOND}");
        }
        suffix
    }
}

/// Returns true if a pipeline that has run before has data under other names. Which have run is not known without parts,
/// as after a takeover: all may have.
fn has_data_to_move(
    old: &Assembly,
    new: &Assembly,
    before: &BTreeMap<PipelineKey, PipelinePart>,
) -> bool {
    let mut old = old.clone();
    if !before.is_empty() {
        old.parts.retain(|part| before.contains_key(&part.pipeline));
    }
    !DataMoves::between(&old, new).is_empty()
}

/// End of the name of a second Secret for the same layout.
const SECOND: &str = "-b";

/// Returns the layout for which a Secret was named.
fn layout_of(suffix: &str) -> Option<DataLayout> {
    let suffix = suffix.strip_suffix(SECOND).unwrap_or(suffix);
    suffix.parse().ok()
}

impl Migration {
    /// Returns the value of the annotation.
    pub(crate) fn to_annotation(&self) -> String {
        json!(self).to_string()
    }

    /// Returns the end of the name of the Secret that the old Pods mount.
    pub(crate) fn old_suffix(&self) -> Option<&str> {
        self.secret.as_deref()
    }
}

/// Returns the list of directories as the init container reads it. The same list always gives the same bytes.
pub(crate) fn compressed(moves: &DataMoves) -> Vec<u8> {
    gzip::compressed(&serde_json::to_vec(moves).expect("moves are JSON"))
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use lockstep_vector_assembly::{RunnablePipeline, assemble};

    use super::*;

    const DASHES: DataLayout = DataLayout {
        component_names: ComponentNames::Dashes,
        merge_sources: false,
    };
    const UNDERSCORES: DataLayout = DataLayout {
        component_names: ComponentNames::Underscores,
        merge_sources: false,
    };

    fn options(layout: DataLayout) -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Agent).in_layout(layout)
    }

    fn assembly(layout: DataLayout, source: &str) -> Assembly {
        let pipeline = RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: "p".to_owned(),
            spec: json!({
                "sources": {"in": {"type": source}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        };
        assemble(&options(layout), &[pipeline])
    }

    fn parts(assembly: &Assembly) -> BTreeMap<PipelineKey, PipelinePart> {
        let parts = assembly.parts.iter();
        let parts = parts.map(|part| (part.pipeline.clone(), part.clone()));
        parts.collect()
    }

    /// Returns a workload of ours without a record of its layout.
    fn live(secret: &str, annotation: Option<&str>) -> Value {
        let mut annotations = json!({GLOBAL_OPTIONS_CHECKSUM: "1f"});
        if let Some(annotation) = annotation {
            annotations[DATA_MIGRATION] = annotation.into();
        }
        json!({
            "metadata": {"annotations": annotations},
            "spec": {"template": {"spec": {
                "volumes": [
                    {"name": "data", "secret": {"secretName": "logs-agent-other"}},
                    {"name": "config", "secret": {"secretName": secret}},
                ],
                "initContainers": [{"name": "migrate-data", "image": "lockstep:1"}],
            }}},
        })
    }

    /// Returns the names of a workload whose Pods run with this layout.
    fn recorded(secret: &str, layout: DataLayout) -> PresentNames {
        let mut live = live(secret, None);
        live["metadata"]["annotations"][DATA_LAYOUT] = layout.to_string().into();
        PresentNames::new(Some(&live), "logs-agent", true)
    }

    fn present(secret: &str, annotation: Option<&str>, is_rolled_out: bool) -> PresentNames {
        PresentNames::new(Some(&live(secret, annotation)), "logs-agent", is_rolled_out)
    }

    #[test]
    fn other_names_are_published_beside_the_old_ones_until_all_pods_are_replaced() {
        let (options, logs) = (
            options(UNDERSCORES),
            assembly(UNDERSCORES, "kubernetes_logs"),
        );
        let parts = parts(&logs);
        let settled = recorded("logs-agent", DASHES);
        assert_eq!(settled.layout(UNDERSCORES, true), UNDERSCORES);
        let begun = settled.publish(&options, &logs, &parts, true);
        assert_eq!(begun.suffix.as_deref(), Some("underscores"));
        let (migration, old, moves) = begun.running.expect("a migration");
        assert_eq!(
            old.parts[0].sources.keys().next().expect("a source"),
            "n-p-in"
        );
        let first = moves.iter().flat_map(|it| &it.sources).next();
        assert_eq!(first.map(|it| &*it.from), Some("n-p-in"));
        assert_eq!(migration.old_suffix(), None);

        // The Pods are being replaced. Another change waits.
        let annotation = migration.to_annotation();
        let rolling = present("logs-agent-underscores", Some(&annotation), false);
        assert_eq!(rolling.layout(DASHES, true), UNDERSCORES);
        let (later, other) = (
            rolling.after_migration(),
            assembly(DASHES, "kubernetes_logs"),
        );
        let planned = later.publish(&self::options(DASHES), &other, &parts, true);
        assert_eq!(planned.suffix.as_deref(), Some("dashes"));
        let (next, ..) = planned.running.expect("another migration");
        assert_eq!((next.from, next.to), (UNDERSCORES, DASHES));
        let rolling = rolling.publish(&options, &logs, &parts, true);
        assert_eq!(rolling.suffix.as_deref(), Some("underscores"));
        assert_eq!(rolling.running, Some((migration, old, moves)));

        // All are replaced.
        let finished = present("logs-agent-underscores", Some(&annotation), true);
        assert_eq!(finished.layout(DASHES, true), DASHES);
        let finished = finished.publish(&options, &logs, &parts, true);
        assert_eq!(finished.suffix.as_deref(), Some("underscores"));
        assert_eq!(finished.running, None);
    }

    #[test]
    fn parts_that_were_stored_before_a_failed_write_of_the_workload_do_not_tell_its_names() {
        let options = options(UNDERSCORES);
        let logs = assembly(UNDERSCORES, "kubernetes_logs");
        let mut of_kaasops = live("logs-agent", None);
        of_kaasops["metadata"]["annotations"] = Value::Null;
        // The toolkit marks an object that it does not apply.
        of_kaasops["metadata"]["labels"] = json!({"lockstep.dev/owner-uid": "1"});
        let of_kaasops = PresentNames::new(Some(&of_kaasops), "logs-agent", true);
        let of_secret = present("logs-agent-dashes", None, true);
        for present in [recorded("logs-agent", DASHES), of_kaasops, of_secret] {
            let published = present.publish(&options, &logs, &parts(&logs), true);
            assert_eq!(published.suffix.as_deref(), Some("underscores"));
            let (migration, ..) = published.running.expect("a migration");
            assert_eq!((migration.from, migration.to), (DASHES, UNDERSCORES));
        }
    }

    #[test]
    fn pods_with_the_desired_layout_stay_whatever_the_parts_say() {
        let merged = DataLayout {
            merge_sources: true,
            ..UNDERSCORES
        };
        let before = parts(&assembly(UNDERSCORES, "kubernetes_logs"));
        let logs = assembly(merged, "kubernetes_logs");
        let published =
            recorded("logs-agent", merged).publish(&options(merged), &logs, &before, true);
        assert_eq!((published.suffix, published.running), (None, None));
        assert_eq!(published.layout, merged);
    }

    #[test]
    fn a_pipeline_that_has_not_run_has_no_data_to_move() {
        let logs = assembly(UNDERSCORES, "kubernetes_logs");
        let mut other = parts(&logs).into_values().next().expect("a part");
        other.pipeline.name = "other".to_owned();
        let before = BTreeMap::from([(other.pipeline.clone(), other)]);
        let published =
            recorded("logs-agent", DASHES).publish(&options(UNDERSCORES), &logs, &before, true);
        assert_eq!((published.suffix, published.running), (None, None));
    }

    #[test]
    fn a_workload_without_a_record_has_the_names_of_the_other_operator_unless_it_is_ours() {
        let none = BTreeMap::new();
        let logs = assembly(UNDERSCORES, "kubernetes_logs");
        let ours = present("logs-agent", None, true);
        let published = ours.publish(&options(UNDERSCORES), &logs, &none, true);
        assert_eq!((published.suffix, published.running), (None, None));
        let before = parts(&assembly(DASHES, "kubernetes_logs"));
        let published = ours.publish(&options(UNDERSCORES), &logs, &before, true);
        assert!(published.running.is_some());
        let mut taken_over = live("logs-agent", None);
        taken_over["metadata"]["annotations"] = Value::Null;
        let taken_over = PresentNames::new(Some(&taken_over), "logs-agent", true);
        let published = taken_over.publish(&options(UNDERSCORES), &logs, &none, true);
        assert!(published.running.is_some());
        let logs = assembly(DASHES, "kubernetes_logs");
        let published = taken_over.publish(&options(DASHES), &logs, &none, true);
        assert_eq!((published.suffix, published.running), (None, None));
    }

    #[test]
    fn nothing_is_migrated_without_data_without_pods_or_without_permission() {
        let logs = assembly(UNDERSCORES, "kubernetes_logs");
        let metrics = assembly(UNDERSCORES, "internal_metrics");
        let new = PresentNames::new(None, "logs-agent", false);
        let old = recorded("logs-agent-opt", DASHES);
        for (names, assembly, may_move) in [
            (&new, &logs, true),
            (&old, &metrics, true),
            (&old, &logs, false),
        ] {
            let options = options(UNDERSCORES);
            let published = names.publish(&options, assembly, &parts(assembly), may_move);
            assert_eq!((published.suffix, published.running), (None, None));
        }
        // Without permission, a migration does not hold back other names.
        let annotation = r#"{"from":"dashes","to":"underscores"}"#;
        let rolling = present("logs-agent-underscores", Some(annotation), false);
        assert_eq!(rolling.layout(DASHES, false), DASHES);
    }

    #[test]
    fn the_end_of_moves_removes_the_init_container_and_leaves_the_old_pods_their_configuration() {
        let options = options(UNDERSCORES);
        let logs = assembly(UNDERSCORES, "kubernetes_logs");
        let annotation = r#"{"from":"dashes","secret":"b","to":"underscores"}"#;
        let rolling = present("logs-agent-underscores", Some(annotation), false);
        let published = rolling.publish(&options, &logs, &parts(&logs), false);
        assert_eq!(published.suffix.as_deref(), Some("underscores"));
        assert_eq!(rolling.remaining_image(&published, true), None);
        let (migration, old, moves) = published.running.expect("old Pods");
        assert_eq!(migration.to_annotation(), annotation);
        assert!(old.parts[0].sources.contains_key("n-p-in"));
        assert_eq!(moves, None);

        let settled = present("logs-agent-underscores", Some(annotation), true);
        let published = settled.publish(&options, &logs, &parts(&logs), false);
        assert_eq!(published.running, None);
        assert_eq!(
            settled.remaining_image(&published, true),
            Some("lockstep:1")
        );
        assert_eq!(settled.remaining_image(&published, false), None);
    }

    #[test]
    fn no_pod_mounts_the_secret_of_the_new_names() {
        let logs = assembly(UNDERSCORES, "kubernetes_logs");
        let names = recorded("logs-agent-underscores", DASHES);
        let published = names.publish(&options(UNDERSCORES), &logs, &parts(&logs), true);
        assert_eq!(published.suffix.as_deref(), Some("underscores-b"));
        let names = recorded("logs-agent-underscores-b", DASHES);
        let published = names.publish(&options(UNDERSCORES), &logs, &parts(&logs), true);
        assert_eq!(published.suffix.as_deref(), Some("underscores"));
    }
}
