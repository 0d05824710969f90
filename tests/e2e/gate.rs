//! Speaking to the gate as the API server does: HTTPS, the Service's name, the CA of the caBundle.

use http::{Request, Response};
use http_body_util::{BodyExt, Collected};
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::client::Body;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::world::World;

pub struct Gate {
    client: Client,
}

impl Gate {
    pub async fn of(world: &World) -> Self {
        let secrets: Api<Secret> = Api::namespaced(world.cluster.client(), "lockstep-system");
        let secret = secrets
            .get("lockstep-webhook-tls")
            .await
            .expect("the gate's keys");
        let authority = secret.data.expect("data")["ca.crt"].0.clone();
        let url = format!("https://127.0.0.1:{}", world.installation.webhook_port());
        let mut config = Config::new(url.parse().expect("a URL"));
        let der = CertificateDer::from_pem_slice(&authority).expect("a PEM certificate");
        config.root_cert = Some(vec![der.to_vec()]);
        config.tls_server_name = Some("lockstep-webhook.lockstep-system.svc".to_owned());
        Self {
            client: Client::try_from(config).expect("a client"),
        }
    }

    pub async fn send(&self, request: Request<Vec<u8>>) -> Response<Vec<u8>> {
        let (parts, body) = request.into_parts();
        let answer = self
            .client
            .send(Request::from_parts(parts, Body::from(body)))
            .await
            .expect("an answer");
        let (parts, body) = answer.into_parts();
        let body = body
            .collect()
            .await
            .map(Collected::to_bytes)
            .expect("a whole answer");
        Response::from_parts(parts, body.to_vec())
    }

    pub async fn post(&self, path: &str, review: &Value) -> Response<Vec<u8>> {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(review.to_string().into_bytes());
        self.send(request.expect("a request")).await
    }

    /// The response to a review that is one.
    pub async fn review(&self, path: &str, object: &Value, old: Option<&Value>) -> Value {
        let answer = self.post(path, &review(object, old)).await;
        assert_eq!(
            answer.status(),
            200,
            "{}",
            String::from_utf8_lossy(answer.body())
        );
        let review: Value = serde_json::from_slice(answer.body()).expect("JSON");
        assert_eq!(
            review["response"]["uid"],
            "0c9a4d1e-1b7b-4c62-8a58-6a4a7c3b2f10"
        );
        review["response"].clone()
    }
}

/// A review as the API server sends it.
pub fn review(object: &Value, old: Option<&Value>) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0c9a4d1e-1b7b-4c62-8a58-6a4a7c3b2f10",
            "kind": {"group": "database.example.com", "version": "v1alpha1", "kind": "CloudDatabase"},
            "resource": {"group": "database.example.com", "version": "v1alpha1", "resource": "clouddatabases"},
            "name": object["metadata"]["name"],
            "namespace": crate::world::NAMESPACE,
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "kubernetes-admin"},
            "object": object,
            "oldObject": old,
            "dryRun": false,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    })
}
