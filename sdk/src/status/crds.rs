//! CRDs of the installed kinds, compared with those of this program.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use lockstep_shared_validation::{Validator, crd_fingerprint};
use serde::Serialize;

use crate::installation::Installation;
use crate::status::section::Section;
use crate::status::visible::Visible;
use crate::status::webhooks::{foreign_problem, foreign_service};

/// CRD in the cluster.
#[derive(Serialize)]
pub(crate) struct CrdReport {
    pub(crate) name: String,
    pub(crate) state: Visible<CrdState>,
}

/// Result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CrdState {
    InSync,
    Differs,
    Missing,
    /// It is being deleted, and with it all objects of the kind.
    Terminating,
}

impl CrdState {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::InSync => "in sync",
            Self::Differs => "differs",
            Self::Missing => "missing",
            Self::Terminating => "terminating",
        }
    }
}

pub(crate) async fn read(
    installation: &Installation<'_>,
) -> Result<Section<Vec<CrdReport>>, kube::Error> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk(&gvk);
    let crds: Api<DynamicObject> = Api::all_with(installation.client.clone(), &resource);
    let (mut content, mut problems) = (Vec::new(), Vec::new());
    for (_, ruleset) in installation.kinds.iter() {
        let name = ruleset.crd()["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        let found = Visible::of(crds.get_opt(name).await)?;
        let known = found.known().and_then(Option::as_ref);
        problems.extend(known.and_then(|found| conversion_problem(name, found, installation)));
        let state = found.map(|found| compare(ruleset.as_ref(), found.as_ref()));
        problems.extend(state.known().and_then(|state| problem(name, *state)));
        content.push(CrdReport {
            name: name.to_owned(),
            state,
        });
    }
    Ok(Section { content, problems })
}

/// Returns the problem that a CRD refers to the Service of another installation for conversion. That is none if this
/// installation has no webhook, or does not own the CRDs.
fn conversion_problem(
    name: &str,
    found: &DynamicObject,
    installation: &Installation<'_>,
) -> Option<String> {
    if !installation.has_webhook || installation.is_webhook_only {
        return None;
    }
    let client = found
        .data
        .pointer("/spec/conversion/webhook/clientConfig")?;
    let client = serde_json::from_value(client.clone()).ok()?;
    let service = foreign_service(&client, installation)?;
    Some(foreign_problem(
        &format!("the conversion webhook of the CRD {name}"),
        &service,
        installation,
    ))
}

fn compare(ruleset: &dyn Validator, found: Option<&DynamicObject>) -> CrdState {
    let Some(found) = found else {
        return CrdState::Missing;
    };
    if found.metadata.deletion_timestamp.is_some() {
        return CrdState::Terminating;
    }
    let version = ruleset.version();
    let ours = crd_fingerprint(ruleset.crd(), version);
    if crd_fingerprint(&found.data, version) == ours {
        CrdState::InSync
    } else {
        CrdState::Differs
    }
}

fn problem(name: &str, state: CrdState) -> Option<String> {
    match state {
        CrdState::InSync => None,
        CrdState::Differs => Some(format!(
            "the CRD {name} is not the one of this program: apply the CRDs, or use the program of the installed version"
        )),
        CrdState::Missing => Some(format!("the CRD {name} does not exist")),
        CrdState::Terminating => Some(format!(
            "the CRD {name} is being deleted, and with it all objects of the kind"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::environment::Environment;

    #[tokio::test]
    async fn only_an_installation_with_a_webhook_and_crds_must_convert() {
        let environment = Environment::sample();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        ));
        let service = json!({"namespace": "central", "name": "lockstep-webhook"});
        let webhook = json!({"clientConfig": {"service": service}});
        let data = json!({"spec": {"conversion": {"webhook": webhook}}});
        let crd = DynamicObject::new("toys.example.com", &resource).data(data);
        let problem = |arguments: &[&str]| {
            let installation = Installation::sample(arguments, &[], &environment);
            conversion_problem("toys.example.com", &crd, &installation)
        };
        assert!(problem(&[]).is_some_and(|problem| problem.contains("central/lockstep-webhook")));
        assert_eq!(problem(&["--namespace=central"]), None);
        for others in [
            "--no-webhook",
            "--webhook-only",
            "--watch-namespaces=team-a",
        ] {
            assert_eq!(problem(&[others]), None, "{others}");
        }
    }
}
