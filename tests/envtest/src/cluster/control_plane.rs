//! etcd and kube-apiserver.

use kube::Client;
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::endpoints::Endpoints;
use crate::cluster::site::Site;
use crate::cluster::snapshot::Snapshot;
use crate::components::ClusterOptions;
use crate::error::Error;
use crate::process::Process;
use crate::tools::Tools;
use crate::wait::eventually;

/// Running etcd and kube-apiserver.
pub(crate) struct ControlPlane {
    // In the order of shutdown.
    apiserver: Process,
    etcd: Process,
    apiserver_args: Vec<String>,
    pub(crate) tools: Tools,
    pub(crate) endpoints: Endpoints,
    /// Content before the first test, if other tests may follow.
    origin: Option<Origin>,
    _directory: TempDir,
}

/// State to which a control plane returns after a test.
struct Origin {
    snapshot: Snapshot,
    /// API groups, in which those of a custom resource appear last and disappear last.
    groups: Value,
}

impl ControlPlane {
    /// Starts both, and returns a client with cluster-admin rights.
    pub(crate) async fn start(
        site: Site,
        options: &ClusterOptions,
        tools: Tools,
    ) -> Result<(Box<Self>, Client), Error> {
        let directory = TempDir::with_prefix("kube-apiserver-")
            .map_err(Error::file(std::path::Path::new("temporary directory")))?;
        let endpoints = Endpoints::prepare(directory.path(), site)?;
        let mut etcd = endpoints.etcd(&tools)?;
        let mut apiserver = endpoints.apiserver(&tools, &options.apiserver_args)?;
        let client = endpoints.ready_client(&mut etcd, &mut apiserver).await?;
        let control_plane = Box::new(Self {
            apiserver,
            etcd,
            apiserver_args: options.apiserver_args.clone(),
            tools,
            endpoints,
            origin: None,
            _directory: directory,
        });
        Ok((control_plane, client))
    }

    /// Remembers the content as that to which other tests return.
    pub(crate) async fn remember(&mut self, client: &Client) -> Result<(), Error> {
        self.origin = Some(Origin {
            snapshot: Snapshot::read(&self.endpoints.etcd_url).await?,
            groups: groups(client).await?,
        });
        Ok(())
    }

    /// Returns to the remembered content, and returns a new client with cluster-admin rights. An earlier client
    /// belongs to the runtime of an earlier test.
    pub(crate) async fn reset(&mut self) -> Result<Client, Error> {
        let url = self.endpoints.etcd_url.clone();
        let client = self.ready_client().await?;
        let Some(origin) = &mut self.origin else {
            return Ok(client);
        };
        origin.snapshot.restore(&url).await?;
        eventually("the API server to notice the deletions", async || {
            let now = groups(&client).await.ok()?;
            (now == origin.groups).then_some(())
        })
        .await?;
        Ok(client)
    }

    /// Kills the API server and starts it again with the same etcd.
    pub(crate) async fn restart_apiserver(&mut self) -> Result<(), Error> {
        self.apiserver.kill();
        self.apiserver = self
            .endpoints
            .apiserver(&self.tools, &self.apiserver_args)?;
        self.ready_client().await.map(drop)
    }

    /// Returns true if a test with these options and programs can use it.
    pub(crate) fn fits(&self, options: &ClusterOptions, tools: &Tools) -> bool {
        self.origin.is_some()
            && self.apiserver_args == options.apiserver_args
            && self.tools.apiserver == tools.apiserver
            && self.tools.etcd == tools.etcd
    }

    async fn ready_client(&mut self) -> Result<Client, Error> {
        let (etcd, apiserver) = (&mut self.etcd, &mut self.apiserver);
        self.endpoints.ready_client(etcd, apiserver).await
    }
}

/// Returns the API groups.
async fn groups(client: &Client) -> Result<Value, Error> {
    let request = http::Request::get("/apis").body(Vec::new());
    Ok(client.request(request.expect("a request")).await?)
}
