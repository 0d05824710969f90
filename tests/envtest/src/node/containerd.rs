//! containerd with the CNI plugin `bridge`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockstep_image::{Compression, Image, Metadata};
use serde_json::json;

use crate::error::Error;
use crate::node::config_file::write;
use crate::node::namespaces::Namespaces;

use crate::process::{Process, run};
use crate::wait::eventually;

/// Addresses of Pods. The network is the node's own, so that every node may use the same.
pub(crate) const POD_CIDR: &str = "10.244.0.0/16";

/// Socket on which containerd listens, in the node's own `/run`.
pub(crate) const SOCKET: &str = "/run/containerd/containerd.sock";

/// Folders in which distributions install the CNI plugins.
const CNI_PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

const SANDBOX_REPOSITORY: &str = "localhost/pause";
const SANDBOX_TAG: &str = "node";

/// Running containerd.
#[derive(Debug)]
pub(crate) struct Containerd {
    process: Process,
    /// Program and arguments that run a command in the namespaces of the node.
    prefix: Vec<OsString>,
}

/// Returns an error that names a missing program.
pub(crate) fn check() -> Result<(), Error> {
    cni_plugins()?;
    for program in [
        "containerd",
        "ctr",
        "runc",
        "iptables",
        "unshare",
        "nsenter",
        "setpriv",
    ] {
        run(Command::new(program).arg("--version"))?;
    }
    Ok(())
}

fn cni_plugins() -> Result<&'static Path, Error> {
    let mut folders = CNI_PLUGINS.iter().map(Path::new);
    folders
        .find(|folder| folder.join("bridge").is_file())
        .ok_or_else(|| Error::Failed {
            command: "bridge".to_owned(),
            output: format!("no CNI plugins in {}", CNI_PLUGINS.join(" or ")),
        })
}

impl Containerd {
    pub(crate) async fn start(namespaces: &Namespaces, directory: &Path) -> Result<Self, Error> {
        let network = network(directory)?;
        let config = directory.join("containerd.toml");
        let data = directory.join("containerd");
        let text = format!(
            r#"version = 2
root = "{data}"
state = "/run/containerd"
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{SANDBOX_REPOSITORY}:{SANDBOX_TAG}"
# A process without CAP_SYS_RESOURCE may not lower scores.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{network}"
"#,
            data = data.display(),
            plugins = cni_plugins()?.display(),
            network = network.display(),
        );
        fs::write(&config, text).map_err(Error::file(&config))?;
        let mut command = namespaces.command(Path::new("containerd"));
        command.arg("--config").arg(&config);
        let containerd = Self {
            process: Process::start("containerd", &mut command, directory)?,
            prefix: namespaces.command_line(),
        };
        let answer = eventually("containerd to answer", async || {
            containerd.ctr(&["version"]).ok()
        });
        let answer = answer.await;
        answer.map_err(|error| error.with_hint(&containerd.process.tail()))?;
        Ok(containerd)
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Runs `ctr` in the namespace that Kubernetes uses.
    fn ctr(&self, args: &[&str]) -> Result<String, Error> {
        run(Command::new(&self.prefix[0])
            .args(&self.prefix[1..])
            .args(["ctr", "--address", SOCKET, "--namespace", "k8s.io"])
            .args(args))
    }

    pub(crate) fn import_image(&self, archive: &Path) -> Result<(), Error> {
        let archive = archive.to_string_lossy();
        self.ctr(&["images", "import", &archive]).map(drop)
    }

    pub(crate) fn tag_image(&self, name: &str, other: &str) -> Result<(), Error> {
        self.ctr(&["images", "tag", name, other]).map(drop)
    }

    /// Imports the image of the process that holds the namespaces of a Pod.
    pub(crate) fn import_sandbox_image(&self, pause: &Path, directory: &Path) -> Result<(), Error> {
        let metadata = Metadata {
            repository: SANDBOX_REPOSITORY.to_owned(),
            tag: SANDBOX_TAG.to_owned(),
            revision: None,
        };
        let archive = directory.join("pause.tar");
        Image::of_static_program(pause, metadata)
            .and_then(|image| image.write_archive(&archive, Compression::none()))
            .map_err(|error| Error::Manifest(error.to_string()))?;
        self.import_image(&archive)
    }
}

/// Writes the configuration of the Pods' network: one bridge, whose address is the Pods' router. Addresses are not
/// masqueraded, because nothing outside the node is reached.
fn network(directory: &Path) -> Result<PathBuf, Error> {
    let folder = directory.join("cni");
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let bridge = json!({
        "type": "bridge",
        "bridge": "pods",
        "isGateway": true,
        "hairpinMode": true,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": POD_CIDR}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": directory.join("addresses"),
        },
    });
    let list = json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]});
    write(&folder, "pods.conflist", &list)?;
    Ok(folder)
}
