//! The command `dev` with programs that it has not built itself: from `KUBEBUILDER_ASSETS`, and downloaded by
//! setup-envtest from an index on this machine.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use axum::Router;
use axum::routing::get;
use lockstep_envtest::{Cluster, ClusterOptions, Components, install_moto};
use tokio::net::TcpListener;

/// Target directory in which moto is installed and nothing else is.
struct Target(PathBuf);

impl Target {
    fn create(name: &str) -> Self {
        let temporary = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let target = Self(temporary.join(name));
        let _ = std::fs::remove_dir_all(&target.0);
        let cache = target.0.join("control-plane");
        std::fs::create_dir_all(&cache).expect("a folder");
        let server = install_moto().expect("moto");
        let moto = server.ancestors().nth(2).expect("the environment of moto");
        let moto = moto.canonicalize().expect("a path");
        let link = cache.join(moto.file_name().expect("a name"));
        std::os::unix::fs::symlink(&moto, link).expect("a link");
        target
    }

    /// Runs the demo without any Kubernetes program on the `PATH`.
    fn demo(&self, args: &[&str], assets: Option<&Path>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .args(["dev", "--once"])
            .args(args)
            .env_remove("KUBEBUILDER_ASSETS")
            .env("CARGO_TARGET_DIR", &self.0);
        if let Some(assets) = assets {
            command.env("KUBEBUILDER_ASSETS", assets);
        }
        command.output().expect("the program runs")
    }

    /// Returns true if a program of Kubernetes or etcd has been built.
    fn has_built(&self) -> bool {
        let entries = std::fs::read_dir(self.0.join("control-plane")).expect("the cache");
        let names = entries.map(|entry| entry.expect("an entry").path());
        names.into_iter().any(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_dir() && (name.starts_with("kubernetes-") || name.starts_with("etcd-"))
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Creates a folder with the programs under the names that envtest gives them.
async fn assets(folder: &Path) {
    let options = ClusterOptions {
        components: Components::ApiServer,
        ..ClusterOptions::default()
    };
    let programs = Cluster::prepare(&options).await.expect("the programs");
    std::fs::create_dir_all(folder).expect("a folder");
    for (name, program) in [
        ("etcd", programs.etcd),
        ("kube-apiserver", programs.apiserver),
        ("kubectl", programs.kubectl),
    ] {
        std::fs::copy(program, folder.join(name)).expect("a copy");
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaints}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Serves an index with one archive, and returns the URL of the index.
async fn serve(archive: &Path, hash: &str) -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let os = if os == "macos" { "darwin" } else { os };
    let arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let index = format!(
        "releases:\n  v1.36.3:\n    envtest-v1.36.3-{os}-{arch}.tar.gz:\n      hash: {hash}\n      \
         selfLink: {url}/archive\n"
    );
    let archive = std::fs::read(archive).expect("the archive");
    let router = Router::new()
        .route("/index.yaml", get(async move || index))
        .route("/archive", get(async move || archive));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("{url}/index.yaml")
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_with_programs_that_are_at_hand_or_downloaded_and_builds_none() {
    let target = Target::create("dev-assets");
    let folder = target.0.join("assets");
    assets(&folder).await;
    let output = target.demo(&[], Some(&folder));
    assert!(output.status.success(), "{}", text(&output));
    assert!(!target.has_built());

    let archive = target.0.join("archive.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--use-compress-program=gzip -1", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(&target.0)
        .arg("assets");
    run(&mut tar);
    let sum =
        "import hashlib, sys; print(hashlib.sha512(open(sys.argv[1], 'rb').read()).hexdigest())";
    let hash = run(Command::new("python3").args(["-c", sum]).arg(&archive));
    let index = serve(&archive, hash.trim()).await;
    let output = target.demo(&["--download", "--download-index", &index], None);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!target.has_built());
    let downloaded = target.0.join("control-plane/envtest/k8s");
    assert!(downloaded.is_dir(), "{}", text(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_with_another_checksum_is_not_used() {
    let target = Target::create("dev-checksum");
    let archive = target.0.join("archive.tar.gz");
    std::fs::write(&archive, "not the archive of the index").expect("a file");
    let index = serve(&archive, &"0".repeat(128)).await;
    let output = target.demo(&["--download", "--download-index", &index], None);
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("checksum"), "{text}");
}
