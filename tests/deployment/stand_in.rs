//! The stand-in for Vector: its image, and what it reports.

use std::env;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use lockstep_envtest::eventually_within;
use lockstep_image::{CA_CERTIFICATES, Image, Metadata};
use serde::Deserialize;
use serde_json::Value;

use crate::site::{PODS, Site, import, strip};

/// Image of the workloads. Its tag tells for which version of Vector pipelines are validated.
pub const IMAGE: &str = "localhost/vector-stand-in:0.57.0";

/// Name of the program in the image.
const PROGRAM: &str = "vector";

/// Returns true if this process runs in a container as the stand-in: its program is this test.
pub fn is_this_process() -> bool {
    let program = env::args_os().next().unwrap_or_default();
    Path::new(&program).file_name() == Some(PROGRAM.as_ref())
}

/// Makes the image available on the node.
pub fn import_image(site: &Site) {
    let directory = site.node.directory();
    let program = directory.join(PROGRAM);
    strip(&env::current_exe().expect("this program"), &program);
    let (repository, tag) = IMAGE.rsplit_once(':').expect("a tag");
    let metadata = Metadata {
        repository: repository.to_owned(),
        tag: tag.to_owned(),
        revision: None,
    };
    let image = Image::of_program(&program, Path::new(CA_CERTIFICATES), metadata);
    let image = image.and_then(|image| image.with_program(&directory.join("lockstep")));
    import(&site.node, &image.unwrap_or_else(|error| panic!("{error}")));
}

/// Report of a Pod.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    loads: u64,
    /// In milliseconds since 1970.
    loaded_at: u64,
    pub configuration: Value,
    /// Digest of the values of all secrets.
    pub secrets: String,
    /// Reason why the last change was rejected.
    pub rejected: Option<String>,
}

impl Report {
    /// Returns the time at which the running configuration was loaded. All Pods and this process have the same clock.
    pub fn loaded_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.loaded_at)
    }

    /// Returns a component of a pipeline.
    pub fn component(&self, part: &str, id: &str) -> &Value {
        &self.configuration[part][id]
    }
}

/// Pod that runs the stand-in.
#[derive(Clone, Debug)]
pub struct VectorPod {
    pub name: String,
    namespace: String,
}

impl VectorPod {
    /// Returns the Pods of a component (`Agent` or `Aggregator`) that are not being deleted.
    pub async fn all(site: &Site, namespace: &str, component: &str) -> Vec<Self> {
        let pods: Api<Pod> = Api::namespaced(site.cluster().client(), namespace);
        let labels = format!("app.kubernetes.io/component={component}");
        let pods = pods.list(&ListParams::default().labels(&labels)).await;
        let pods = pods.expect("a list").items.into_iter();
        let running = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let running = running.map(|pod| Self {
            name: pod.name_any(),
            namespace: namespace.to_owned(),
        });
        running.collect()
    }

    /// Returns the present report.
    pub async fn report(&self, site: &Site) -> Report {
        let report = eventually_within(PODS, "a report", async || self.get(site, "").await);
        let report = report.await;
        report.unwrap_or_else(|error| site.fail(&error.to_string()))
    }

    /// Waits for the next report that satisfies a condition.
    pub async fn report_that(
        &self,
        site: &Site,
        what: &str,
        is_so: impl Fn(&Report) -> bool,
    ) -> Report {
        let mut last = self.report(site).await;
        let found = eventually_within(PODS, what, async || {
            if !is_so(&last) {
                last = self.next_report(site, &last).await?;
            }
            is_so(&last).then(|| last.clone())
        });
        let found = found.await;
        found.unwrap_or_else(|error| site.fail(&format!("{error}: {last:#?}")))
    }

    /// Waits a while for the report after another one.
    pub async fn next_report(&self, site: &Site, last: &Report) -> Option<Report> {
        self.get(site, &format!("/after/{}", last.loads)).await
    }

    async fn get(&self, site: &Site, path: &str) -> Option<Report> {
        let (namespace, name) = (&self.namespace, &self.name);
        let port = vector_stand_in::REPORTS;
        let url =
            format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy/configuration{path}");
        let request = http::Request::get(url).body(Vec::new());
        let client = site.cluster().client();
        let text = client.request_text(request.expect("a request")).await;
        serde_json::from_str(&text.ok()?).ok()
    }
}
