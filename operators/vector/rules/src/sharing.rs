//! What pipelines have between them that one Vector runs: the addresses where they listen.
//!
//! Who holds an address keeps it. Of those who do not, the eldest gets it; one that cannot run for another reason
//! does not count.

mod claim;
mod own;
mod stored;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared_validation::{FieldError, FieldPath, Findings, Rule, Severity, Subject};

use crate::pipeline::Pipeline;
use claim::{Claim, Listener};
use own::MOST_ADDRESSES;
use stored::{has_api, held, is_faulty, is_going, name, selector};

pub use stored::{runs_together, together_with};

/// The rule that tells of it.
pub const ADDRESS_FREE: &str = "address-free";

/// An address of a pipeline that it cannot have, as the rule is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Taken {
    /// The field that names it.
    at: String,
    /// The address, as a configuration has it.
    place: String,
    /// With its protocol.
    address: String,
    /// Who has it.
    by: String,
    /// Who runs both.
    runner: String,
}

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
    let told = subject.others.map(Vec::<Taken>::deserialize);
    for taken in told.into_iter().flatten().flatten() {
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

/// What a pipeline shares with any other that it may get in the way of; nothing, once it is being deleted.
#[must_use]
pub fn ports(pipeline: &Value) -> BTreeSet<String> {
    let Some(together) = together_with(pipeline).filter(|_| !is_going(pipeline)) else {
        return BTreeSet::new();
    };
    let ports: Vec<_> = Listener::of(pipeline).map(|it| it.port).collect();
    if ports.len() > MOST_ADDRESSES {
        // It is refused for that, and shares nothing.
        return BTreeSet::new();
    }
    let ports = ports.into_iter();
    ports.map(|port| format!("{together} {port}")).collect()
}

/// Where a pipeline listens, as its status tells.
#[must_use]
pub fn listens_on(pipeline: &Value) -> BTreeSet<String> {
    let listeners = Listener::of(pipeline);
    listeners
        .map(|listener| listener.address.to_string())
        .collect()
}

/// What is known of a pipeline that matters to others: where it listens, by what it is selected, and whether it
/// does or cannot.
#[must_use]
pub fn seen_by_others(pipeline: &Value) -> impl PartialEq + use<> {
    (
        ports(pipeline),
        pipeline["metadata"]["labels"].clone(),
        held(pipeline),
        is_faulty(pipeline),
    )
}

/// What is known of who runs pipelines that matters to them.
#[must_use]
pub fn seen_by_pipelines(runner: &Value) -> impl PartialEq + use<> {
    (is_going(runner), selector(runner).cloned(), has_api(runner))
}

/// Which addresses of a pipeline are taken by others, in the form that the rule reads; null when none is.
///
/// `others` are those that may be run together with it and share a port, itself among them or not; `runners` those
/// that may run them. All are objects as stored, with their kinds.
#[must_use]
pub fn taken(pipeline: &Value, others: &[Value], runners: &[Value]) -> Value {
    let uid = &pipeline["metadata"]["uid"];
    let others = others
        .iter()
        .filter(|other| other["metadata"]["uid"] != *uid);
    let others = others.filter(|other| !is_going(other) && !is_faulty(other));
    let mut claims: BTreeMap<String, Vec<Claim<'_>>> = BTreeMap::new();
    for claim in Claim::all(pipeline, runners) {
        claims
            .entry(claim.listener.port.clone())
            .or_default()
            .push(claim);
    }
    for claim in others.flat_map(|other| Claim::all(other, runners)) {
        if let Some(same_port) = claims.get_mut(&claim.listener.port) {
            same_port.push(claim);
        }
    }
    let mut taken = Vec::new();
    for mut same_port in claims.into_values() {
        same_port.sort_by(|one, another| one.precedence().cmp(&another.precedence()));
        let mut given: Vec<Claim<'_>> = Vec::new();
        for claim in same_port {
            let by = match claim.api() {
                Some(runner) => Some(("its own API".to_owned(), runner)),
                None => given.iter().find_map(|it| it.keeps_from(&claim)),
            };
            match by {
                Some((by, runner)) if std::ptr::eq(claim.pipeline, pipeline) => {
                    taken.push(Taken {
                        at: claim.listener.path().as_str().to_owned(),
                        address: claim.listener.address.to_string(),
                        place: claim.listener.address.place,
                        by,
                        runner: name(runner),
                    });
                }
                Some(_) => {}
                None => given.push(claim),
            }
        }
    }
    if taken.is_empty() {
        return Value::Null;
    }
    serde_json::to_value(taken).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared_validation::{Candidate, Judge, Ruleset};

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

    fn told(mut pipeline: Value, is_valid: bool, addresses: &Value) -> Value {
        pipeline["status"] = json!({
            "configCheckResult": is_valid, "addresses": addresses, "observedGeneration": 1,
        });
        pipeline
    }

    /// Who takes the address of the first from it.
    fn blamed(pipelines: &[Value], runners: &[Value]) -> Option<String> {
        let taken = taken(&pipelines[0], pipelines, runners);
        let by = taken.pointer("/0/by")?.as_str()?;
        Some(by.rsplit('/').next()?.to_owned())
    }

    const PORT: &str = "0.0.0.0:9000";

    #[test]
    fn the_elder_keeps_an_address_and_who_holds_it_before() {
        let old = || pipeline("old", "1", PORT);
        let new = || pipeline("new", "2", PORT);
        let runners = anybody();
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(blamed(&[new(), old()], &runners), is("old"));
        assert_eq!(blamed(&[old(), new()], &runners), None);
        // The elder takes the address of the younger one.
        let held = json!([format!("tcp {PORT}")]);
        let holds = told(new(), true, &held);
        assert_eq!(blamed(&[old(), holds.clone()], &runners), is("new"));
        assert_eq!(blamed(&[holds.clone(), old()], &runners), None);
        // Both hold it, having been run by different ones.
        let both = [holds, told(old(), true, &held)];
        assert_eq!(blamed(&both, &runners), is("old"));
        // It waits for another; it is wrong by itself; it was, and has been changed since; it goes.
        let waits = told(old(), false, &held);
        assert_eq!(blamed(&[new(), waits], &runners), is("old"));
        let mut faulty = told(old(), false, &Value::Null);
        assert_eq!(blamed(&[new(), faulty.clone()], &runners), None);
        faulty["metadata"]["generation"] = 2.into();
        assert_eq!(blamed(&[new(), faulty], &runners), is("old"));
        let mut going = old();
        going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
        assert!(ports(&going).is_empty());
        assert_eq!(blamed(&[new(), going], &runners), None);
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
    fn who_listens_everywhere_is_refused_and_compared_with_nobody() {
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
        assert_eq!((ports(&most).len(), ports(&more).len()), (100, 0));
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
            ("127.0.0.2:9000", "127.0.0.1:9000", false),
            ("0.0.0.0:9000", "0.0.0.0:9001", false),
            ("0.0.0.0:0", "0.0.0.0:0", false),
            ("systemd", "systemd#1", true),
            ("systemd", "systemd#2", false),
        ] {
            for (one, another) in [(one, another), (another, one)] {
                let pipelines = [on_nodes("new", "2", one), on_nodes("old", "1", another)];
                let by = blamed(&pipelines, &agents);
                assert_eq!(by.is_some(), is_taken, "{one} and {another}");
                let shared = !ports(&pipelines[0]).is_disjoint(&ports(&pipelines[1]));
                assert!(shared || !is_taken, "{one} and {another} are not found");
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
        let mut taken = taken(&pipeline("new", "2", "0.0.0.0:8686"), &[], &runners);
        assert_eq!(taken[0]["by"], "its own API");
        assert_eq!(taken[0]["runner"], "VectorAggregator team/r");
        taken = super::taken(&pipeline("new", "2", "0.0.0.0:8687"), &[], &runners);
        assert_eq!(taken, Value::Null);
    }

    #[test]
    fn the_rule_names_the_field_and_who_has_the_address() {
        let pipelines = [pipeline("new", "2", PORT), pipeline("old", "1", PORT)];
        let taken = taken(&pipelines[0], &pipelines, &anybody());
        let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let candidate = Candidate::create(&pipelines[0]);
        assert!(rules.check(&candidate).is_valid(), "by itself");
        let verdict = rules.check(&candidate.among(&taken));
        let expected = "spec.sources[in].address: Invalid value: \"0.0.0.0:9000\": tcp 0.0.0.0:9000 is taken by the source `in` of VectorPipeline team/old, and VectorAggregator team/all runs both; listen on another port, or have another run it by the labels that it selects [address-free]";
        assert_eq!(verdict.message(), expected);
        // What stands is not inherited: others have come.
        let candidate = Candidate::update(&pipelines[0], &pipelines[0]);
        assert!(!rules.check(&candidate.among(&taken)).is_valid());
    }
}
