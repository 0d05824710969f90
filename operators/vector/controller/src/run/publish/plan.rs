//! Plan: the configuration that is known and not published yet.

use std::collections::BTreeMap;

use lockstep_vector_assembly::{Assembly, AssemblyOptions, PipelineKey, PipelinePart};

use crate::owned::Publication;
use crate::run::assemble::assembler::Assembled;
use crate::run::migrate::PresentNames;
use crate::run::publish::builder::PublicationBuilder;
use crate::run::publish::changes::Published;
use lockstep_vector_api::WorkloadKind;

/// Configuration that is published once the checks that run are passed, and once the data that is being moved is moved.
pub(crate) struct Plan {
    assembly: Assembly,
    /// Values of the Secrets that it refers to.
    secrets: BTreeMap<String, Vec<u8>>,
    /// If true, other names of components wait for the end of a migration.
    waits_for_migration: bool,
    options: AssemblyOptions,
    /// Parts that are published until then.
    parts: BTreeMap<PipelineKey, PipelinePart>,
    /// Pipelines whose configuration differs.
    pub(crate) changes: Vec<String>,
}

impl Plan {
    /// Returns the plan, or none if everything that is known is published now. `options` are those of now, and `desired` those
    /// of the workload. `planned` is the configuration that is published once the checks are passed.
    pub(crate) fn new(
        options: &AssemblyOptions,
        desired: AssemblyOptions,
        now: &Assembly,
        secrets: &BTreeMap<String, Vec<u8>>,
        planned: Option<Assembled>,
    ) -> Option<Self> {
        let waits_for_migration = options.layout() != desired.layout();
        let (assembly, planned_secrets) = match planned {
            Some(planned) => (planned.assembly, planned.secrets),
            None if waits_for_migration => (now.clone(), secrets.clone()),
            None => return None,
        };
        let assembly = if waits_for_migration {
            assembly.in_layout(&desired)
        } else {
            assembly
        };
        let parts = now.parts.iter();
        let parts = parts.map(|part| (part.pipeline.clone(), part.clone()));
        let parts: BTreeMap<_, _> = parts.collect();
        let changes = Published {
            parts: &parts,
            secrets,
            config_hash: Some(&now.hash()),
        }
        .changes(&assembly, &planned_secrets);
        Some(Self {
            assembly,
            secrets: planned_secrets,
            waits_for_migration,
            options: desired,
            parts,
            changes,
        })
    }

    /// Returns the names of the Pods when the plan is carried out.
    pub(crate) fn names(&self, present: &PresentNames) -> PresentNames {
        if self.waits_for_migration {
            present.after_migration()
        } else {
            present.clone()
        }
    }

    /// Returns what is published when the plan is carried out, with these names. None if it does not fit into Secrets, which is
    /// reported when it is to be published.
    pub(crate) fn publish<'p, K: WorkloadKind>(
        &self,
        builder: &PublicationBuilder<'_, K>,
        present: &'p PresentNames,
    ) -> Option<(Publication, Option<&'p str>)> {
        let secrets = self.secrets.clone();
        let published =
            builder.publish(present, &self.options, &self.assembly, secrets, &self.parts);
        published.ok()
    }
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::{ComponentNames, WorkloadRole};
    use lockstep_vector_assembly::{DataLayout, RunnablePipeline, assemble};
    use serde_json::json;

    use super::*;

    fn pipeline(name: &str) -> RunnablePipeline {
        RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        }
    }

    fn plan(desired: &AssemblyOptions, planned: Option<&[&str]>) -> Option<Plan> {
        let options = AssemblyOptions::new(WorkloadRole::Agent);
        let of = |names: &[&str]| {
            let pipelines: Vec<_> = names.iter().map(|name| pipeline(name)).collect();
            assemble(&options, &pipelines)
        };
        let planned = planned.map(|names| Assembled {
            assembly: of(names),
            secrets: BTreeMap::new(),
            reads: Vec::new(),
            is_incomplete: false,
        });
        Plan::new(
            &options,
            desired.clone(),
            &of(&["a"]),
            &BTreeMap::new(),
            planned,
        )
    }

    #[test]
    fn what_waits_for_checks_and_for_a_migration_is_planned() {
        let options = AssemblyOptions::new(WorkloadRole::Agent);
        assert!(plan(&options, None).is_none());
        let checked = plan(&options, Some(&["a", "b"])).expect("a plan");
        assert_eq!(checked.changes, ["pipeline n/b added"]);
        assert!(!checked.waits_for_migration);
        let dashes = options.in_layout(DataLayout {
            component_names: ComponentNames::Dashes,
            merge_sources: false,
        });
        let renamed = plan(&dashes, None).expect("a plan");
        assert!(renamed.waits_for_migration);
        assert_eq!(renamed.changes, ["pipeline n/a changed"]);
        assert!(
            renamed.assembly.config["sources"]
                .to_string()
                .contains("n-a-in")
        );
        let both = plan(&dashes, Some(&["a", "b"])).expect("a plan");
        assert_eq!(both.changes, ["pipeline n/a changed", "pipeline n/b added"]);
    }
}
