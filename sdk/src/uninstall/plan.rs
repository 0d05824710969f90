//! Plan of an uninstallation: the objects with the effect of their deletion, and the parts of the installation.

use std::collections::BTreeMap;

use anyhow::Context;
use kube::ResourceExt;
use lockstep_controller::{Children, DeletionEffect, FinalizeRequest, RelatedObjects};
use lockstep_shared_validation::{LastValidated, ValidationRequest, Validator};

use crate::installation::Installation;
use crate::installation::lease::Leader;
use crate::installation::manifest_object::{self, ExistingObject};
use crate::installation::objects::{self, NamespaceSelection};
use crate::installation::stored_object::{StoredObject, is_own_finalizer};
use crate::operator::registration::DeletionEffectFn;
use crate::printer::plain_table;
use crate::uninstall::cascade::Cascade;
use crate::uninstall::teardown::Step;

/// Existing parts of an installation, and its objects with the effect of their deletion.
pub(crate) struct Plan {
    pub(crate) objects: Vec<PlannedObject>,
    /// Objects of the manifests, in the order of their deletion.
    pub(crate) parts: Vec<ExistingObject>,
    /// CRDs of the installed kinds, and the policies that protect them.
    pub(crate) crds: Vec<ExistingObject>,
    pub(crate) leader: Leader,
}

/// Object with the effect of its deletion.
pub(crate) struct PlannedObject {
    pub(crate) stored: StoredObject,
    pub(crate) effect: DeletionEffect,
    /// If true, the object stays until its operator removes a finalizer.
    pub(crate) has_own_finalizer: bool,
}

impl Plan {
    /// Reads everything from the cluster. Nothing is changed.
    pub(crate) async fn read(
        installation: &Installation<'_>,
        cascade: Cascade,
        objects_only: bool,
    ) -> anyhow::Result<Self> {
        let mut planned = Vec::new();
        let kinds = installation.kinds.iter();
        for (kind, ruleset) in kinds.filter(|_| !installation.is_webhook_only) {
            let found =
                objects::list(installation, ruleset.as_ref(), NamespaceSelection::Watched).await;
            let found = found.with_context(|| format!("cannot list {}", kind.kind))?;
            let describe = kind.deletion_effect;
            let found = found.into_iter();
            planned.extend(found.map(|stored| PlannedObject {
                effect: effect(&stored, ruleset.as_ref(), describe, cascade),
                has_own_finalizer: has_own_finalizer(&stored, ruleset.as_ref()),
                stored,
            }));
        }
        let (mut parts, mut crds) = (Vec::new(), Vec::new());
        let manifests = manifest_object::all(installation)?;
        for manifest in manifests.iter().filter(|_| !objects_only) {
            let found = ExistingObject::find(installation, manifest).await;
            let found = found.with_context(|| format!("cannot read {}", manifest.kind))?;
            if Step::of(manifest) == Step::Crds {
                crds.extend(found);
            } else {
                parts.extend(found);
            }
        }
        if !objects_only {
            let leases = manifest_object::shard_leases(installation).await;
            parts.extend(leases.context("cannot list the Leases of the shards")?);
        }
        parts.sort_by_key(|part| Step::of(&part.manifest));
        let leader = Leader::read(installation).await;
        Ok(Self {
            objects: planned,
            parts,
            crds,
            leader: leader.context("cannot read the Lease of the controllers")?,
        })
    }

    /// Returns the reason for which the objects cannot be deleted now, if any.
    pub(crate) fn obstacle(&self, cascade: Cascade) -> Option<String> {
        if cascade == Cascade::Orphan {
            return None;
        }
        let blocked: Vec<_> = self
            .objects
            .iter()
            .filter(|object| object.effect.is_blocked)
            .map(|object| format!("  {}: {}", object.stored.shown(), object.effect.description))
            .collect();
        if !blocked.is_empty() {
            return Some(format!(
                "the deletion of these objects would not end; change them first, or use `--cascade=orphan`:\n{}",
                blocked.join("\n")
            ));
        }
        let waiting = self
            .objects
            .iter()
            .filter(|object| object.has_own_finalizer);
        let count = waiting.count();
        (count > 0 && !self.leader.is_held()).then(|| {
            format!(
                "{count} objects have a finalizer of their operator, and no controller runs that could remove it: install again, wait for the controller, and repeat the command; or use `--cascade=orphan`"
            )
        })
    }

    /// Returns true if nothing is left to remove.
    pub(crate) fn is_empty(&self, with_crds: bool) -> bool {
        self.objects.is_empty() && self.parts.is_empty() && (!with_crds || self.crds.is_empty())
    }

    /// Returns the plan as text.
    pub(crate) fn to_text(&self, with_crds: bool) -> String {
        let mut out = String::new();
        if !self.objects.is_empty() {
            out.push_str("Objects that are deleted first:\n");
            out.push_str(&self.objects_table());
        }
        if !self.parts.is_empty() {
            out.push_str("Then, in this order:\n");
            out.push_str(&table(&self.parts));
        }
        match (self.crds.is_empty(), with_crds) {
            (true, _) => {}
            (false, true) => {
                out.push_str("Last, once no object exists in any namespace:\n");
                out.push_str(&table(&self.crds));
            }
            (false, false) => {
                out.push_str("These stay; `--crds` removes them:\n");
                out.push_str(&table(&self.crds));
            }
        }
        out
    }

    /// Returns the numbers of objects by kind, namespace and effect.
    fn objects_table(&self) -> String {
        let mut counts: BTreeMap<[String; 3], usize> = BTreeMap::new();
        for PlannedObject { stored, effect, .. } in &self.objects {
            let namespace = stored.object.namespace().unwrap_or_default();
            let key = [
                stored.kind().to_owned(),
                namespace,
                effect.description.clone(),
            ];
            *counts.entry(key).or_default() += 1;
        }
        let mut table = plain_table(["KIND", "NAMESPACE", "OBJECTS", "EFFECT"]);
        for ([kind, namespace, effect], count) in counts {
            table.add_row([kind, namespace, count.to_string(), effect]);
        }
        format!("{}\n\n", table.trim_fmt())
    }
}

fn table(objects: &[ExistingObject]) -> String {
    let mut table = plain_table(["KIND", "NAMESPACE", "NAME", "EFFECT"]);
    for ExistingObject { manifest, .. } in objects {
        let namespace = manifest.namespace.clone().unwrap_or_default();
        let effect = match manifest.kind.as_str() {
            "Namespace" => "deleted with everything in it",
            _ => "",
        };
        table.add_row([&manifest.kind, &namespace, &manifest.name, effect]);
    }
    format!("{}\n\n", table.trim_fmt())
}

fn effect(
    stored: &StoredObject,
    ruleset: &dyn Validator,
    describe: DeletionEffectFn,
    cascade: Cascade,
) -> DeletionEffect {
    if cascade == Cascade::Orphan {
        return DeletionEffect {
            description: "the object is removed; what it manages stays".to_owned(),
            is_blocked: false,
        };
    }
    if stored.has_condition("Paused", "True") {
        return DeletionEffect {
            description: "paused: remove the annotation `lockstep.dev/paused`".to_owned(),
            is_blocked: true,
        };
    }
    let object = serde_json::to_value(&stored.object).unwrap_or_default();
    let last_validated = LastValidated::from_status_of(&object);
    let request = ValidationRequest::create(&object).with_last_validated(last_validated.as_ref());
    let effect = describe(&FinalizeRequest {
        object: &object,
        last_validated: last_validated.as_ref(),
        is_valid: ruleset.validate(&request).is_valid(),
        children: Children::default(),
        related: RelatedObjects::default(),
    });
    effect.unwrap_or_else(|| DeletionEffect {
        description: "deleted with the objects that it owns".to_owned(),
        is_blocked: false,
    })
}

fn has_own_finalizer(stored: &StoredObject, ruleset: &dyn Validator) -> bool {
    let mut finalizers = stored.object.finalizers().iter();
    finalizers.any(|finalizer| is_own_finalizer(ruleset, finalizer))
}
