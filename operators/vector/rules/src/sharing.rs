//! What pipelines have between them that one Vector runs: the addresses where they listen.
//!
//! Who listens already goes on, beside those whom the same Vector runs. Of the others the eldest gets the address; one
//! that cannot run for another reason does not count.

mod claim;
mod listener;
mod own;
mod runner;
mod stored;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared_validation::{FieldError, FieldPath, Findings, Rule, Severity, Subject};

use crate::pipeline::Pipeline;
use crate::role::Role;
use claim::Claim;
use listener::Listener;
use own::MOST_ADDRESSES;
use runner::Runner;
use stored::{is_going, is_invalid, is_told, role, together};

/// The rule that tells of it.
pub const ADDRESS_FREE: &str = "address-free";

/// Of how many who run it a status tells.
const MOST_RUNNERS: usize = 64;

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

/// What a pipeline shares with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Shared {
    /// Those who run it.
    run_by: Vec<String>,
    /// What others have there.
    taken: Vec<Taken>,
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
    let shared = subject.others.map(Shared::deserialize);
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
    let ports: BTreeSet<_> = listeners(pipeline).into_iter().map(|it| it.port).collect();
    let ports = ports.into_iter();
    ports
        .map(|port| under(&together(pipeline, role), &port))
        .collect()
}

/// Under which key those are found that may run a pipeline; none where that does not matter to it.
#[must_use]
pub fn runners(pipeline: &Value) -> Option<String> {
    let role = role(pipeline)?;
    (!listeners(pipeline).is_empty()).then(|| together(pipeline, role))
}

/// What others are told of a pipeline, by port: where it is to listen. Nothing of one that is being deleted, and of
/// one that is invalid only what it waits for.
#[must_use]
pub fn told_of_pipeline(pipeline: &Value) -> Vec<(String, Value)> {
    let Some(role) = role(pipeline).filter(|_| !is_going(pipeline)) else {
        return Vec::new();
    };
    let together = together(pipeline, role);
    let mut told: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
    for listener in listeners(pipeline) {
        if !is_invalid(pipeline) || is_told(pipeline, &listener.address.to_string()) {
            let claims = told.entry(under(&together, &listener.port)).or_default();
            claims.push(Claim::new(pipeline, &listener));
        }
    }
    let told = told.into_iter();
    told.map(|(port, claims)| (port, json!(claims))).collect()
}

/// What pipelines are told of one who may run them.
#[must_use]
pub fn told_of_runner(runner: &Value) -> Vec<(String, Value)> {
    if is_going(runner) {
        return Vec::new();
    }
    let role = if runner["kind"] == "Vector" {
        Role::Agent
    } else {
        Role::Aggregator
    };
    vec![(together(runner, role), json!(Runner::new(runner)))]
}

/// What a pipeline shares: who runs it, and which of its addresses others have there, in the form that the rule
/// reads. Null where nobody runs it.
///
/// `others` is what is told of those under its ports, itself among them or not; `runners` of those who may run it.
#[must_use]
pub fn shared(pipeline: &Value, others: Vec<Value>, runners: Vec<Value>) -> Value {
    let Some(role) = role(pipeline) else {
        return Value::Null;
    };
    let listeners = listeners(pipeline);
    let Some(first) = listeners.first() else {
        return Value::Null;
    };
    let me = Claim::new(pipeline, first);
    let others = others.into_iter();
    let others = others.flat_map(|told| Vec::<Claim>::deserialize(told).unwrap_or_default());
    let mut by_port: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
    for other in others.filter(|other| other.uid != me.uid) {
        by_port.entry(other.port.clone()).or_default().push(other);
    }
    let runners = runners.into_iter();
    let runners = runners.filter_map(|told| Runner::deserialize(told).ok());
    let runners: BTreeMap<_, _> = runners
        .filter(|runner| runner.runs(&me.labels))
        .map(|runner| (runner.name.clone(), runner))
        .collect();
    if runners.is_empty() {
        return Value::Null;
    }
    let mut taken = Vec::new();
    for listener in &listeners {
        let mine = Claim::new(pipeline, listener);
        let by = runners.values().find_map(|runner| {
            if runner.needs(&listener.port) {
                return Some(("Vector's own API".to_owned(), runner));
            }
            let keeper = keeper(&mine, by_port.get(&listener.port)?, runner, role)?;
            Some((told_to(&me, keeper), runner))
        });
        if let Some((by, runner)) = by {
            taken.push(Taken {
                at: listener.path().as_str().to_owned(),
                address: listener.address.to_string(),
                place: listener.address.place.clone(),
                by,
                runner: if me.may_know(&runner.namespace) {
                    runner.name.clone()
                } else {
                    "a Vector of another namespace".to_owned()
                },
            });
        }
    }
    json!(Shared {
        run_by: runners.into_keys().collect(),
        taken,
    })
}

/// Who has what a pipeline claims, among those whom one runs.
fn keeper<'a>(
    mine: &'a Claim,
    others: &'a [Claim],
    runner: &Runner,
    role: Role,
) -> Option<&'a Claim> {
    let others = others.iter().filter(|other| runner.runs(&other.labels));
    let mut claims: Vec<_> = others.chain([mine]).collect();
    claims.sort_by_cached_key(|claim| claim.precedence(&runner.name));
    let mut given: Vec<&Claim> = Vec::new();
    for claim in claims {
        let mut before = given.iter();
        let keeper =
            before.find(|it| it.uid != claim.uid && it.spot.is_in_the_way_of(claim.spot, role));
        match keeper {
            Some(keeper) if std::ptr::eq(claim, mine) => return Some(keeper),
            None if std::ptr::eq(claim, mine) => return None,
            Some(_) => {}
            None => given.push(claim),
        }
    }
    None
}

/// What the author of a pipeline is told of another.
fn told_to(me: &Claim, other: &Claim) -> String {
    if me.may_know(&other.namespace) {
        format!("{} of {}", other.listener, other.pipeline)
    } else {
        "a pipeline that is not of this namespace".to_owned()
    }
}

/// Who runs a pipeline, of what it [shares](shared).
#[must_use]
pub fn run_by(shared: &Value) -> Vec<String> {
    let shared = Shared::deserialize(shared);
    let run_by = shared.map(|shared| shared.run_by).unwrap_or_default();
    run_by.into_iter().take(MOST_RUNNERS).collect()
}

/// Where a pipeline listens that is run; where it would but for others, if it waits for these.
#[must_use]
pub fn addresses(pipeline: &Value, shared: &Value, waits: bool) -> Vec<String> {
    let Ok(shared) = Shared::deserialize(shared) else {
        return Vec::new();
    };
    let addresses: BTreeSet<_> = if waits {
        shared
            .taken
            .into_iter()
            .map(|taken| taken.address)
            .collect()
    } else {
        let listeners = listeners(pipeline).into_iter();
        listeners.map(|it| it.address.to_string()).collect()
    };
    addresses.into_iter().collect()
}

/// Where a pipeline is to listen. Nowhere, where that is more than is compared: it is refused for that.
fn listeners(pipeline: &Value) -> Vec<Listener<'_>> {
    let listeners: Vec<_> = Listener::of(pipeline).collect();
    if listeners.len() > MOST_ADDRESSES {
        return Vec::new();
    }
    listeners
}

fn under(together: &str, port: &str) -> String {
    format!("{together} {port}")
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

    fn told(mut pipeline: Value, is_valid: bool, addresses: &[&str], run_by: &[&str]) -> Value {
        pipeline["status"] = json!({
            "configCheckResult": is_valid, "observedGeneration": 1,
            "addresses": addresses, "runBy": run_by,
        });
        pipeline
    }

    /// What the first shares with the others.
    fn shared_by(pipelines: &[Value], runners: &[Value]) -> Value {
        let found =
            |told: fn(&Value) -> Vec<(String, Value)>, objects: &[Value], keys: &[String]| {
                let told = objects.iter().flat_map(told);
                let found = told.filter(|(key, _)| keys.contains(key));
                found.map(|(_, told)| told).collect()
            };
        let me = &pipelines[0];
        let others = found(told_of_pipeline, pipelines, &ports(me));
        let keys: Vec<_> = super::runners(me).into_iter().collect();
        shared(me, others, found(told_of_runner, runners, &keys))
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
        // What could not be judged goes on.
        let unclear = told(new(), false, address, all);
        assert_eq!(blamed(&[old(), unclear], &runners), is("new"));
        // It waits for this address; for another; it is wrong by itself; it was, and has been changed since; it goes.
        let waits = told(old(), false, address, &[]);
        assert_eq!(blamed(&[new(), waits], &runners), is("old"));
        let waits = told(old(), false, &["tcp 0.0.0.0:9001"], &[]);
        assert_eq!(blamed(&[new(), waits], &runners), None);
        let mut faulty = told(old(), false, &[], &[]);
        assert_eq!(blamed(&[new(), faulty.clone()], &runners), None);
        faulty["metadata"]["generation"] = 2.into();
        assert_eq!(blamed(&[new(), faulty], &runners), is("old"));
        let mut going = old();
        going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
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
            ("[::ffff:127.0.0.1]:9000", "127.0.0.1:9000", true),
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
    fn a_tenant_is_told_of_nothing_that_is_not_in_his_namespace() {
        let mut old = on_nodes("old", "1", PORT);
        old["metadata"]["namespace"] = "other".into();
        let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}})];
        let mut new = on_nodes("new", "2", PORT);
        let taken = |new: &Value| shared_by(&[new.clone(), old.clone()], &agents)["taken"].clone();
        assert_eq!(
            taken(&new)[0]["by"],
            "a pipeline that is not of this namespace"
        );
        assert_eq!(taken(&new)[0]["runner"], "a Vector of another namespace");
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
}
