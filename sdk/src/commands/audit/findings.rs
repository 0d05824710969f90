//! Findings of operators, with the subjects that have access to a namespace.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kube::Client;
use serde_json::{Value, json};

use crate::commands::audit::namespace_access::{NamespaceSubjects, subjects_with_access};
use crate::commands::audit::rbac_objects::ClusterRbac;
use crate::operator::audit_snapshot::AuditFinding;
use crate::status::visible::Visible;

/// Maximum number of subjects that the text output lists for each namespace.
const LISTED: usize = 20;

/// Finding with the subjects that have access to its namespace, if it has one.
pub(super) struct ResolvedFinding {
    finding: AuditFinding,
    subjects: Option<Visible<NamespaceSubjects>>,
}

impl ResolvedFinding {
    pub(super) fn is_error(&self) -> bool {
        self.finding.is_error
    }
}

/// Adds the subjects to each finding with a namespace. They are unknown if the user may not read RBAC objects.
pub(super) async fn resolve(
    client: &Client,
    findings: Vec<AuditFinding>,
) -> Result<Vec<ResolvedFinding>, kube::Error> {
    let needs_rbac = findings.iter().any(|finding| finding.access_to.is_some());
    let rbac = if needs_rbac {
        Visible::of(ClusterRbac::read(client).await)?
    } else {
        Visible::because("not read")
    };
    let mut resolved = Vec::new();
    for finding in findings {
        let subjects = match (&finding.access_to, &rbac) {
            (None, _) => None,
            (Some(_), Visible::Unknown { unknown }) => Some(Visible::because(unknown)),
            (Some(namespace), Visible::Known(rbac)) => {
                let rbac = Visible::of(rbac.in_namespace(&namespace.name).await)?;
                Some(rbac.map(|rbac| subjects_with_access(&rbac, &namespace.workloads)))
            }
        };
        resolved.push(ResolvedFinding { finding, subjects });
    }
    Ok(resolved)
}

/// Returns the findings as text, those with one id together.
pub(super) fn to_text(findings: &[ResolvedFinding]) -> String {
    let mut by_id: BTreeMap<&str, Vec<&ResolvedFinding>> = BTreeMap::new();
    for resolved in findings {
        let id = resolved.finding.id;
        by_id.entry(id).or_default().push(resolved);
    }
    let mut out = String::new();
    for (id, findings) in by_id {
        let _ = writeln!(out, "{id}");
        for ResolvedFinding { finding, subjects } in findings {
            let level = if finding.is_error { "error" } else { "note" };
            let _ = writeln!(out, "  {level:9} {}", finding.message);
            for line in subjects.iter().flat_map(lines) {
                let _ = writeln!(out, "{:14}{line}", "");
            }
        }
    }
    out
}

/// Returns the lines of the text output for the subjects of a namespace.
fn lines(subjects: &Visible<NamespaceSubjects>) -> Vec<String> {
    let NamespaceSubjects {
        subjects,
        of_control_plane,
    } = match subjects {
        Visible::Known(subjects) => subjects,
        Visible::Unknown { unknown } => {
            return vec![format!(
                "who these are is unknown, because Roles, ClusterRoles and their bindings cannot be read: {unknown}"
            )];
        }
    };
    let listed = subjects.iter().take(LISTED).map(|access| {
        let bindings: Vec<_> = access.bindings.iter().map(ToString::to_string).collect();
        format!("{} by {}", access.subject, bindings.join(", "))
    });
    let more = match subjects.len().saturating_sub(LISTED) {
        0 => None,
        more => Some(format!("and {more} more, which `--output=json` lists")),
    };
    let control_plane = (*of_control_plane > 0).then(|| {
        format!(
            "{of_control_plane} subjects of the control plane, such as system:masters, are not listed"
        )
    });
    listed.chain(more).chain(control_plane).collect()
}

/// Returns the findings as JSON.
pub(super) fn to_json(findings: &[ResolvedFinding]) -> Vec<Value> {
    let all = findings
        .iter()
        .map(|ResolvedFinding { finding, subjects }| {
            let mut json = json!({
                "id": finding.id, "isError": finding.is_error, "message": finding.message,
            });
            if let (Some(namespace), Some(subjects)) = (&finding.access_to, subjects) {
                json["namespace"] = json!(namespace.name);
                json["access"] = json!(subjects);
            }
            json
        });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_that_cannot_be_read_are_unknown_and_no_error() {
        let lines = lines(&Visible::forbidden());
        assert_eq!(
            lines,
            [
                "who these are is unknown, because Roles, ClusterRoles and their bindings cannot be read: forbidden"
            ]
        );
    }
}
