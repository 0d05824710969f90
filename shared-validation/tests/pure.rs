//! Tests that the crate stays pure: none of its dependencies can wait, or access the network.

use std::process::Command;

/// Crates and crate families that would make the crate impure.
const IMPURE: &[&str] = &[
    "async-",
    "aws-",
    "axum",
    "futures",
    "h2",
    "hyper",
    "k8s-openapi",
    "kube",
    "mio",
    "native-tls",
    "openssl",
    "quinn",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "tower",
    "tungstenite",
    "ureq",
];

#[test]
fn no_dependency_is_an_async_runtime_network_or_client_crate() {
    for package in ["shared-validation", "lockstep-cloud-database-api"] {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--locked",
                "--offline",
                "--edges=normal",
                "--prefix=none",
                "--format={lib}",
                "--package",
                package,
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo is available");
        let tree = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            tree.contains("serde_json"),
            "the dependency tree lacks serde_json: {tree}"
        );
        let impure: Vec<_> = tree
            .lines()
            .map(|library| library.trim_end_matches(" (*)").replace('_', "-"))
            // The types of the Kubernetes API are allowed in kinds; the client is not.
            .filter(|name| {
                package == "shared-validation"
                    || !matches!(
                        name.as_str(),
                        "k8s-openapi" | "kube" | "kube-core" | "kube-derive"
                    )
            })
            .filter(|name| IMPURE.iter().any(|family| name.starts_with(family)))
            .collect();
        assert_eq!(impure, Vec::<String>::new(), "{package} depends on them");
    }
}
