//! Start of Vector: which configurations it refuses, what it allocates and binds, as the source of Vector 0.57 says. This shares no
//! code with the validation of pipelines, which is tested with it.
//!
//! It knows the faults by which pipelines of one process stop each other, and not each option of each component: what it accepts may
//! be refused by Vector for a reason that concerns one component alone.

mod binds;
mod component;
mod graph;
mod machine;
mod memory;
mod texts;
mod values;

use serde_json::Value;

use crate::start::component::Component;
pub use crate::start::machine::Machine;

/// Starts Vector with a configuration. `secret` returns the value of a secret by the name of its backend and its key.
///
/// # Errors
///
/// The reason why Vector does not start, or is ended by the kernel.
pub fn start(
    config: &Value,
    secret: impl Fn(&str, &str) -> Option<String>,
    machine: &Machine,
) -> Result<(), String> {
    let mut config = config.clone();
    values::substitute(&mut config, &secret)?;
    let components = components(&config)?;
    graph::check(&components)?;
    for component in &components {
        texts::check(component)?;
    }
    binds::check(&config, &components)?;
    memory::check(&components, machine)
}

/// Returns the components, of which each has a type.
fn components(config: &Value) -> Result<Vec<Component<'_>>, String> {
    let mut components = Vec::new();
    for block in ["sources", "transforms", "sinks"] {
        for (id, options) in config[block].as_object().into_iter().flatten() {
            let component = Component { block, id, options };
            if component.type_().is_empty() {
                return Err(format!("{block}.{id}: missing field `type`"));
            }
            components.push(component);
        }
    }
    Ok(components)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    const MACHINE: Machine = Machine {
        memory_bytes: 1 << 30,
        disk_bytes: 32 << 30,
    };

    fn sink(options: &Value) -> Value {
        let mut sink = json!({"type": "http", "inputs": ["in"], "uri": "http://h/", "encoding": {"codec": "json"}});
        for (name, value) in options.as_object().expect("options") {
            sink[name] = value.clone();
        }
        sink
    }

    fn with_sinks(sinks: &[Value]) -> Result<(), String> {
        let sinks: Map<_, _> = (0..)
            .zip(sinks)
            .map(|(at, sink)| (format!("s{at}"), sink.clone()))
            .collect();
        let config = json!({
            "secret": {"k8s": {"type": "directory", "path": "/s"}},
            "sources": {"in": {"type": "kubernetes_logs"}},
            "transforms": {},
            "sinks": sinks,
        });
        let secret = |backend: &str, key: &str| {
            let values = [
                ("bad", ":::not a uri"),
                ("template", "{{ host }}/"),
                ("good", "http://g/"),
            ];
            let found = values
                .iter()
                .find(|(name, _)| *name == key && backend == "k8s");
            found.map(|(_, value)| (*value).to_owned())
        };
        start(&config, secret, &MACHINE)
    }

    #[test]
    fn what_pipelines_of_one_process_can_do_to_each_other_is_refused() {
        let listens =
            |address: &str| sink(&json!({"type": "prometheus_exporter", "address": address}));
        let disk = |bytes: u64| sink(&json!({"buffer": {"type": "disk", "max_size": bytes}}));
        for (sinks, reason) in [
            (
                vec![sink(
                    &json!({"type": "loki", "endpoint": "SECRET[k8s.bad]"}),
                )],
                "invalid uri",
            ),
            (
                vec![sink(&json!({"uri": "SECRET[k8s.none]"}))],
                "cannot be resolved",
            ),
            (
                vec![sink(&json!({"uri": "SECRET[k8s.template]"}))],
                "no literal string prefix",
            ),
            (
                vec![sink(&json!({"request": {"headers": {"a b": "c"}}}))],
                "invalid HTTP header name",
            ),
            (
                vec![sink(&json!({"buffer": {"max_events": 1_000_000_000}}))],
                "killed: out of memory",
            ),
            (vec![disk(40 << 30)], "disk"),
            (vec![disk(20 << 30), disk(20 << 30)], "disk"),
            (vec![disk(1_000)], "268435488"),
            (
                vec![listens("0.0.0.0:9598"), listens("[::]:9598")],
                "Address already in use",
            ),
            (vec![sink(&json!({"inputs": ["gone"]}))], "Input \"gone\""),
            (vec![sink(&json!({"type": null}))], "missing field"),
        ] {
            let error = with_sinks(&sinks).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
        let good = [
            sink(&json!({"uri": "SECRET[k8s.good]", "request": {"headers": {"a": "b"}}})),
            listens("0.0.0.0:9000"),
            listens("127.0.0.2:9001"),
            disk(268_435_488),
        ];
        assert_eq!(with_sinks(&good), Ok(()));
    }

    #[test]
    fn sockets_names_and_programs_are_checked() {
        let start = |sources: &Value, transforms: &Value| {
            let sinks = json!({"out": {"type": "blackhole", "inputs": ["*"]}});
            let config = json!({"sources": sources, "transforms": transforms, "sinks": sinks});
            start(&config, |_, _| None, &MACHINE)
        };
        let unix = json!({"type": "socket", "mode": "unix_datagram", "path": "/s"});
        let error = start(&json!({"a": unix, "b": unix}), &json!({})).expect_err("one path twice");
        assert!(error.contains("/s"), "{error}");
        let logs = json!({"in": {"type": "kubernetes_logs"}});
        let remap =
            |source: &str| json!({"r": {"type": "remap", "inputs": ["in"], "source": source}});
        let error = start(&logs, &remap(".a = ")).expect_err("no program");
        assert!(error.contains("transforms.r"), "{error}");
        assert_eq!(start(&logs, &remap(".a = 1")), Ok(()));
        let error = start(
            &logs,
            &json!({"in": {"type": "remap", "inputs": ["in"], "source": "."}}),
        );
        assert!(
            error
                .expect_err("one name twice")
                .contains("More than one component")
        );
        let cycle = json!({
            "a": {"type": "remap", "inputs": ["b"], "source": "."},
            "b": {"type": "remap", "inputs": ["a"], "source": "."},
        });
        assert!(
            start(&logs, &cycle)
                .expect_err("a cycle")
                .contains("Cyclic")
        );
    }
}
