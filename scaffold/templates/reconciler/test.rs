//! The operator of Greeting objects under chaos: it reaches the desired state whatever fails meanwhile.

use std::collections::BTreeMap;

use greeting_operator::greeting::simulator::Simulator;
use greeting_operator::greeting::{GreetingApi, GreetingReconciler};
use lockstep_test::chaos::{ExternalSystem, HttpBackend, chaos};
use serde_json::{Value, json};

#[derive(Default)]
struct External(Simulator);

impl ExternalSystem for External {
    fn http(&self) -> Option<HttpBackend> {
        Some(HttpBackend::service(self.0.routes()))
    }

    fn resources(&self) -> BTreeMap<String, Value> {
        self.0.content().clone()
    }

    fn set(&self, id: &str, resource: Option<Value>) {
        match resource {
            Some(resource) => self.0.content().insert(id.to_owned(), resource),
            None => self.0.content().remove(id),
        };
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_survives_chaos() {
    chaos(|process| GreetingReconciler {
        api: GreetingApi::new(process.external_url()),
        client: process.client(),
        leadership: process.leadership(),
    })
    .external(External::default)
    .specs(|random, name| json!({"text": format!("{name} {}", random.u32(..9)), "language": "en"}))
    .expected_resources(|object| {
        vec![json!({"text": object["spec"]["text"], "language": object["spec"]["language"]})]
    })
    .expected_status(|object| json!({"text": object["spec"]["text"]}))
    .seeds(5)
    .run()
    .await;
}
