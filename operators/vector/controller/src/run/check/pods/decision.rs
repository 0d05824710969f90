//! Decision which changed parts may be published.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, PipelineKey, PipelinePart, PresentState, Rendered, fingerprint,
    join, render_all,
};
use serde_json::json;

use crate::run::check::pods::candidate::Settings;
use crate::run::check::pods::checks::{CheckResult, Checks};

/// Parts of a workload.
pub(crate) struct Pipelines<'a> {
    pub(crate) options: &'a AssemblyOptions,
    /// Parts that are to run.
    pub(crate) parts: &'a [PipelinePart],
    /// Parts that run now.
    pub(crate) before: &'a BTreeMap<PipelineKey, PipelinePart>,
    /// Facts that decide which parts can run together.
    pub(crate) present: PresentState<'a>,
    /// Pipelines that another operator runs, if this one has published nothing yet. They are not checked, because a
    /// pipeline that is held would not run at all: no part of it is stored.
    pub(crate) taken_over: BTreeSet<PipelineKey>,
    /// Values of the annotation that demands a check.
    pub(crate) forced: BTreeMap<PipelineKey, String>,
    /// Resource versions of the Secrets that were read, by namespace and name. None if one does not exist.
    pub(crate) secret_versions: BTreeMap<(String, String), Option<String>>,
    /// Changed parts whose check together with all others has begun. Those that pass alone meanwhile wait, so that the
    /// check comes to an end however often pipelines change.
    pub(crate) together: BTreeSet<PipelineKey>,
}

/// Decision which changed parts may be published.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    /// Pipelines that run as they last ran, and why.
    pub(crate) held: BTreeMap<PipelineKey, String>,
    /// Held pipelines that Vector rejects. The others wait.
    pub(crate) failed: BTreeSet<PipelineKey>,
    /// Reason why Vector rejects the configuration of all pipelines together. It may name all of them.
    pub(crate) rejected: Option<String>,
    /// Changed parts that are being checked together with all others.
    pub(crate) together: BTreeSet<PipelineKey>,
    /// Candidates by the fingerprint of their configuration.
    pub(crate) candidates: BTreeMap<String, Candidate>,
}

/// Pipelines of a configuration that is checked. The configurations are not kept: there are as many as changed pipelines,
/// and each may have all pipelines of the workload.
#[derive(Clone, Debug)]
pub(crate) enum Candidate {
    /// One pipeline.
    Alone(PipelineKey),
    /// All pipelines, of which these are changed.
    Together(BTreeSet<PipelineKey>),
}

impl Decision {
    /// Decides by the results of checks.
    pub(crate) fn new(
        pipelines: &Pipelines<'_>,
        settings: &Settings,
        checks: &mut Checks<'_>,
    ) -> Self {
        let mut decision = Self::default();
        let mut passed = Vec::new();
        for part in pipelines.parts {
            let key = &part.pipeline;
            let forced = pipelines.forced.get(key).map(String::as_str);
            let is_changed = pipelines.is_changed(part);
            let has_components = part.component_ids().next().is_some();
            if pipelines.taken_over.contains(key)
                || !has_components
                || !(is_changed || forced.is_some())
            {
                continue;
            }
            let alone = Candidate::Alone(key.clone());
            let (_, result) = decision.result(pipelines, settings, forced, alone, checks);
            match result {
                CheckResult::Passed if is_changed => passed.push(part),
                CheckResult::Passed => {}
                CheckResult::Failed(why) => {
                    decision.failed.insert(key.clone());
                    decision.held.insert(key.clone(), part.with_own_names(&why));
                }
                CheckResult::Pending(why) => {
                    decision.held.insert(key.clone(), part.with_own_names(&why));
                }
            }
        }
        decision.check_together(pipelines, settings, checks, &passed);
        decision
    }

    /// Checks changed parts with all others. If Vector rejects that, they are checked and published one after the other:
    /// one of them must not keep the others from running.
    fn check_together(
        &mut self,
        pipelines: &Pipelines<'_>,
        settings: &Settings,
        checks: &mut Checks<'_>,
        passed: &[&PipelinePart],
    ) {
        let begun = |part: &&PipelinePart| pipelines.together.contains(&part.pipeline);
        let begun: Vec<_> = passed.iter().copied().filter(begun).collect();
        let is_under_way = !begun.is_empty() && begun.len() == pipelines.together.len();
        let all = if is_under_way { begun } else { passed.to_vec() };
        let each = passed
            .iter()
            .map(|part| vec![*part])
            .filter(|_| all.len() > 1);
        let each: Vec<_> = each.collect();
        for parts in std::iter::once(all).chain(each).filter(|it| !it.is_empty()) {
            let keys: BTreeSet<_> = parts.iter().map(|part| part.pipeline.clone()).collect();
            let together = Candidate::Together(keys.clone());
            let forced = pipelines.forced_of(&keys);
            let (fingerprint, result) =
                self.result(pipelines, settings, forced.as_deref(), together, checks);
            let why = match result {
                CheckResult::Failed(why) => {
                    if let [part] = parts[..] {
                        let message = "Vector accepts this pipeline alone and rejects it together with the others of the workload, whose status has the reason";
                        self.failed.insert(part.pipeline.clone());
                        self.held.insert(part.pipeline.clone(), message.to_owned());
                    }
                    self.rejected = Some(why);
                    continue;
                }
                CheckResult::Passed => {
                    self.hold(
                        passed,
                        &keys,
                        "waits until other changed pipelines are published",
                    );
                    return;
                }
                CheckResult::Pending(why) => why,
            };
            // Pipelines that have passed alone do not wait until all others have been checked alone.
            checks.prefer(&fingerprint);
            let message = format!("together with all pipelines of the workload, it {why}");
            self.hold(passed, &BTreeSet::new(), &message);
            self.together = keys;
            return;
        }
    }

    /// Returns the fingerprint and the result of a check.
    fn result(
        &mut self,
        pipelines: &Pipelines<'_>,
        settings: &Settings,
        forced: Option<&str>,
        candidate: Candidate,
        checks: &mut Checks<'_>,
    ) -> (String, CheckResult) {
        let assembly = pipelines.configuration(&candidate);
        let fingerprint = settings.fingerprint(&assembly, forced);
        let result = checks.result(&fingerprint, &pipelines.versions_of(&assembly));
        self.candidates.insert(fingerprint.clone(), candidate);
        (fingerprint, result)
    }

    /// Holds all parts but some.
    fn hold(&mut self, parts: &[&PipelinePart], but: &BTreeSet<PipelineKey>, why: &str) {
        for part in parts.iter().filter(|it| !but.contains(&it.pipeline)) {
            let held = self.held.entry(part.pipeline.clone());
            held.or_insert_with(|| why.to_owned());
        }
    }
}

impl Pipelines<'_> {
    /// Returns true if a part differs from the one that runs, in more than the generation.
    fn is_changed(&self, part: &PipelinePart) -> bool {
        let Some(before) = self.before.get(&part.pipeline) else {
            return !self.taken_over.contains(&part.pipeline);
        };
        let same_generation = PipelinePart {
            generation: part.generation,
            ..before.clone()
        };
        same_generation != *part
    }

    /// Returns a fingerprint of the versions of all Secrets to which a configuration refers. In contrast to one of their
    /// values, it does not help to guess them.
    fn versions_of(&self, assembly: &Assembly) -> String {
        let references = assembly.secrets.iter();
        let names = references.map(|it| (it.namespace.clone(), it.name.clone()));
        let names: BTreeSet<_> = names.collect();
        let versions = names.iter().map(|it| (it, self.secret_versions.get(it)));
        let versions: Vec<_> = versions.collect();
        if versions.is_empty() {
            return String::new();
        }
        fingerprint(&json!(versions))
    }

    /// Returns the values of the annotation that demands a check, if one of these pipelines has it.
    fn forced_of(&self, keys: &BTreeSet<PipelineKey>) -> Option<String> {
        if keys.len() == 1 {
            // If the pipeline is alone in the workload, this is then the same check.
            return self.forced.get(keys.first()?).cloned();
        }
        let forced = self.forced.iter().filter(|(key, _)| keys.contains(key));
        let forced: Vec<_> = forced
            .map(|(key, value)| (key.to_string(), value))
            .collect();
        (!forced.is_empty()).then(|| json!(forced).to_string())
    }

    /// Returns the configuration of a candidate.
    pub(crate) fn configuration(&self, candidate: &Candidate) -> Assembly {
        match candidate {
            Candidate::Alone(key) => {
                let parts = self.parts.iter().filter(|part| part.pipeline == *key);
                self.joined(&parts.cloned().collect::<Vec<_>>())
            }
            Candidate::Together(changed) => self.with_changed(changed),
        }
    }

    /// Returns the configuration in which only these pipelines are changed.
    fn with_changed(&self, changed: &BTreeSet<PipelineKey>) -> Assembly {
        let parts = self.parts.iter().filter_map(|part| {
            let is_kept = self.is_changed(part) && !changed.contains(&part.pipeline);
            if is_kept {
                self.before.get(&part.pipeline).cloned()
            } else {
                Some(part.clone())
            }
        });
        self.joined(&parts.collect::<Vec<_>>())
    }

    fn joined(&self, parts: &[PipelinePart]) -> Assembly {
        let Rendered { parts, problems } = render_all(self.options, &[], parts);
        join(self.options, &parts, self.present, problems)
    }
}

#[cfg(test)]
mod tests;
