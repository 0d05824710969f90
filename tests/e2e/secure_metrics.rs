//! Metrics over TLS: the real API server authenticates and authorizes their clients.

use http::{Request, StatusCode};
use lockstep_envtest::{Cluster, eventually, free_port};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, root};
use crate::standalone_webhook::{StandaloneWebhook, plain_get};
use crate::tcp_proxy::TcpProxy;
use crate::webhook::WebhookClient;

/// Line in the log of a review that failed.
const FAILED: &str = "the token of a client of the metrics";

struct SecureMetrics {
    env: TestEnv,
    client: WebhookClient,
    /// Connection of the controller to the API server.
    wire: TcpProxy,
}

impl SecureMetrics {
    async fn start() -> Self {
        let cluster = Cluster::start_without_workloads().await.expect("a cluster");
        let aws = Simulator::start().await.expect("a simulator");
        let server = cluster.server().trim_start_matches("https://");
        let wire = TcpProxy::to(server.parse().expect("an address")).await;
        let options = EnvOptions {
            controller_server: Some(format!("https://{}", wire.address())),
            ..EnvOptions::default()
        };
        let mut env = TestEnv::install(cluster, aws, options).await;
        let rbac = root().join("manifests/monitoring/secure/rbac.yaml");
        env.kubectl(&["apply", "-f", &rbac.to_string_lossy()])
            .expect("the rights are granted");
        let port = free_port();
        let address = format!("--metrics-bind-address=127.0.0.1:{port}");
        let webhook = format!(
            "--webhook-metrics-url={}",
            env.installation.webhook_health_url()
        );
        env.installation
            .restart_controller_with(&["--metrics-secure", &address, &webhook])
            .expect("the process starts");
        eventually("the port of the metrics", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .ok()
        })
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
        let client = WebhookClient::at_port(&env, port).await;
        Self { env, client, wire }
    }

    /// Token of a service account, which is created if it does not exist.
    fn token(&self, account: &str) -> String {
        let namespace = "--namespace=lockstep-system";
        let _ = self
            .env
            .kubectl(&["create", "serviceaccount", account, namespace]);
        let token = self.env.kubectl(&["create", "token", account, namespace]);
        token.expect("a token").trim().to_owned()
    }

    async fn get(&self, path: &str, token: Option<&str>) -> (StatusCode, String) {
        let mut request = Request::get(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = self
            .client
            .send(request.body(Vec::new()).expect("a request"))
            .await;
        let body = String::from_utf8_lossy(answer.body()).into_owned();
        (answer.status(), body)
    }

    async fn status(&self, token: &str) -> u16 {
        self.get("/metrics", Some(token)).await.0.as_u16()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_to_clients_that_the_api_server_authorizes_and_to_no_others() {
    let mut metrics = SecureMetrics::start().await;
    let reader = metrics.token("lockstep-metrics-reader");
    let stranger = metrics.token("stranger");

    for path in ["/metrics", "/metrics/webhook"] {
        for (token, expected) in [
            (None, StatusCode::UNAUTHORIZED),
            (Some("forged"), StatusCode::UNAUTHORIZED),
            (Some(stranger.as_str()), StatusCode::FORBIDDEN),
            (Some(reader.as_str()), StatusCode::OK),
        ] {
            let (status, body) = metrics.get(path, token).await;
            assert_eq!(status, expected, "{path}: {body}");
            let is_shown = body.contains("# HELP");
            assert_eq!(is_shown, status == StatusCode::OK, "{path}: {body}");
        }
    }
    let (_, own) = metrics.get("/metrics", Some(&reader)).await;
    assert!(own.contains("leader_election_master_status{"), "{own}");
    let (_, webhook) = metrics.get("/metrics/webhook", Some(&reader)).await;
    assert!(
        webhook.contains("controller_runtime_webhook_panics_total "),
        "{webhook}"
    );

    // The health port serves the probes of the kubelet only.
    let health = metrics.env.installation.controller_health_url();
    let health = health.trim_start_matches("http://");
    let plain = async |path| plain_get(health, path).await.unwrap_or_default();
    assert!(plain("/metrics").await.contains(" 404 "));
    assert!(plain("/healthz").await.contains(" 200 "));

    the_components_fit_together(&metrics.env);
    outage(&mut metrics, &reader).await;
}

/// Renders the base with all components: each port that is scraped or admitted is one of a container.
fn the_components_fit_together(env: &TestEnv) {
    let folder = tempfile::tempdir().expect("a directory");
    let up = "../".repeat(folder.path().components().count() - 1);
    let root = root().canonicalize().expect("the repository");
    let path = |name: &str| {
        format!(
            "{up}{}",
            root.join(name)
                .display()
                .to_string()
                .trim_start_matches('/')
        )
    };
    let components = ["monitoring", "monitoring/secure", "network-policy"];
    let components = components.map(|name| path(&format!("manifests/{name}")));
    let kustomization = json!({"resources": [path("manifests/config")], "components": components});
    std::fs::write(
        folder.path().join("kustomization.yaml"),
        kustomization.to_string(),
    )
    .expect("a file");
    let rendered = env.kubectl(&["kustomize", &folder.path().to_string_lossy()]);
    let rendered = rendered.unwrap_or_else(|error| env.fail(&error));
    let objects: Vec<Value> = rendered
        .split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).expect("YAML"))
        .collect();
    let of_kind = |kind: &str| {
        objects
            .iter()
            .find(|object| object["kind"] == kind)
            .expect("an object")
    };
    let containers = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"];
    let ports: Vec<&Value> = each(containers)
        .flat_map(|container| each(&container["ports"]))
        .collect();
    let endpoints = &of_kind("PodMonitor")["spec"]["podMetricsEndpoints"];
    let jobs: Vec<_> = each(endpoints)
        .map(|endpoint| &endpoint["relabelings"][0]["replacement"])
        .collect();
    assert_eq!(jobs, ["lockstep-webhook", "lockstep-controller"]);
    for endpoint in each(endpoints) {
        assert!(
            ports.iter().any(|port| port["name"] == endpoint["port"]),
            "{endpoint}"
        );
        assert_eq!(endpoint["scheme"], "https");
    }
    let policy = &of_kind("NetworkPolicy")["spec"]["ingress"];
    let mut admitted: Vec<_> = each(policy)
        .flat_map(|rule| each(&rule["ports"]))
        .map(|port| &port["port"])
        .collect();
    let mut served: Vec<_> = ports.iter().map(|port| &port["containerPort"]).collect();
    admitted.sort_by_key(|port| port.as_u64());
    served.sort_by_key(|port| port.as_u64());
    assert_eq!(admitted, served);
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// While the API server cannot be reached, no client is allowed that was not allowed just before, and the number of
/// reviews does not grow with the number of requests.
async fn outage(metrics: &mut SecureMetrics, reader: &str) {
    let other = metrics.token("lockstep-metrics-reader");
    assert_ne!(other, reader);
    metrics.wire.cut();
    assert_eq!(metrics.status(reader).await, 200, "remembered");
    for _ in 0..300 {
        assert_eq!(metrics.status(&other).await, 503);
    }
    let reviews = metrics
        .env
        .installation
        .controller()
        .output()
        .matches(FAILED)
        .count();
    assert!(
        (1..=20).contains(&reviews),
        "{reviews} reviews for 300 requests"
    );
    println!("300 requests without an API server: {reviews} failed reviews");

    metrics.wire.mend();
    let allowed = eventually("the review of the token", async || {
        (metrics.status(&other).await == 200).then_some(())
    });
    let allowed = allowed.await;
    allowed.unwrap_or_else(|error| metrics.env.fail(&error.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_serves_its_metrics_on_a_port_of_their_own_if_one_is_set() {
    let port = free_port();
    let option = format!("--metrics-bind-address=127.0.0.1:{port}");
    let webhook = StandaloneWebhook::start(&[&option]).await;
    let own = plain_get(&format!("127.0.0.1:{port}"), "/metrics").await;
    let own = own.expect("a response");
    assert!(own.contains(" 200 ") && own.contains("controller_runtime_webhook_panics_total "));
    let health = plain_get(webhook.health(), "/metrics")
        .await
        .expect("a response");
    assert!(health.contains(" 404 "), "{health}");
}
