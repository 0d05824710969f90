//! Lines of code of the operators: every line of a file that the author has written, except for blank lines and lines
//! that only contain a comment. Markers of controller-gen are code. Generated files, `Cargo.toml` and `go.mod` are left
//! out.

use std::fs;

use anyhow::Context;

use crate::names::{CONTROLLER_RUNTIME, KUBE_RS, LOCKSTEP, OPERATORS};

/// Purpose of a file, its path in this repository, and the operator.
type Source = (&'static str, &'static str, &'static str);

const FILES: [Source; 17] = [
    (
        LOCKSTEP,
        "kind, reconciliation",
        "samples/dns-record/src/lib.rs",
    ),
    (LOCKSTEP, CLIENT, "samples/dns-record/src/dns_api.rs"),
    (
        LOCKSTEP,
        "program",
        "benches/operators/lockstep/src/main.rs",
    ),
    (KUBE_RS, "kind", "benches/operators/kube-rs/src/record.rs"),
    (
        KUBE_RS,
        "reconciliation",
        "benches/operators/kube-rs/src/reconcile.rs",
    ),
    (KUBE_RS, "errors", "benches/operators/kube-rs/src/error.rs"),
    (
        KUBE_RS,
        "status, Events",
        "benches/operators/kube-rs/src/report.rs",
    ),
    (KUBE_RS, CLIENT, "benches/operators/kube-rs/src/dns_api.rs"),
    (KUBE_RS, "program", "benches/operators/kube-rs/src/main.rs"),
    (
        KUBE_RS,
        "manifests",
        "benches/operators/kube-rs/manifests.yaml",
    ),
    (
        CONTROLLER_RUNTIME,
        "kind",
        "benches/operators/controller-runtime/api/v1/dnsrecord_types.go",
    ),
    (
        CONTROLLER_RUNTIME,
        "group",
        "benches/operators/controller-runtime/api/v1/groupversion_info.go",
    ),
    (
        CONTROLLER_RUNTIME,
        "reconciliation",
        "benches/operators/controller-runtime/controller/dnsrecord_controller.go",
    ),
    (
        CONTROLLER_RUNTIME,
        CLIENT,
        "benches/operators/controller-runtime/dnsapi/dnsapi.go",
    ),
    (
        CONTROLLER_RUNTIME,
        "program",
        "benches/operators/controller-runtime/main.go",
    ),
    (
        CONTROLLER_RUNTIME,
        "manifests",
        "benches/operators/controller-runtime/manifests.yaml",
    ),
    (
        CONTROLLER_RUNTIME,
        "generation",
        "benches/operators/controller-runtime/Makefile",
    ),
];

/// Purpose that has nothing to do with Kubernetes.
const CLIENT: &str = "client of the DNS API";

/// Prints the lines of each file, and the sums of each operator with and without the client of the DNS API.
pub(crate) fn print() -> anyhow::Result<()> {
    println!("\nlines of code");
    for operator in OPERATORS {
        let (mut all, mut client) = (0, 0);
        for (_, purpose, path) in FILES.iter().filter(|file| file.0 == operator) {
            let text = fs::read_to_string(bench_harness::root().join(path));
            let lines = count(&text.with_context(|| (*path).to_owned())?);
            all += lines;
            if *purpose == CLIENT {
                client += lines;
            }
            println!("{operator:<20} {purpose:<24} {lines:>5}  {path}");
        }
        println!(
            "{operator:<20} {:<24} {all:>5}  without the client: {}",
            "all",
            all - client
        );
    }
    Ok(())
}

fn count(text: &str) -> usize {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| is_code(line)).count()
}

fn is_code(line: &str) -> bool {
    let is_comment = line.starts_with("//") || line.starts_with("# ") || line == "---";
    !line.is_empty() && (!is_comment || line.starts_with("// +"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn blank_lines_and_comments_do_not_count() {
        let text = "//! Module.\n\n/// Item.\n#[derive(Debug)]\nstruct One; // one\n    // why\n// +kubebuilder:default=300\n";
        assert_eq!(super::count(text), 3);
        assert_eq!(super::count("# why\nkind: Role\n---\n"), 1);
    }
}
