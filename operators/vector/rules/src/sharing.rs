//! What pipelines have between them that one Vector runs: the addresses where they listen.
//!
//! Who listens already goes on, beside those whom the same Vector runs. Of the others the eldest gets the address; one
//! that cannot run for another reason does not count.

mod claims;
mod given;
mod labels;
mod listener;
mod own;
mod place;
mod runner;
mod stored;
mod taken;

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use shared_validation::{FieldError, FieldPath, Findings, Rule, Severity, Subject};

use crate::pipeline::Pipeline;
use crate::role::Role;
pub use claims::Claims;
use claims::listeners;
pub use runner::Runner;
use stored::{is_going, role, together};
pub use taken::shared;
use taken::{Shared, Taken};

/// The rule that tells of it.
pub const ADDRESS_FREE: &str = "address-free";

pub(crate) fn rules<K: Pipeline>() -> [Rule<K>; 2] {
    let rule = |id, sentence, check| Rule {
        id,
        sentence,
        severity: Severity::Error,
        source: "https://github.com/kaasops/vector-operator/tree/main/docs",
        reads: &["spec.sources", "spec.sinks"],
        check,
    };
    [
        rule(
            "addresses-apart",
            "No two components listen where one host lets only one.",
            own::addresses_apart,
        ),
        rule(
            ADDRESS_FREE,
            "No other pipeline that the same Vector runs listens where this one does. The loop knows the others, and tells the one that came later.",
            address_free,
        ),
    ]
}

fn address_free<K: Pipeline>(subject: &Subject<'_, K>, findings: &mut Findings) {
    let shared = subject.others().map(Shared::deserialize);
    for taken in shared.into_iter().flatten().flat_map(|it| it.taken) {
        let Taken {
            address,
            by,
            runner,
            ..
        } = taken;
        let detail = format!(
            "{address} is taken by {by}, and {runner} runs both; listen on another port, or have another run it by the labels that it selects"
        );
        let path = FieldPath::new(taken.at);
        findings.push(FieldError::invalid(path, taken.place, detail));
    }
}

/// Under which ports a pipeline may have something in common with others.
#[must_use]
pub fn ports(pipeline: &Value) -> Vec<String> {
    let Some(role) = role(pipeline) else {
        return Vec::new();
    };
    let ports = listeners(pipeline).into_iter().map(|it| it.place.port);
    under(&together(pipeline, role), ports)
}

/// Under which key those are found that may run a pipeline; none where that does not matter to it.
#[must_use]
pub fn runners(pipeline: &Value) -> Option<String> {
    let role = role(pipeline)?;
    (!listeners(pipeline).is_empty()).then(|| together(pipeline, role))
}

/// What others are told of a pipeline, and under which ports: where it is to listen. Nothing of one that is being
/// deleted.
#[must_use]
pub fn told_of_pipeline(pipeline: &Value) -> (Vec<String>, Claims) {
    let Some(role) = role(pipeline).filter(|_| !is_going(pipeline)) else {
        return (Vec::new(), Claims::default());
    };
    let claims = Claims::told_of(pipeline);
    let ports = claims.all.iter().map(|claim| claim.place.port.clone());
    (under(&together(pipeline, role), ports), claims)
}

/// What pipelines are told of one who may run them, and under which key.
#[must_use]
pub fn told_of_runner(runner: &Value) -> (Vec<String>, Runner) {
    let role = if runner["kind"] == "Vector" {
        Role::Agent
    } else {
        Role::Aggregator
    };
    let keys = (!is_going(runner)).then(|| together(runner, role));
    (keys.into_iter().collect(), Runner::new(runner))
}

/// Who runs a pipeline, of what it [shares](shared).
#[must_use]
pub fn run_by(shared: &Value) -> Vec<String> {
    let shared = Shared::deserialize(shared);
    shared.map(|shared| shared.run_by).unwrap_or_default()
}

/// With whom others have what a pipeline asks for, of what it [shares](shared).
#[must_use]
pub fn held_back_by(shared: &Value) -> Vec<String> {
    let shared = Shared::deserialize(shared);
    shared.map(|shared| shared.held_back_by).unwrap_or_default()
}

/// Where a pipeline listens that is run; where it would but for others, if it waits for these.
#[must_use]
pub fn addresses(pipeline: &Value, shared: &Value, waits: bool) -> Vec<String> {
    let Ok(shared) = Shared::deserialize(shared) else {
        return Vec::new();
    };
    let addresses: BTreeSet<_> = if waits {
        let taken = shared.taken.into_iter();
        taken.map(|taken| taken.address).collect()
    } else {
        let listeners = listeners(pipeline).into_iter();
        listeners.map(|it| it.address.to_string()).collect()
    };
    addresses.into_iter().collect()
}

/// Each once.
fn under(together: &str, ports: impl Iterator<Item = String>) -> Vec<String> {
    let ports: BTreeSet<_> = ports.collect();
    let keys = ports.into_iter().map(|port| format!("{together} {port}"));
    keys.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use shared_validation::{Accepted, Candidate, Judge, Policy, Ruleset, Rulesets};

    use super::*;
    use crate::pipeline::VectorPipeline;

    fn pipeline(name: &str, created: &str, address: &str) -> Value {
        json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": "VectorPipeline",
            "metadata": {
                "name": name, "namespace": "team", "uid": name, "generation": 1,
                "creationTimestamp": format!("2026-01-01T00:00:0{created}Z"),
            },
            "spec": {
                "sources": {"in": {"type": "vector", "address": address}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            },
        })
    }

    fn on_nodes(name: &str, created: &str, address: &str) -> Value {
        let mut pipeline = pipeline(name, created, address);
        let source = json!({"type": "prometheus_remote_write", "address": address});
        pipeline["spec"]["sources"]["in"] = source;
        pipeline
    }

    fn runner(name: &str, spec: &Value) -> Value {
        json!({
            "kind": "VectorAggregator",
            "metadata": {"name": name, "namespace": "team", "uid": name},
            "spec": spec,
        })
    }

    fn anybody() -> Vec<Value> {
        vec![runner("all", &json!({}))]
    }

    fn labelled(mut pipeline: Value, run: &str) -> Value {
        pipeline["metadata"]["labels"] = json!({"run": run});
        pipeline
    }

    fn told(mut pipeline: Value, is_valid: bool, addresses: &[&str], run_by: &[&str]) -> Value {
        pipeline["status"] = json!({
            "configCheckResult": is_valid, "observedGeneration": 1,
            "LastAppliedPipelineHash": 1, "addresses": addresses, "runBy": run_by,
        });
        pipeline
    }

    fn found<T>(
        told: fn(&Value) -> (Vec<String>, T),
        objects: &[Value],
        wanted: &[String],
    ) -> Vec<Arc<T>> {
        let told = objects.iter().map(told);
        let found = told.filter(|(keys, _)| keys.iter().any(|key| wanted.contains(key)));
        found.map(|(_, told)| Arc::new(told)).collect()
    }

    /// What the first shares with the others.
    fn shared_by(pipelines: &[Value], runners: &[Value]) -> Value {
        let me = &pipelines[0];
        let others = found(told_of_pipeline, pipelines, &ports(me));
        let keys: Vec<_> = super::runners(me).into_iter().collect();
        shared(me, &others, &found(told_of_runner, runners, &keys))
    }

    /// Who has the address of the first.
    fn blamed(pipelines: &[Value], runners: &[Value]) -> Option<String> {
        let shared = shared_by(pipelines, runners);
        let by = shared.pointer("/taken/0/by")?.as_str()?;
        Some(by.rsplit('/').next()?.to_owned())
    }

    const PORT: &str = "0.0.0.0:9000";
    const TCP: &str = "tcp 0.0.0.0:9000";

    #[test]
    fn the_elder_keeps_an_address_and_who_holds_it_before() {
        let old = || pipeline("old", "1", PORT);
        let new = || pipeline("new", "2", PORT);
        let runners = anybody();
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(blamed(&[new(), old()], &runners), is("old"));
        assert_eq!(blamed(&[old(), new()], &runners), None);
        // The elder is to listen where the younger one does.
        let all = &["VectorAggregator team/all"];
        let address = &[TCP];
        let runs = told(new(), true, address, all);
        assert_eq!(blamed(&[old(), runs.clone()], &runners), is("new"));
        assert_eq!(blamed(&[runs.clone(), old()], &runners), None);
        // Others have run it until now, or nobody has.
        for run_by in [&["VectorAggregator team/other"][..], &[]] {
            let elsewhere = told(old(), true, address, run_by);
            assert_eq!(blamed(&[runs.clone(), elsewhere.clone()], &runners), None);
            assert_eq!(blamed(&[elsewhere, runs.clone()], &runners), is("new"));
        }
        // Both have been run by it, before it selected otherwise.
        let both = [runs, told(old(), true, address, all)];
        assert_eq!(blamed(&both, &runners), is("old"));
        // It waits for this address; for another; it is wrong by itself; it was, and has been changed since; it goes.
        let waits = told(old(), false, address, &[]);
        assert_eq!(blamed(&[new(), waits], &runners), is("old"));
        let waits = told(old(), false, &["tcp 0.0.0.0:9001"], &[]);
        assert_eq!(blamed(&[new(), waits], &runners), None);
        let faulty = told(old(), false, &[], &[]);
        assert_eq!(blamed(&[new(), faulty.clone()], &runners), None);
        assert_eq!(blamed(&[new(), edited(faulty, PORT)], &runners), is("old"));
        let mut going = old();
        going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
        assert_eq!(blamed(&[new(), going], &runners), None);
    }

    /// As its author has changed it since.
    fn edited(mut pipeline: Value, address: &str) -> Value {
        pipeline["metadata"]["generation"] = 2.into();
        pipeline["spec"]["sources"]["in"]["address"] = address.into();
        pipeline
    }

    fn paused(mut pipeline: Value) -> Value {
        pipeline["metadata"]["annotations"] = json!({"lockstep.dev/paused": "true"});
        pipeline
    }

    #[test]
    fn what_is_changed_goes_on_as_it_was_until_that_is_judged() {
        let runners = anybody();
        let is = |name: &str| Some(name.to_owned());
        // Its component is not known any more.
        let was = || is("young as it was");
        let runs = || {
            told(
                pipeline("young", "2", PORT),
                true,
                &[TCP],
                &["VectorAggregator team/all"],
            )
        };
        let moved = || edited(runs(), "0.0.0.0:9001");
        let elder = |address: &str| pipeline("old", "1", address);
        let younger = || pipeline("younger", "3", "0.0.0.0:9001");
        // Where it listens it goes on; where it will, it waits as others do.
        assert_eq!(blamed(&[elder(PORT), moved()], &runners), was());
        assert_eq!(blamed(&[elder("0.0.0.0:9001"), moved()], &runners), None);
        assert_eq!(blamed(&[younger(), moved()], &runners), is("young"));
        // It could not be judged.
        let mut unclear = moved();
        unclear["status"]["configCheckResult"] = false.into();
        unclear["status"]["observedGeneration"] = 2.into();
        unclear["status"]["LastAppliedPipelineHash"] = Value::Null;
        assert_eq!(blamed(&[elder(PORT), unclear.clone()], &runners), was());
        assert_eq!(blamed(&[younger(), unclear.clone()], &runners), None);
        unclear["status"]["runBy"] = Value::Null;
        assert_eq!(blamed(&[younger(), unclear.clone()], &runners), None);
        assert_eq!(
            blamed(&[pipeline("new", "3", PORT), unclear], &runners),
            None
        );
        // Nobody will.
        let left = paused(moved());
        assert_eq!(blamed(&[elder(PORT), left.clone()], &runners), was());
        assert_eq!(blamed(&[younger(), left], &runners), None);
        let left = paused(edited(runs(), PORT));
        assert_eq!(blamed(&[elder(PORT), left], &runners), is("young"));
        let new = || pipeline("new", "3", PORT);
        assert_eq!(blamed(&[new(), paused(elder(PORT))], &runners), None);
        let waits = told(elder(PORT), false, &[TCP], &[]);
        assert_eq!(blamed(&[new(), waits.clone()], &runners), is("old"));
        let elsewhere = edited(waits.clone(), "0.0.0.0:9001");
        assert_eq!(blamed(&[new(), elsewhere], &runners), None);
        assert_eq!(blamed(&[new(), paused(waits)], &runners), None);
        assert_eq!(blamed(&[new(), paused(runs())], &runners), is("young"));
    }

    #[test]
    fn who_waits_with_one_is_in_nobodys_way_with_another() {
        let runners = ["a", "b"].map(|run| {
            let selector = json!({"matchLabels": {run: "yes"}});
            runner(run, &json!({"selector": selector}))
        });
        let waits = |held_back_by: &[&str]| {
            let mut waits = told(pipeline("waits", "1", PORT), false, &[TCP], &[]);
            waits["metadata"]["labels"] = json!({"a": "yes", "b": "yes"});
            waits["status"]["heldBackBy"] = held_back_by.into();
            waits
        };
        let with = |run: &str| {
            let mut new = pipeline("new", "2", PORT);
            new["metadata"]["labels"] = json!({run: "yes"});
            new
        };
        let (a, b) = ("VectorAggregator team/a", "VectorAggregator team/b");
        let next = |run, held_back_by: &[&str]| blamed(&[with(run), waits(held_back_by)], &runners);
        assert_eq!(next("a", &[a]), Some("waits".to_owned()));
        assert_eq!(next("b", &[a]), None);
        assert_eq!(next("a", &[a, b]), None);
        // As it is told.
        let mut runs = told(with("a"), true, &[TCP], &[a]);
        runs["metadata"]["name"] = "runs".into();
        runs["metadata"]["uid"] = "runs".into();
        let shared = shared_by(&[waits(&[]), runs], &runners);
        assert_eq!(
            (run_by(&shared), held_back_by(&shared)),
            (vec![a.into(), b.into()], vec![a.into()])
        );
    }

    #[test]
    fn who_is_run_by_more_than_a_status_tells_of_keeps_his_address() {
        let names: Vec<_> = (0..=64).map(|at| format!("r{at:03}")).collect();
        let runners: Vec<_> = names.iter().map(|name| runner(name, &json!({}))).collect();
        let names: Vec<_> = names
            .iter()
            .map(|name| format!("VectorAggregator team/{name}"))
            .collect();
        let runs = pipeline("runs", "2", PORT);
        let shared = shared_by(std::slice::from_ref(&runs), &runners);
        assert_eq!(run_by(&shared), names[..64]);
        let run_by: Vec<_> = names[..64].iter().map(String::as_str).collect();
        let runs = told(runs, true, &[TCP], &run_by);
        let old = pipeline("old", "1", PORT);
        assert_eq!(
            blamed(&[old, runs], &runners[64..]),
            Some("runs".to_owned())
        );
    }

    #[test]
    fn aggregators_have_each_port_once() {
        // The host would have both, but not what leads to the Pods.
        let pipelines = [
            pipeline("new", "2", "127.0.0.2:9000"),
            pipeline("old", "1", "127.0.0.1:9000"),
        ];
        assert_eq!(blamed(&pipelines, &anybody()), Some("old".to_owned()));
    }

    #[test]
    fn one_pipeline_is_in_its_own_way_before_anybody_runs_it() {
        let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let mut pipeline = pipeline("a", "1", "0.0.0.0:9000");
        let mut said = |address: &str| {
            let another = json!({"type": "vector", "address": address});
            pipeline["spec"]["sources"]["other"] = another;
            pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in", "other"]);
            rules.check(&Candidate::create(&pipeline)).message()
        };
        assert_eq!(
            said("127.0.0.1:9000"),
            "spec.sources[other].address: Invalid value: \"127.0.0.1:9000\": tcp 127.0.0.1:9000 is not free where the source `in` listens on 0.0.0.0:9000; choose another port [addresses-apart]"
        );
        assert_eq!(said("127.0.0.1:9001"), "");
        // Once.
        let equal = said("0.0.0.0:9000");
        assert!(
            equal.contains("[events-flow]") && !equal.contains("[addresses-apart]"),
            "{equal}"
        );
    }

    #[test]
    fn who_listens_everywhere_is_refused_and_compared_in_part() {
        let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let with = |count: u16| {
            let mut pipeline = pipeline("a", "1", PORT);
            for port in 0..count {
                let address = format!("127.0.0.1:{}", 10_000 + port);
                let source = json!({"type": "vector", "address": address});
                pipeline["spec"]["sources"][format!("s{port}")] = source;
            }
            pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in"]);
            pipeline
        };
        let (most, more) = (with(99), with(100));
        assert_eq!((ports(&most).len(), ports(&more).len()), (100, 100));
        let said = |pipeline| rules.check(&Candidate::create(pipeline)).message();
        assert_eq!(said(&most), "");
        let expected = "spec: Invalid value: listens on 101 addresses; at most 100 are compared with those of others [addresses-apart]";
        assert_eq!(said(&more), expected);
    }

    #[test]
    fn only_who_is_run_by_the_same_vector_is_in_the_way() {
        let runners = ["a", "b"].map(|run| {
            let selector = json!({"matchLabels": {"run": run}});
            runner(run, &json!({"selector": selector}))
        });
        let old = labelled(pipeline("old", "1", PORT), "a");
        let new = || pipeline("new", "2", PORT);
        let by = |new, runners: &[Value]| blamed(&[new, old.clone()], runners);
        assert_eq!(by(labelled(new(), "a"), &runners), Some("old".to_owned()));
        assert_eq!(by(labelled(new(), "b"), &runners), None);
        assert_eq!(by(new(), &runners), None);
        assert_eq!(by(new(), &anybody()), Some("old".to_owned()));
        assert_eq!(by(labelled(new(), "a"), &[]), None);
        let mut elsewhere = anybody();
        elsewhere[0]["metadata"]["namespace"] = "other".into();
        assert_eq!(by(new(), &elsewhere), None);
        elsewhere[0]["kind"] = "Vector".into();
        assert_eq!(by(new(), &elsewhere), None, "agents do not run it");
        let mut going = anybody();
        going[0]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
        assert_eq!(by(new(), &going), None);
        // Who loses what it claims is in nobody's way.
        let third = labelled(pipeline("third", "3", PORT), "b");
        let both = json!({"matchLabels": {}});
        let second = labelled(pipeline("second", "2", PORT), "a");
        let runners = [
            runners.to_vec(),
            vec![runner("c", &json!({"selector": both}))],
        ]
        .concat();
        let all = [third, second, old.clone()];
        assert_eq!(blamed(&all, &runners), Some("old".to_owned()));
        assert_eq!(blamed(&all, &runners[..2]), None);
    }

    #[test]
    fn addresses_that_stand_for_all_take_every_other_with_the_port() {
        let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}})];
        for (one, another, is_taken) in [
            ("0.0.0.0:9000", "0.0.0.0:9000", true),
            ("0.0.0.0:9000", "127.0.0.1:9000", true),
            ("[::]:9000", "127.0.0.1:9000", true),
            ("[::]:9000", "0.0.0.0:9000", true),
            ("0.0.0.0:9000", "[::1]:9000", false),
            ("[::ffff:127.0.0.1]:9000", "127.0.0.1:9000", true),
            ("127.0.0.2:9000", "127.0.0.1:9000", false),
            ("0.0.0.0:9000", "0.0.0.0:9001", false),
            ("[::1]:9000", "[::]:9000", true),
            ("[::1]:9000", "127.0.0.1:9000", false),
            // Vector compares what is written, whatever the host makes of it.
            ("0.0.0.0:0", "0.0.0.0:0", true),
            ("0.0.0.0:0", "127.0.0.1:0", false),
            ("127.0.0.1:0", "[::ffff:127.0.0.1]:0", false),
            ("systemd", "systemd#1", true),
            ("systemd", "systemd#2", false),
        ] {
            for (one, another) in [(one, another), (another, one)] {
                let pipelines = [on_nodes("new", "2", one), on_nodes("old", "1", another)];
                let by = blamed(&pipelines, &agents);
                assert_eq!(by.is_some(), is_taken, "{one} and {another}");
                let shares = ports(&pipelines[0]) == ports(&pipelines[1]);
                assert!(shares || !is_taken, "{one} and {another} are not found");
            }
        }
        let mut udp = pipeline("new", "2", PORT);
        udp["spec"]["sources"]["in"] = json!({"type": "socket", "mode": "udp", "address": PORT});
        let pipelines = [udp, pipeline("old", "1", PORT)];
        assert_eq!(blamed(&pipelines, &anybody()), None);
    }

    #[test]
    fn the_api_of_who_runs_it_has_its_port() {
        let runners = [runner("r", &json!({"api": {"enabled": true}}))];
        let shared = shared_by(&[pipeline("new", "2", "0.0.0.0:8686")], &runners);
        assert_eq!(shared["taken"][0]["by"], "Vector's own API");
        assert_eq!(shared["taken"][0]["runner"], "VectorAggregator team/r");
        let shared = shared_by(&[pipeline("new", "2", "0.0.0.0:8687")], &runners);
        assert_eq!(shared["taken"], json!([]));
    }

    #[test]
    fn the_metrics_of_who_runs_it_have_theirs_unless_it_serves_them() {
        let spec = json!({"agent": {"internalMetrics": true}});
        let agents =
            [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}, "spec": spec})];
        let mut pipeline = on_nodes("new", "2", "127.0.0.1:9598");
        let shared = shared_by(&[pipeline.clone()], &agents);
        assert_eq!(shared["taken"][0]["by"], "Vector's own metrics");
        pipeline["spec"]["sources"]["in"] = json!({"type": "kubernetes_logs"});
        pipeline["spec"]["sinks"]["out"] = json!({"type": "prometheus_exporter", "inputs": ["in"]});
        assert_eq!(shared_by(&[pipeline], &agents)["taken"], json!([]));
    }

    #[test]
    fn events_of_kubernetes_are_sent_to_the_address_that_is_told() {
        let events = |name: &str, created: &str, mode: &str| {
            let mut pipeline = pipeline(name, created, PORT);
            pipeline["spec"]["sources"]["in"] =
                json!({"type": "kubernetes_events", "address": PORT, "mode": mode});
            pipeline
        };
        let old = pipeline("old", "1", PORT);
        let by = |mode| blamed(&[events("new", "2", mode), old.clone()], &anybody());
        assert_eq!(by("tcp"), Some("old".to_owned()));
        assert_eq!(by("udp"), None);
    }

    #[test]
    fn a_tenant_is_told_of_no_pipeline_that_is_not_in_his_namespace() {
        let mut old = on_nodes("old", "1", PORT);
        old["metadata"]["namespace"] = "other".into();
        let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}})];
        let mut new = on_nodes("new", "2", PORT);
        let taken = |new: &Value| shared_by(&[new.clone(), old.clone()], &agents)["taken"].clone();
        assert_eq!(
            taken(&new)[0]["by"],
            "a pipeline that is not of this namespace"
        );
        assert_eq!(taken(&new)[0]["runner"], "Vector n/a");
        new["metadata"]["namespace"] = Value::Null;
        assert_eq!(
            taken(&new)[0]["by"],
            "the source `in` of VectorPipeline other/old"
        );
        assert_eq!(taken(&new)[0]["runner"], "Vector n/a");
    }

    #[test]
    fn the_rule_names_the_field_and_who_has_the_address() {
        let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
        let shared = shared_by(&pipelines, &anybody());
        let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let candidate = Candidate::create(&pipelines[0]);
        assert!(rules.check(&candidate).is_valid(), "by itself");
        let verdict = rules.check(&candidate.among(&shared));
        let expected = "spec.sources[in].address: Invalid value: \"0.0.0.0:9000\": tcp 0.0.0.0:9000 is taken by the source `in` of VectorPipeline team/old, and VectorAggregator team/all runs both; listen on another port, or have another run it by the labels that it selects [address-free]";
        assert_eq!(verdict.message(), expected);
        assert!(verdict.inherited.is_empty());
        // What stands is not inherited: others have come.
        let candidate = Candidate::update(&pipelines[0], &pipelines[0]);
        assert!(!rules.check(&candidate.among(&shared)).is_valid());
    }

    #[test]
    fn what_a_policy_only_warned_of_is_not_inherited() {
        let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let known = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let known = Rulesets::default().with(Arc::new(known));
        let policy = |action: &str| {
            let rules = json!({"VectorPipeline": {ADDRESS_FREE: action}});
            Policy::read(&json!({"rules": rules}), &known).expect("a policy")
        };
        let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
        let shared = shared_by(&pipelines, &anybody());
        let new = &pipelines[0];
        let (warns, denies) = (policy("warn"), policy("deny"));
        let warned = rules.check(&Candidate::create(new).under(&warns).among(&shared));
        assert!(warned.is_valid() && !warned.warnings.is_empty());
        let accepted = Accepted::of(&warned.object, rules.transition_fields());
        let accepted = accepted.in_spite_of(&warned.inherited);
        let candidate = Candidate::update(new, new).since(Some(&accepted));
        let verdict = rules.check(&candidate.under(&denies).among(&shared));
        assert!(
            verdict.message().ends_with("[address-free]"),
            "{}",
            verdict.message()
        );
    }
}
