//! Real API server that validates objects in strict dry runs.

use anyhow::{Context, bail};
use http::{Method, Request};
use kube::Client;
use kube::core::Status;
use lockstep_envtest::{Cluster, ClusterOptions, Components, eventually};
use serde_json::{Value, json};

use crate::case::{Case, Operation};
use crate::older_server::without_unknown_functions;
use crate::response::{Cause, Response};

/// API server with an installed CRD.
pub struct Server {
    client: Client,
    crd: Value,
    version: String,
    left_out: Vec<String>,
    /// Cluster that is stopped when the value is dropped.
    cluster: Option<Cluster>,
}

impl Server {
    /// Starts a cluster and installs the CRD, without the rules whose functions an older API server does not know.
    ///
    /// # Errors
    ///
    /// If the cluster does not start or rejects the CRD.
    pub async fn start(crd: &Value, version: &str) -> anyhow::Result<Self> {
        let options = ClusterOptions {
            components: Components::ApiServer,
            ..ClusterOptions::default()
        };
        let cluster = Cluster::start_from(&options).await?;
        let mut server = Self::of(cluster.client(), crd, version);
        server.cluster = Some(cluster);
        server.install().await?;
        Ok(server)
    }

    /// Returns a server that is already running and has the CRD.
    #[must_use]
    pub fn of(client: Client, crd: &Value, version: &str) -> Self {
        Self {
            client,
            crd: crd.clone(),
            version: version.to_owned(),
            left_out: Vec::new(),
            cluster: None,
        }
    }

    /// Returns the installed CRD.
    #[must_use]
    pub fn crd(&self) -> &Value {
        &self.crd
    }

    /// Returns the paths of the rules that were left out of the CRD.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    async fn install(&mut self) -> anyhow::Result<()> {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        while let Err(status) = self
            .send(Method::POST, definitions, self.crd.to_string())
            .await?
        {
            let Some((older, left_out)) = without_unknown_functions(&self.crd, &status) else {
                bail!("the API server rejects the CRD: {}", status.message);
            };
            self.crd = older;
            self.left_out.extend(left_out);
        }
        eventually("the kind to be served", async || {
            let list = self
                .send(Method::GET, &self.collection(), String::new())
                .await
                .ok()?;
            list.is_ok().then_some(())
        })
        .await?;
        Ok(())
    }

    /// Stores objects that violate the schema: removes the schema, stores the objects, and restores the schema.
    /// Returns the objects that were stored and that the API server can read with the schema; reading some of them
    /// fails.
    ///
    /// # Errors
    ///
    /// If the server does not respond.
    pub async fn store_without_validation(
        &self,
        objects: Vec<Value>,
    ) -> anyhow::Result<Vec<Value>> {
        self.set_schema(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
            .await?;
        let mut stored: Vec<Value> = Vec::new();
        for object in objects {
            // The API server may reject the object until it has applied the change of the schema.
            let response = self
                .send(Method::POST, &self.collection(), object.to_string())
                .await?;
            if let Ok(text) = response {
                stored.push(serde_json::from_str(&text)?);
            }
        }
        let versions = self.crd["spec"]["versions"].as_array();
        let definition = versions
            .into_iter()
            .flatten()
            .find(|one| one["name"] == self.version.as_str());
        let schema = definition.map_or(Value::Null, |one| one["schema"]["openAPIV3Schema"].clone());
        self.set_schema(&schema).await?;
        let mut readable = Vec::new();
        for object in stored {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("{}/{name}", self.collection());
            if self.send(Method::GET, &path, String::new()).await?.is_ok() {
                readable.push(object);
            }
        }
        Ok(readable)
    }

    async fn set_schema(&self, schema: &Value) -> anyhow::Result<()> {
        let name = self.crd["metadata"]["name"].as_str().unwrap_or_default();
        let url = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let versions = self.crd["spec"]["versions"].as_array();
        let index = versions
            .into_iter()
            .flatten()
            .position(|one| one["name"] == self.version.as_str());
        let index = index.context("the CRD does not have this version")?;
        let pointer = format!("/spec/versions/{index}/schema/openAPIV3Schema");
        let replace = json!([{"op": "replace", "path": pointer, "value": schema}]);
        let request = Request::patch(&url)
            .header("Content-Type", "application/json-patch+json")
            .body(replace.to_string().into_bytes())?;
        self.client.request_text(request).await?;
        // An unknown field shows which of the two schemas is in use: only the strict one rejects it.
        let object = json!({
            "apiVersion": format!("{}/{}", self.group(), self.version),
            "kind": self.crd["spec"]["names"]["kind"],
            "metadata": {"name": "probe"},
            "unknown-field": 1,
        });
        let strict = schema["x-kubernetes-preserve-unknown-fields"] != true;
        let case = Case::create("probe", &object);
        eventually("the schema to be in force", async || {
            let response = self.send_case(&case).await.ok()?;
            (response.code == 400 || response.valid != strict)
                .then_some(())
                .filter(|()| (response.code == 400) == strict)
        })
        .await?;
        Ok(())
    }

    /// Returns the response of the API server to a request. Nothing is stored.
    ///
    /// # Errors
    ///
    /// If the server does not respond.
    pub async fn send_case(&self, case: &Case) -> anyhow::Result<Response> {
        let strict = "dryRun=All&fieldValidation=Strict";
        let sent = match case.operation {
            Operation::Create => {
                self.send(
                    Method::POST,
                    &format!("{}?{strict}", self.collection()),
                    case.object.clone(),
                )
                .await?
            }
            Operation::Update => {
                let object: Value = serde_json::from_str(&case.object)?;
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{}/{name}?{strict}", self.collection());
                self.send(Method::PUT, &path, case.object.clone()).await?
            }
        };
        Ok(match sent {
            Ok(_) => Response {
                valid: true,
                code: 200,
                causes: vec![],
            },
            Err(status) => {
                if !matches!(status.code, 400 | 413 | 422 | 500) {
                    bail!("{}: {} {}", case.id, status.code, status.message);
                }
                let causes = status
                    .details
                    .map(|details| details.causes)
                    .unwrap_or_default();
                let causes = causes.into_iter().map(|cause| Cause {
                    reason: cause.reason,
                    field: cause.field,
                    message: cause.message,
                });
                Response {
                    valid: false,
                    code: status.code,
                    causes: causes.collect(),
                }
            }
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> anyhow::Result<Result<String, Box<Status>>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", "application/json")
            .body(body.into_bytes())?;
        match self.client.request_text(request).await {
            Ok(text) => Ok(Ok(text)),
            Err(kube::Error::Api(status)) => Ok(Err(status)),
            Err(error) => Err(error.into()),
        }
    }

    fn group(&self) -> &str {
        self.crd["spec"]["group"].as_str().unwrap_or_default()
    }

    fn collection(&self) -> String {
        let plural = self.crd["spec"]["names"]["plural"]
            .as_str()
            .unwrap_or_default();
        let group = self.group();
        let version = &self.version;
        if self.crd["spec"]["scope"] == "Cluster" {
            format!("/apis/{group}/{version}/{plural}")
        } else {
            format!("/apis/{group}/{version}/namespaces/default/{plural}")
        }
    }
}
