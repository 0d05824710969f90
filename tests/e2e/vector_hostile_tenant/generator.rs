//! Objects of a hostile tenant: all that its role permits, with values that have harmed other tenants, or could.

use std::fmt;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::vector_hostile_tenant::object;

/// Namespaces of the tenant. With dashes, the components of a pipeline `q` in the second one have names of the other tenant.
pub const NAMESPACES: [&str; 3] = ["team", "victim-p", "a"];

/// Label of all its objects.
pub const LABEL: &str = "of=hostile-tenant";

/// Names of pipelines. Some are those of other objects.
const NAMES: [&str; 11] = [
    "q",
    "p",
    "b-c",
    "p-q",
    "shared",
    "shared-agent",
    "internal-metrics",
    "default",
    "0",
    "x.y",
    "a-name-that-is-as-long-as-the-name-of-an-object-may-be-in-a-label-0123",
];

const COMPONENTS: [&str; 7] = [
    "in",
    "t",
    "out",
    "x__y",
    "in-x",
    "_",
    "internalMetricsSource",
];

const SECRETS: [&str; 3] = ["own", "s", "shared-agent"];

/// Values of Secrets.
const VALUES: [&str; 16] = [
    "http://tenant/",
    ":::not a uri",
    "",
    " ",
    "http://tenant/\r\nX-Injected: 1",
    "SECRET[k8s.victim__p-q__s.token]",
    "${HOME}",
    "{{ host }}",
    "{{ host }}/x",
    "\"}, \"sinks\": {",
    "http://[::1",
    "http://h:99999",
    "/etc/passwd",
    "ü\u{0}",
    "basic",
    "9223372036854775808",
];

const URIS: [&str; 8] = [
    "SECRET[s.u]",
    "http://tenant/",
    "SECRET[s.gone]",
    "SECRET[other.u]",
    "SECRET[k8s.victim__p-q__s.token]",
    ":::not a uri",
    "http://{{ host }}/",
    "http://tenant/{{ kubernetes.pod_name }}",
];

const ADDRESSES: [&str; 9] = [
    "0.0.0.0:9200",
    "0.0.0.0:9598",
    "[::]:9598",
    "0.0.0.0:9100",
    "[::]:9100",
    "0.0.0.0:8686",
    "0.0.0.0:9201",
    "SECRET[s.u]",
    "systemd#1",
];

const PATHS: [&str; 3] = ["/tmp/a.sock", "/tmp/b.sock", "/tmp/../tmp/a.sock"];

const NUMBERS: [u64; 10] = [
    500,
    0,
    1,
    100_000,
    10_000_000,
    1_000_000_000,
    268_435_488,
    10_737_418_240,
    1 << 50,
    u64::MAX,
];

/// Sizes of disk buffers.
const DISKS: [u64; 6] = [
    268_435_488,
    1_073_741_824,
    6_442_450_944,
    268_435_487,
    1 << 50,
    u64::MAX,
];

const PROGRAMS: [&str; 8] = [
    ".a = 1",
    ".a = ",
    "del(.message)",
    "abort",
    ". = {}",
    ".a = parse_json!(.message)",
    ".a = \"SECRET[s.u]\"",
    "if .a == \"b\" { .c = [1, 2, 3] }",
];

const SERVICE: &str = "observability.kaasops.io/service-name";

/// Step of the tenant.
#[derive(Clone, Debug)]
pub enum Action {
    Apply(Value),
    /// Deletes an object of this kind and name.
    Delete(Value),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(object) => write!(f, "apply {object}"),
            Self::Delete(object) => write!(
                f,
                "delete {} {}/{}",
                object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]
            ),
        }
    }
}

/// Generator of actions. The same seed makes the same ones.
pub struct Generator {
    random: Rng,
    /// Number of unusual values that the present object may still get: one with many would be denied for each of them.
    unusual: u32,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            unusual: 0,
        }
    }

    /// Returns the actions after which its Secrets have usual values, and a Service has a name that a pipeline can choose.
    pub fn first() -> Vec<Action> {
        let all = NAMESPACES.into_iter().flat_map(|namespace| {
            let secrets = SECRETS.map(|name| secret(namespace, name, VALUES[0], "value"));
            secrets.into_iter().chain([service(namespace, "foreign")])
        });
        all.map(|object| Action::Apply(labelled(object))).collect()
    }

    /// Returns what has harmed other tenants before: values of Secrets, sizes, names, ports and Services. The second actions
    /// follow when the first ones are published.
    pub fn known() -> [Vec<Action>; 2] {
        let sources = json!({"in": {"type": "kubernetes_logs"}});
        let with = |namespace: &str, name: &str, sink: Value| {
            let mut sink = sink;
            sink["inputs"] = json!(["in"]);
            let secrets = json!({"s": {"type": "kubernetes_secret", "name": name}});
            let spec = json!({"secret": secrets, "sources": sources, "sinks": {"out": sink}});
            object("VectorPipeline", namespace, name, &spec)
        };
        let loki = |endpoint: &str, labels: &str| json!({"type": "loki", "endpoint": endpoint, "labels": {"a": labels}, "encoding": {"codec": "json"}});
        let http = json!({"type": "http", "uri": "SECRET[s.u]", "encoding": {"codec": "json"}});
        let buffer = |buffer: Value| json!({"type": "blackhole", "buffer": buffer});
        let disk = |bytes: u64| buffer(json!({"type": "disk", "max_size": bytes}));
        let first = vec![
            secret("a", "rotated", VALUES[0], "value"),
            with("a", "rotated", loki("SECRET[s.u]", "b")),
        ];
        let mut all = vec![
            secret("a", "rotated", ":::not a uri", "value"),
            secret("a", "invalid", ":::not a uri", "value"),
            with("a", "invalid", loki("SECRET[s.u]", "b")),
            secret("a", "template", "{{ host }}/", "value"),
            with("a", "template", http),
            with(
                "a",
                "memory",
                buffer(json!({"type": "memory", "max_events": 1_000_000_000})),
            ),
            with("a", "small", disk(1_000)),
            with("a", "huge", disk(1 << 45)),
            with("victim-p", "q", json!({"type": "blackhole"})),
            with("a", "missing", loki("SECRET[s.u]", "b")),
            with(
                "a",
                "elasticsearch",
                json!({"type": "elasticsearch", "endpoints": ["http://[::1"]}),
            ),
            with(
                "a",
                "identity",
                json!({"type": "aws_s3", "bucket": "b", "region": "x", "encoding": {"codec": "json"}}),
            ),
            with(
                "a",
                "header",
                json!({
                    "type": "http", "uri": "http://h/", "encoding": {"codec": "json"}, "request": {"headers": {"a b": "c"}},
                }),
            ),
        ];
        for (at, namespace) in NAMESPACES.into_iter().enumerate() {
            all.push(with(namespace, "large", disk((at as u64 + 1) << 34)));
        }
        let mut lua = with("a", "lua", json!({"type": "blackhole"}));
        lua["spec"]["transforms"]["t"] = json!({
            "type": "lua", "version": "2", "inputs": ["in"],
            "hooks": {"process": "function (event, emit) emit(event) end"},
        });
        lua["spec"]["sinks"]["out"]["inputs"] = json!(["t"]);
        all.push(lua);
        let mut long = with("a", "long", disk(268_435_488));
        let sink = long["spec"]["sinks"]["out"].take();
        long["spec"]["sinks"] = json!({"n".repeat(300): sink});
        all.push(long);
        let mut exporter = with("a", "exporter", json!({"type": "blackhole"}));
        exporter["spec"]["transforms"] = metrics("in");
        for (name, port) in [("exporter", 9598), ("second", 9300), ("third", 9300)] {
            exporter["metadata"]["name"] = name.into();
            let address = format!("0.0.0.0:{port}");
            exporter["spec"]["sinks"]["out"] =
                json!({"type": "prometheus_exporter", "inputs": ["metrics"], "address": address});
            all.push(exporter.clone());
        }
        let mut served = with("team", "foreign", json!({"type": "blackhole"}));
        served["spec"]["sources"]["in"] = json!({"type": "http_server", "address": "0.0.0.0:9301"});
        served["metadata"]["annotations"] = json!({SERVICE: "foreign"});
        all.push(served.clone());
        // The address of the other tenant, for a pipeline that comes before his by its name.
        served["metadata"]["name"] = "before".into();
        served["metadata"]["annotations"] = json!({});
        served["spec"]["sources"]["in"]["address"] = "0.0.0.0:9100".into();
        all.push(served);
        [first, all].map(|objects| {
            let objects = objects.into_iter();
            objects
                .map(|object| Action::Apply(labelled(object)))
                .collect()
        })
    }

    pub fn next(&mut self) -> Action {
        match self.action() {
            Action::Apply(object) => Action::Apply(labelled(object)),
            action @ Action::Delete(_) => action,
        }
    }

    fn action(&mut self) -> Action {
        self.unusual = self.one(&[0, 1, 1, 2, 3]);
        match self.random.u32(..20) {
            0..3 => Action::Apply(self.secret()),
            3 => Action::Apply(self.service()),
            4..6 => Action::Delete(self.pipeline()),
            6 => Action::Delete(self.secret()),
            _ => Action::Apply(self.pipeline()),
        }
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(..of.len())]
    }

    /// Returns true if the present object gets an unusual value here.
    fn is_unusual(&mut self, one_in: u32) -> bool {
        let is_unusual = self.unusual > 0 && self.chance(one_in);
        self.unusual -= u32::from(is_unusual);
        is_unusual
    }

    /// Returns the first value, which is usual, or one of all.
    fn value<T: Copy>(&mut self, of: &[T]) -> T {
        if self.is_unusual(3) {
            self.one(of)
        } else {
            of[0]
        }
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.u32(..one_in) == 0
    }

    fn namespace(&mut self) -> &'static str {
        self.one(&NAMESPACES)
    }

    fn secret(&mut self) -> Value {
        let (namespace, name) = (self.namespace(), self.one(&SECRETS));
        let mut values = [VALUES[0].to_owned(), "value".to_owned()];
        let at = self.random.usize(..2);
        if self.chance(10) {
            values[at] = "x".repeat(self.one(&[1 << 10, 100 << 10, 700 << 10]));
        } else if self.chance(2) {
            self.one(&VALUES).clone_into(&mut values[at]);
        }
        secret(namespace, name, &values[0], &values[1])
    }

    /// A Service of its own, which a pipeline can name.
    fn service(&mut self) -> Value {
        let name = self.one(&["foreign", "shared-aggregator-q"]);
        service(self.namespace(), name)
    }

    fn pipeline(&mut self) -> Value {
        let namespace = self.namespace();
        let name = if self.chance(4) {
            NAMES[0]
        } else {
            self.one(&NAMES)
        };
        let secrets = json!({"s": {"type": "kubernetes_secret", "name": self.one(&SECRETS)}});
        let mut spec = json!({"secret": secrets});
        let count = if self.is_unusual(20) {
            150
        } else {
            self.random.usize(1..4)
        };
        let source = self.component();
        spec["sources"][&source] = if self.chance(3) {
            self.listener()
        } else {
            self.log_source()
        };
        let mut last = source;
        for at in 0..self.random.usize(..3) {
            let id = format!("{}-t{at}", self.component());
            spec["transforms"][&id] = self.transform(&last);
            last = id;
        }
        for at in 0..count {
            let id = format!("{}{at}", self.component());
            spec["sinks"][&id] = self.sink(&last);
        }
        if self.chance(4) {
            self.add_exporter(&mut spec, &last);
        }
        let mut pipeline = object("VectorPipeline", namespace, name, &spec);
        if self.chance(4) {
            let service = self.value(&[
                "foreign",
                "shared-aggregator",
                "kubernetes",
                "victim",
                "a b",
            ]);
            pipeline["metadata"]["annotations"] = json!({SERVICE: service});
        }
        if self.chance(6) {
            let labels =
                json!({"app": "x", "observability.kaasops.io/managed": "no", "run-by": "others"});
            pipeline["metadata"]["labels"] = labels;
        }
        pipeline
    }

    fn component(&mut self) -> String {
        if self.is_unusual(20) {
            return "n".repeat(self.one(&[60, 250, 300]));
        }
        if self.random.bool() {
            return COMPONENTS[0].to_owned();
        }
        self.one(&COMPONENTS).to_owned()
    }

    fn log_source(&mut self) -> Value {
        let mut source = json!({"type": "kubernetes_logs"});
        if self.is_unusual(4) {
            let selector = self.one(&[
                "",
                "kubernetes.io/metadata.name=victim",
                "kubernetes.io/metadata.name in (victim, team)",
                "kubernetes.io/metadata.name=team",
            ]);
            source["extra_namespace_label_selector"] = selector.into();
        }
        if self.is_unusual(10) {
            source["data_dir"] = self.value(&PATHS).into();
        }
        if self.is_unusual(15) {
            source["type"] = self
                .one(&["file", "exec", "internal_metrics", "host_metrics"])
                .into();
        }
        source
    }

    fn listener(&mut self) -> Value {
        let type_ = self.one(&["http_server", "socket", "syslog", "statsd", "fluent"]);
        let mut source = json!({"type": type_, "address": self.value(&ADDRESSES)});
        match type_ {
            "socket" | "syslog" | "statsd" => {
                let mode = self.value(&["tcp", "udp", "unix", "unix_datagram", "unix_stream"]);
                source["mode"] = mode.into();
                if mode.starts_with("unix") {
                    source["path"] = self.value(&PATHS).into();
                    drop(
                        source
                            .as_object_mut()
                            .map(|fields| fields.remove("address")),
                    );
                } else if self.chance(3) {
                    source["max_length"] = self.value(&NUMBERS).into();
                }
            }
            _ => {}
        }
        if self.chance(4) {
            source["connection_limit"] = self.value(&NUMBERS).into();
        }
        source
    }

    fn transform(&mut self, input: &str) -> Value {
        let inputs = json!([self.input(input)]);
        let number = self.value(&NUMBERS);
        match self.random.u32(..15) {
            _ if self.is_unusual(20) => {
                json!({"type": "lua", "version": "2", "inputs": inputs, "hooks": {"process": "function"}})
            }
            0..6 => json!({"type": "remap", "inputs": inputs, "source": self.program()}),
            6..8 => {
                let condition = self.value(&["exists(.a)", ".a = 1", "true", "SECRET[s.u]"]);
                json!({"type": "filter", "inputs": inputs, "condition": condition})
            }
            8..11 => json!({"type": "dedupe", "inputs": inputs, "cache": {"num_events": number}}),
            11..13 => {
                json!({"type": "throttle", "inputs": inputs, "threshold": number, "window_secs": 1})
            }
            _ => json!({"type": "sample", "inputs": inputs, "rate": number}),
        }
    }

    fn program(&mut self) -> String {
        if self.is_unusual(8) {
            let depth = self.one(&[50, 500, 5_000]);
            return format!(".a = {}1{}", "(".repeat(depth), ")".repeat(depth));
        }
        if self.chance(8) {
            let fields = (0..self.random.usize(1..60)).map(|at| format!(".f{at} = {at}\n"));
            return fields.collect();
        }
        self.value(&PROGRAMS).to_owned()
    }

    fn input(&mut self, input: &str) -> String {
        if self.is_unusual(8) {
            return self
                .one(&["*", "victim-p-q-in", "team__served__in", "gone"])
                .to_owned();
        }
        input.to_owned()
    }

    fn sink(&mut self, input: &str) -> Value {
        let codec = json!({"codec": "json"});
        let kind = self.random.u32(..9);
        let mut sink = match kind {
            _ if self.is_unusual(20) => {
                json!({"type": "aws_s3", "bucket": "b", "region": "eu-central-1", "encoding": codec})
            }
            0..4 => json!({"type": "http", "uri": self.value(&URIS), "encoding": codec}),
            4 => {
                let labels = json!({"a": self.value(&["b", "SECRET[s.h]", "{{ host }}"])});
                json!({"type": "loki", "endpoint": self.value(&URIS), "labels": labels, "encoding": codec})
            }
            5 => json!({"type": "elasticsearch", "endpoints": [self.value(&URIS)]}),
            6 => {
                json!({"type": "socket", "mode": "tcp", "address": "tenant:9000", "encoding": codec})
            }
            _ => json!({"type": "blackhole"}),
        };
        sink["inputs"] = json!([self.input(input)]);
        if self.chance(3) {
            sink["buffer"] = self.buffer();
        }
        if kind < 6 && self.chance(4) {
            let header = self.value(&["X-A", "a b", "X-\u{c4}", ""]);
            sink["request"] = json!({
                "headers": {header: "SECRET[s.h]"}, "concurrency": self.value(&NUMBERS),
            });
        }
        if kind < 6 && self.chance(5) {
            sink["batch"] =
                json!({"max_bytes": self.value(&NUMBERS), "max_events": self.value(&NUMBERS)});
        }
        if self.is_unusual(20) {
            sink["nested"] = self.nested();
        }
        sink
    }

    /// Adds a sink that serves metrics.
    fn add_exporter(&mut self, spec: &mut Value, input: &str) {
        spec["transforms"]["metrics"] = metrics(input)["metrics"].take();
        spec["sinks"]["exporter"] = json!({
            "type": "prometheus_exporter", "inputs": ["metrics"], "address": self.one(&ADDRESSES),
        });
    }

    fn buffer(&mut self) -> Value {
        // Sizes are what all pipelines share.
        let is_unusual = self.is_unusual(2);
        let stage = if self.random.bool() {
            let size = if is_unusual {
                self.one(&DISKS)
            } else {
                DISKS[0]
            };
            json!({"type": "disk", "max_size": size})
        } else {
            let events = if is_unusual {
                self.one(&NUMBERS)
            } else {
                NUMBERS[0]
            };
            json!({"type": "memory", "max_events": events})
        };
        if self.chance(4) {
            let first = json!({"type": "memory", "max_events": 500, "when_full": "overflow"});
            return json!([first, stage]);
        }
        stage
    }

    fn nested(&mut self) -> Value {
        let mut value = json!(1);
        for _ in 0..self.one(&[10, 60, 90]) {
            value = Value::Object(Map::from_iter([("a".to_owned(), value)]));
        }
        value
    }
}

fn labelled(mut object: Value) -> Value {
    if let Some((label, value)) = LABEL.split_once('=') {
        object["metadata"]["labels"][label] = value.into();
    }
    object
}

fn secret(namespace: &str, name: &str, value: &str, header: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name},
        "stringData": {"u": value, "h": header},
    })
}

fn service(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name},
        "spec": {"ports": [{"port": 80}]},
    })
}

/// Returns a transform with the name `metrics`, which makes metrics of logs.
fn metrics(input: &str) -> Value {
    json!({"metrics": {
        "type": "log_to_metric", "inputs": [input],
        "metrics": [{"type": "counter", "field": "message"}],
    }})
}
