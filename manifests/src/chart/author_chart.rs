//! Chart of an author's program: the chart `lockstep` with the name of the program, and without the values for AWS.

use crate::manifest::Manifest;
use crate::options::InstallOptions;
use crate::values_table;

/// Name of the chart that is the template.
pub(super) const TEMPLATE: &str = "lockstep";

macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../chart/lockstep/", $path))),)*]
    };
}

/// Files that authors may change.
const FILES: &[(&str, &str)] = files![
    "templates/NOTES.txt",
    "templates/_containers.tpl",
    "templates/_crds.tpl",
    "templates/_files.tpl",
    "templates/_metadata.tpl",
    "templates/_monitoring.tpl",
    "templates/_names.tpl",
    "templates/_pods.tpl",
    "templates/_rbac.tpl",
    "templates/_uninstall.tpl",
    "templates/_user-roles.tpl",
    "templates/certificates.yaml",
    "templates/configmaps.yaml",
    "templates/controller-deployment.yaml",
    "templates/crds.yaml",
    "templates/dashboards.yaml",
    "templates/deployment.yaml",
    "templates/disruption-budget.yaml",
    "templates/extra-objects.yaml",
    "templates/network-policy.yaml",
    "templates/pod-monitor.yaml",
    "templates/prometheus-rule.yaml",
    "templates/rbac.yaml",
    "templates/secure-metrics.yaml",
    "templates/service-monitor.yaml",
    "templates/service.yaml",
    "templates/uninstall-hook.yaml",
    "templates/webhook-configurations.yaml",
    "values.schema.json",
    "values.yaml",
];

/// Change of a file: the text from `from` until `until` is replaced.
struct Change {
    file: &'static str,
    from: &'static str,
    until: &'static str,
    with: &'static str,
}

/// Changes by which the chart has neither the values for AWS nor what only this repository has.
const CHANGES: [Change; 15] = [
    Change {
        file: "templates/NOTES.txt",
        from: "{{- if and (ne $mode \"only\") (eq .Values.aws",
        until: "{{- if eq $mode \"off\" }}\n\nWARNING",
        with: "",
    },
    Change {
        file: "templates/NOTES.txt",
        from: ", for example from the chart lockstep-crds",
        until: ".\n",
        with: "",
    },
    Change {
        file: "templates/_containers.tpl",
        from: "  # AWS region, role or endpoint",
        until: "  ports:\n    - name: metrics",
        with: ENVIRONMENT,
    },
    Change {
        file: "templates/_names.tpl",
        from: "{{- define \"lockstep.awsName\"",
        until: "{{- define \"lockstep.serviceAccountName\"",
        with: "",
    },
    Change {
        file: "templates/_pods.tpl",
        from: "{{/* Annotations that restart the Pods",
        until: "{{/* Specification of Pods.",
        with: "{{/* Annotations of the Pods with the controller. */}}\n{{- define \"lockstep.podAnnotations\" -}}\n{}\n{{- end }}\n\n",
    },
    Change {
        file: "templates/configmaps.yaml",
        from: "{{- with include \"lockstep.awsData\"",
        until: "{{- if and (or .Values.policy",
        with: "",
    },
    Change {
        file: "templates/rbac.yaml",
        from: "  {{- if eq .Values.aws.credentials.source",
        until: "  {{- include \"lockstep.metadata\"",
        with: "",
    },
    Change {
        file: "values.yaml",
        from: " Each comment is the description",
        until: "\n",
        with: "",
    },
    Change {
        file: "values.yaml",
        from: "the chart `lockstep-crds` or someone else",
        until: " does.\n",
        with: "someone else",
    },
    Change {
        file: "values.yaml",
        from: ", such as\n  # CloudDatabases",
        until: ".",
        with: "",
    },
    Change {
        file: "values.yaml",
        from: ", such as pipelines",
        until: ". It has",
        with: "",
    },
    Change {
        file: "values.yaml",
        from: "aws:\n",
        until: "# Policy of the rules",
        with: "",
    },
    Change {
        file: "values.yaml",
        from: " See docs/operating.md.",
        until: "\n",
        with: "",
    },
    Change {
        file: "values.yaml",
        from: ", such as `vector:",
        until: "\n",
        with: ".",
    },
    Change {
        file: "values.schema.json",
        from: "    \"aws\": {",
        until: "    \"policy\": {",
        with: "",
    },
];

/// Environment variables of the controller, in the file that depends on the kinds.
const ENVIRONMENT: &str =
    "  {{- $environment := (.Files.Get \"files/arguments.yaml\" | fromYaml).environment }}
  {{- with concat $environment $values.controller.extraEnvFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
";

/// Names that are the same for every program.
const KEPT: [&str; 3] = ["lockstep.dev/", "/run/lockstep/", "/etc/lockstep/"];

/// Renders the files that an author may change.
pub(super) fn render(install: &InstallOptions<'_>) -> Vec<Manifest> {
    let program = install.names.program.as_str();
    let mut values = String::new();
    let mut files = Vec::new();
    for &(path, template) in FILES {
        let content = renamed(&changed(path, template), program);
        if path == "values.yaml" {
            values.clone_from(&content);
        }
        files.push(file(path, content));
    }
    files.push(file("Chart.yaml", metadata(install)));
    files.push(file("README.md", readme(program, &values)));
    let files = files.into_iter();
    files.map(|file| file.within(program)).collect()
}

fn file(name: &str, content: String) -> Manifest {
    Manifest {
        name: name.to_owned(),
        content,
    }
}

/// Returns a file of the template with its changes.
fn changed(path: &str, template: &str) -> String {
    let mut text = template.to_owned();
    for change in CHANGES.iter().filter(|change| change.file == path) {
        let Some(start) = text.find(change.from) else {
            continue;
        };
        if let Some(length) = text[start..].find(change.until) {
            text.replace_range(start..start + length, change.with);
        }
    }
    text
}

/// Replaces the name of the template by that of a program.
fn renamed(template: &str, program: &str) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    'text: while !rest.is_empty() {
        for kept in KEPT {
            if let Some(after) = rest.strip_prefix(kept) {
                text.push_str(kept);
                rest = after;
                continue 'text;
            }
        }
        if let Some(after) = rest
            .strip_prefix(TEMPLATE)
            .or_else(|| rest.strip_prefix("Lockstep"))
        {
            text.push_str(program);
            rest = after;
            continue;
        }
        let mut letters = rest.chars();
        text.extend(letters.next());
        rest = letters.as_str();
    }
    text
}

fn metadata(install: &InstallOptions<'_>) -> String {
    let program = &install.names.program;
    let version = install.image.rsplit_once(':').map_or("", |(_, tag)| tag);
    format!(
        "apiVersion: v2
name: {program}
description: The admission webhook, the controller and the CRDs of {program}
type: application
version: {version}
appVersion: {version}
kubeVersion: \">= 1.34.0-0\"
"
    )
}

fn readme(program: &str, values: &str) -> String {
    format!(
        "# {program}

Installs {program}: the admission webhook, the controller, their permissions and the CRDs.

```console
$ helm install {program} . --namespace {program}-system --create-namespace --set image.repository=REGISTRY/{program}
```

`{program} manifests --charts` writes the files in `files/`, which depend on the kinds. It creates the others if they are
missing, so that you can change them.

## Values

{}",
        values_table::markdown(values)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_change_finds_its_text() {
        for change in CHANGES {
            let (_, template) = FILES
                .iter()
                .find(|(path, _)| *path == change.file)
                .expect("a file");
            let count = template.matches(change.from).count();
            assert_eq!(count, 1, "{}: {}", change.file, change.from);
            let after = &template[template.find(change.from).expect("a text")..];
            assert!(
                after.contains(change.until),
                "{}: {}",
                change.file,
                change.until
            );
        }
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        for (path, template) in FILES {
            let text = renamed(&changed(path, template), "greeter");
            let text = KEPT.iter().fold(text, |text, kept| text.replace(kept, ""));
            let text = text.to_lowercase();
            for word in ["lockstep", "aws", "vector", "database", "docs/", "-crds"] {
                assert!(!text.contains(word), "{path} contains {word}");
            }
            if path.ends_with("json") {
                let schema: Value = serde_json::from_str(&text).expect("JSON");
                assert!(schema["properties"]["policy"].is_object());
            }
        }
    }
}
