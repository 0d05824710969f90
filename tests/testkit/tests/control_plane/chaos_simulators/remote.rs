//! Simulator of topics in a process of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use lockstep_test::chaos::{ExternalSystem, HttpBackend};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::chaos_simulators::topics::{TopicClient, Topics};

/// Environment variable of the process.
pub const IS_SIMULATOR: &str = "CHAOS_SIMULATOR";

/// Beginning of the line with the address of the process.
const LISTENING: &str = "listening on ";

/// Serves the API of topics until the process is killed.
pub async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!(
        "\n{LISTENING}{}",
        listener.local_addr().expect("an address")
    );
    let served = axum::serve(listener, Topics::default().api()).await;
    served.expect("the simulator serves");
}

/// Simulator in a process of its own, which is killed when the value is dropped.
pub struct RemoteTopics {
    process: Child,
    address: String,
}

impl RemoteTopics {
    pub fn start() -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        let arguments = [
            "--exact",
            "chaos_simulators::simulator",
            "--ignored",
            "--nocapture",
        ];
        let mut process = Command::new(program)
            .args(arguments)
            .env(IS_SIMULATOR, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the simulator starts");
        let output = BufReader::new(process.stdout.take().expect("the output"));
        let mut lines = output.lines().map(|line| line.expect("a line"));
        let address = lines.find_map(|line| line.strip_prefix(LISTENING).map(str::to_owned));
        let address = address.expect("the simulator listens");
        Self { process, address }
    }

    /// Calls the simulator, on a thread that may block.
    fn call<T>(&self, call: impl AsyncFnOnce(TopicClient) -> T) -> T {
        Handle::current().block_on(async {
            let client = TopicClient::new(&format!("http://{}", self.address));
            call(client).await
        })
    }
}

impl Drop for RemoteTopics {
    fn drop(&mut self) {
        self.process.kill().expect("the simulator is killed");
        self.process.wait().expect("the simulator ends");
    }
}

impl ExternalSystem for RemoteTopics {
    fn http(&self) -> Option<HttpBackend> {
        Some(HttpBackend::address(
            self.address.parse().expect("an address"),
        ))
    }

    fn resources(&self) -> BTreeMap<String, Value> {
        let all = self.call(async |client| client.all().await);
        all.expect("the simulator answers")
    }

    fn set(&self, id: &str, topic: Option<Value>) {
        let id = topic
            .as_ref()
            .and_then(|topic| topic["name"].as_str())
            .unwrap_or(id)
            .to_owned();
        let topic = topic.unwrap_or_default();
        let set = self.call(async |client| client.put(&id, &topic).await);
        set.expect("the simulator answers");
    }
}
