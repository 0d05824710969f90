//! Tests that the crates of rules stay pure: none of their dependencies can wait, or access the network.

use std::process::Command;

/// Crates and crate families that would make a crate impure.
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
    for package in [
        "crd-validation",
        "lockstep-shared-validation",
        "lockstep-cloud-database-api",
        "lockstep-vector-api",
        "lockstep-vector-assembly",
        "lockstep-vector-config",
        "lockstep-vector-vrl",
    ] {
        let tree = tree(package, "{lib}");
        assert!(
            tree.contains("serde"),
            "the dependency tree lacks serde: {tree}"
        );
        let impure: Vec<_> = tree
            .lines()
            .map(|library| library.trim_end_matches(" (*)").replace('_', "-"))
            // The types of the Kubernetes API are allowed in kinds, and in what is made of them; the client is not.
            .filter(|name| {
                !(package.ends_with("-api") || package.ends_with("-assembly"))
                    || !matches!(
                        name.as_str(),
                        "k8s-openapi" | "kube" | "kube-core" | "kube-derive"
                    )
            })
            // A type of text, by the authors of another crate than `smol`.
            .filter(|name| name != "smol-str")
            .filter(|name| IMPURE.iter().any(|family| name.starts_with(family)))
            .collect();
        assert_eq!(impure, Vec::<String>::new(), "{package} depends on them");
    }
}

#[test]
fn validation_by_a_crd_depends_on_no_other_crate() {
    let tree = tree("crd-validation", "{p}");
    let ours: Vec<_> = tree
        .lines()
        .filter(|package| package.contains("(/"))
        .collect();
    assert_eq!(ours.len(), 1, "{ours:?}");
}

/// Returns the dependencies of a package, one on each line.
fn tree(package: &str, format: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges=normal",
            "--prefix=none",
            "--format",
            format,
            "--package",
            package,
        ])
        // VRL depends on an async runtime for the functions that look up names. Here programs are compiled and never
        // run.
        .args(
            package
                .starts_with("lockstep-vector-")
                .then_some("--prune=vrl"),
        )
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is available");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
