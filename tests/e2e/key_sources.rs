//! Keys that somebody else makes.

use std::fs;
use std::time::Duration;

use certs::{Ca, Pair};
use control_plane::{Cluster, Installation, Moto, Options, eventually, stays, wait_until_armed};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::alone::new_ca;
use crate::world::{database, judging_webhook, root};

const SECRET: &str = "lockstep-webhook-tls";

struct Site {
    installation: Installation,
    cluster: Cluster,
    _moto: Moto,
}

/// What an issuer makes for the gate's Service.
fn pair_of(ca: &Ca) -> Pair {
    let names = ["lockstep-webhook.lockstep-system.svc".to_owned()];
    let life = Duration::from_hours(24);
    let pair = ca.sign(&names, life, OffsetDateTime::now_utc());
    pair.expect("a pair")
}

impl Site {
    async fn apply(controller_args: &[&str]) -> Self {
        let cluster = Cluster::start().await.expect("a cluster");
        let moto = Moto::start(&cluster.logs()).await.expect("moto");
        let options = Options {
            program: env!("CARGO_BIN_EXE_lockstep").into(),
            aws_endpoint: moto.endpoint(),
            controller_args: controller_args.iter().map(ToString::to_string).collect(),
            controller_server: None,
        };
        let manifests = root().join("manifests");
        let installation = Installation::apply(&cluster, &manifests, options);
        Self {
            installation: installation.await.expect("manifests"),
            cluster,
            _moto: moto,
        }
    }

    fn start(&mut self) {
        self.installation.start_controller().expect("it starts");
        self.installation.start_webhook().expect("it starts");
    }

    async fn fill_secret(&self, ca: &Ca, pair: &Pair) {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": SECRET},
            "data": {
                "ca.crt": bytes(&ca.certificate),
                "tls.crt": bytes(&pair.certificate),
                "tls.key": bytes(&pair.key),
            },
        });
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), "lockstep-system");
        let params = PatchParams::apply("issuer").force();
        let filled = secrets.patch(SECRET, &params, &Patch::Apply(&secret)).await;
        filled.expect("the Secret is filled");
    }

    /// What the API server trusts.
    fn bundle(&self) -> String {
        let read = judging_webhook(&self.cluster, "clientConfig.caBundle");
        let bytes: ByteString = serde_json::from_value(Value::String(read)).expect("base64");
        String::from_utf8(bytes.0).expect("PEM")
    }

    fn served(&self) -> Option<String> {
        fs::read_to_string(self.cluster.directory().join("tls/tls.crt")).ok()
    }

    async fn serves(&self, pair: &Pair) {
        eventually("the pair", async || {
            (self.served().as_ref() == Some(&pair.certificate)).then_some(())
        })
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.output()));
    }

    /// The API server asks the gate, and believes it.
    async fn judges(&self, name: &str) {
        wait_until_armed(&self.cluster)
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.output()));
        let mut invalid = database(name);
        invalid["spec"]["credentials"]["username"] = "user".into();
        let path = self.cluster.directory().join("invalid.json");
        fs::write(&path, invalid.to_string()).expect("a file");
        let applied = self
            .cluster
            .run_kubectl(&["apply", "-f", &path.to_string_lossy()]);
        let refusal = applied.expect_err("it is refused").to_string();
        assert!(refusal.contains("[username-reserved]"), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_an_issuer_fills_is_served_once_its_ca_is_trusted() {
    let quick = [
        "--cert-source=secret",
        "--ca-settle=2s",
        "--keys-look-every=200ms",
    ];
    let mut site = Site::apply(&quick).await;
    site.start();
    eventually("that it waits for the issuer", async || {
        let output = site.installation.output();
        output.contains("the Secret is not there yet").then_some(())
    })
    .await
    .expect("it says so");

    let (first, second) = (new_ca(), new_ca());
    let pair = pair_of(&first);
    site.fill_secret(&first, &pair).await;
    site.serves(&pair).await;
    site.judges("orders").await;
    assert_eq!(site.bundle(), first.certificate);

    // A new CA, all at once: it is trusted beside the old one before anything of it is served.
    let other = pair_of(&second);
    site.fill_secret(&second, &other).await;
    let both = format!("{}{}", second.certificate, first.certificate);
    eventually("both CAs", async || (site.bundle() == both).then_some(()))
        .await
        .expect("they are trusted");
    assert_eq!(site.served().as_ref(), Some(&pair.certificate), "too early");
    site.serves(&other).await;
    site.judges("bills").await;

    // A key that does not fit: the pair before stays, and whoever looks at the Secret is told.
    let unfit = Pair {
        key: pair.key.clone(),
        ..pair_of(&second)
    };
    site.fill_secret(&second, &unfit).await;
    let events = ["get", "events", "-n", "lockstep-system", "-o", "wide"];
    eventually("an Event", async || {
        let events = site.cluster.run_kubectl(&events).ok()?;
        (events.contains("BadServingPair") && events.contains("`tls.key` does not match `tls.crt`"))
            .then_some(())
    })
    .await
    .unwrap_or_else(|error| panic!("{error}\n{}", site.installation.output()));
    // A pair of another CA than the one beside it: no API server would trust it.
    site.fill_secret(&second, &pair_of(&first)).await;
    eventually("another Event", async || {
        let events = site.cluster.run_kubectl(&events).ok()?;
        events.contains("by `ca.crt`").then_some(())
    })
    .await
    .unwrap_or_else(|error| panic!("{error}\n{}", site.installation.output()));
    stays(Duration::from_secs(3), "what is served", async || {
        site.served()
    })
    .await;
    assert_eq!(site.served().as_ref(), Some(&other.certificate));
    site.judges("stocks").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_with_files_of_its_own_is_trusted_by_the_ca_that_is_given() {
    let ca_file = tempfile::NamedTempFile::new().expect("a file");
    let ca_option = format!("--ca-bundle-file={}", ca_file.path().display());
    let options = ["--cert-source=files", &ca_option, "--keys-look-every=200ms"];
    let mut site = Site::apply(&options).await;
    let ca = new_ca();
    let pair = pair_of(&ca);
    fs::write(ca_file.path(), &ca.certificate).expect("a file");
    let directory = site.cluster.directory().join("tls");
    fs::create_dir(&directory).expect("a folder");
    crate::alone::write_pair(&directory, &pair);
    site.start();
    site.judges("orders").await;
    assert_eq!(site.bundle(), ca.certificate);
    let secrets: Api<Secret> = Api::namespaced(site.cluster.client(), "lockstep-system");
    let made = secrets.get_opt(SECRET).await.expect("an answer");
    assert!(made.is_none(), "nobody has asked for a Secret");
}
