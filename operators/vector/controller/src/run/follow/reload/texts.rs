//! Texts about the reloads of a workload.

use lockstep_controller::{OperatorCondition, OperatorEvent};
use lockstep_shared_validation::shortened;
use lockstep_vector_api::NotLoaded;
use lockstep_vector_assembly::Assembly;
use serde_json::Value;

use crate::run::condition::warning;
use crate::run::follow::reload::pod_loads::{Loads, PodLoad, PodState};

/// Type of the condition of a workload with Pods that do not load its configuration.
const CONDITION: &str = "ReloadFailed";

/// Number of Pods that are described, and the length of a description in bytes.
const SHOWN: usize = 5;
const LONGEST: usize = 1024;

/// Maximum length of an Event in bytes.
const LONGEST_EVENT: usize = 1024;

/// Returns the number of Pods that have loaded the configuration, and the value of `status.notLoaded`. `shown` returns what
/// users may see of a log.
pub(crate) fn status(
    loads: &Loads,
    assembly: &Assembly,
    shown: &dyn Fn(&str) -> String,
) -> (String, Option<NotLoaded>) {
    let loaded = format!("{}/{}", loads.loaded(), loads.pods.len());
    if loads.loaded() == loads.pods.len() {
        return (loaded, None);
    }
    let count =
        |is_in: fn(&PodState) -> bool| i64::try_from(loads.count(is_in)).unwrap_or(i64::MAX);
    let not_loaded = NotLoaded {
        waiting: count(|state| matches!(state, PodState::Waiting)),
        refused: count(|state| matches!(state, PodState::Refused(_))),
        crash_looping: count(|state| matches!(state, PodState::CrashLooping(_))),
        stuck: count(|state| matches!(state, PodState::Stuck(_))),
        unknown: count(|state| matches!(state, PodState::Unknown(_))),
        pods: described(loads, assembly, shown),
    };
    (loaded, Some(not_loaded))
}

/// Returns the condition about Pods that refuse a configuration, or whose reload does not end.
pub(crate) fn condition(
    workload: &Value,
    loads: &Loads,
    assembly: &Assembly,
    shown: &dyn Fn(&str) -> String,
) -> Option<OperatorCondition> {
    warning(workload, CONDITION, problem(loads, assembly, shown))
}

/// Returns the condition of a workload that is not observed any more, if it has one.
pub(crate) fn unobserved(workload: &Value) -> Option<OperatorCondition> {
    warning(workload, CONDITION, None)
}

/// Returns an Event with the same text.
pub(crate) fn event(
    loads: &Loads,
    assembly: &Assembly,
    shown: &dyn Fn(&str) -> String,
) -> Option<OperatorEvent> {
    Some(OperatorEvent {
        is_warning: true,
        reason: CONDITION,
        note: shortened(&problem(loads, assembly, shown)?, LONGEST_EVENT).into_owned(),
    })
}

fn problem(loads: &Loads, assembly: &Assembly, shown: &dyn Fn(&str) -> String) -> Option<String> {
    let failed = |state: &PodState| {
        use PodState::{CrashLooping, Refused, Stuck};
        matches!(state, CrashLooping(_) | Refused(_) | Stuck(_))
    };
    let count = loads.count(failed);
    let mut pods = loads.pods.values();
    let first = pods.find(|load| failed(&load.state))?;
    Some(format!(
        "{count} of {} Pods do not run the published configuration; {}",
        loads.pods.len(),
        describe(first, assembly, shown)?
    ))
}

/// Describes the first Pods with problems, those that refuse the configuration before the others.
fn described(loads: &Loads, assembly: &Assembly, shown: &dyn Fn(&str) -> String) -> Vec<String> {
    let order = |load: &&PodLoad| match load.state {
        PodState::Refused(_) | PodState::CrashLooping(_) => 0,
        PodState::Stuck(_) => 1,
        _ => 2,
    };
    let mut pods: Vec<_> = loads.pods.values().collect();
    pods.sort_by_key(order);
    let pods = pods
        .into_iter()
        .filter_map(|load| describe(load, assembly, shown));
    pods.take(SHOWN)
        .map(|text| shortened(&text, LONGEST).into_owned())
        .collect()
}

fn describe(load: &PodLoad, assembly: &Assembly, shown: &dyn Fn(&str) -> String) -> Option<String> {
    let name = &load.name;
    match &load.state {
        PodState::Waiting | PodState::Loaded => None,
        PodState::CrashLooping(why) => Some(format!(
            "Vector of {name} ends again and again: {}",
            shown(why)
        )),
        PodState::Refused(log) => Some(format!("{name} refuses the configuration: {}", shown(log))),
        PodState::Stuck(components) => {
            let blocking = pipelines(components, assembly);
            let blocking = if blocking.is_empty() {
                "its log names none".to_owned()
            } else {
                blocking.join(", ")
            };
            Some(format!(
                "the reload of {name} does not end, because a sink that changed does not end (components with warnings: {blocking}); delete the Pod, or set `reload.evictStuckPods`"
            ))
        }
        PodState::Unknown(why) => Some(format!("{name}: {why}")),
    }
}

/// Returns the pipelines of components, with the names that their authors gave them.
fn pipelines(components: &[String], assembly: &Assembly) -> Vec<String> {
    let own = |id: &String| {
        let mut parts = assembly.parts.iter();
        let part = parts.find(|part| part.all_components().any(|component| component.id == id))?;
        Some(format!("{} {}", part.pipeline, part.with_own_names(id)))
    };
    components.iter().filter_map(own).take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use lockstep_vector_assembly::{AssemblyOptions, RunnablePipeline, WorkloadRole, assemble};

    use serde_json::json;

    use super::*;

    fn assembly() -> Assembly {
        let pipeline = RunnablePipeline {
            namespace: Some("team".to_owned()),
            name: "logs".to_owned(),
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        };
        assemble(&AssemblyOptions::new(WorkloadRole::Agent), &[pipeline])
    }

    fn loads(states: Vec<PodState>) -> Loads {
        let pods = states.into_iter().enumerate().map(|(index, state)| {
            let load = PodLoad {
                name: format!("pod-{index}"),
                is_running: true,
                is_ready: true,
                state,
                ..PodLoad::default()
            };
            (index.to_string(), load)
        });
        Loads {
            pods: pods.collect(),
            listed: None,
            has_leaving: false,
        }
    }

    #[test]
    fn the_status_counts_the_pods_and_says_what_is_wrong_with_some() {
        let assembly = assembly();
        let shown = |log: &str| log.replace("hunter2", "***");
        let all = loads(vec![PodState::Loaded, PodState::Loaded]);
        assert_eq!(status(&all, &assembly, &shown), ("2/2".to_owned(), None));
        assert_eq!(condition(&json!({}), &all, &assembly, &shown), None);
        let sink = assembly.config["sinks"].as_object().expect("sinks");
        let id = sink.keys().next().expect("a sink").clone();
        let some = loads(vec![
            PodState::Loaded,
            PodState::Waiting,
            PodState::Stuck(vec!["unknown".to_owned(), id]),
            PodState::Refused("ERROR bad hunter2".to_owned()),
            PodState::Unknown("its log cannot be read".to_owned()),
            PodState::CrashLooping("CrashLoopBackOff".to_owned()),
        ]);
        let (loaded, not_loaded) = status(&some, &assembly, &shown);
        assert_eq!(loaded, "1/6");
        let not_loaded = not_loaded.expect("some have not");
        let NotLoaded {
            waiting,
            refused,
            crash_looping,
            stuck,
            unknown,
            pods,
        } = not_loaded;
        assert_eq!([waiting, refused, crash_looping, stuck, unknown], [1; 5]);
        assert_eq!(pods[0], "pod-3 refuses the configuration: ERROR bad ***");
        assert!(
            pods[2].contains("(components with warnings: team/logs out)"),
            "{pods:?}"
        );
        assert_eq!(
            pods[1],
            "Vector of pod-5 ends again and again: CrashLoopBackOff"
        );
        assert_eq!(pods[3], "pod-4: its log cannot be read");
        let condition = condition(&json!({}), &some, &assembly, &shown).expect("a condition");
        assert!(condition.is_true);
        assert!(
            condition
                .message
                .starts_with("3 of 6 Pods do not run the published configuration; ")
        );
        assert!(
            event(&some, &assembly, &shown)
                .expect("an Event")
                .is_warning
        );
        // It is not known that something is wrong.
        let unknown = loads(vec![PodState::Unknown("no log".to_owned())]);
        assert_eq!(event(&unknown, &assembly, &shown), None);
    }
}
