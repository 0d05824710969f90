//! Objects of the installed kinds, by condition.

use serde::Serialize;

use crate::installation::Installation;
use crate::installation::objects::{self, NamespaceSelection};
use crate::installation::stored_object::StoredObject;
use crate::status::section::Section;
use crate::status::visible::Visible;

/// Numbers of objects of a kind.
#[derive(Default, Serialize)]
pub(crate) struct ObjectCounts {
    pub(crate) total: usize,
    pub(crate) ready: usize,
    pub(crate) reconciling: usize,
    pub(crate) invalid: usize,
    pub(crate) stalled: usize,
    pub(crate) paused: usize,
    pub(crate) deleting: usize,
    /// Objects that no controller has reconciled yet.
    pub(crate) without_conditions: usize,
}

/// Objects of a kind.
#[derive(Serialize)]
pub(crate) struct KindReport {
    pub(crate) kind: String,
    pub(crate) objects: Visible<ObjectCounts>,
}

pub(crate) async fn read(
    installation: &Installation<'_>,
) -> Result<Section<Vec<KindReport>>, kube::Error> {
    let (mut content, mut problems) = (Vec::new(), Vec::new());
    for (kind, ruleset) in installation.kinds.iter() {
        let found =
            objects::list(installation, ruleset.as_ref(), NamespaceSelection::Watched).await;
        let found = Visible::of(found)?;
        for (condition, status, what) in [
            ("Valid", "False", "violate a rule"),
            ("Stalled", "True", "are stalled until a user acts"),
            ("DeletionStalled", "True", "are being deleted for too long"),
        ] {
            let found = found.known().into_iter().flatten();
            let with = found.filter(|object| object.has_condition(condition, status));
            problems.extend(problem(&with.collect::<Vec<_>>(), condition, what));
        }
        content.push(KindReport {
            kind: kind.kind.to_owned(),
            objects: found.map(|found| count(&found)),
        });
    }
    Ok(Section { content, problems })
}

/// Returns a sentence about objects with a problem, with the first of them as an example.
fn problem(objects: &[&StoredObject], condition: &str, what: &str) -> Option<String> {
    let first = objects.first()?;
    let message = first.condition(condition)?["message"].as_str();
    let message = message.unwrap_or_default().lines().next();
    Some(format!(
        "{} objects of {} {what}, such as {}: {}",
        objects.len(),
        first.kind(),
        first.shown(),
        message.unwrap_or_default()
    ))
}

fn count(objects: &[StoredObject]) -> ObjectCounts {
    let mut counts = ObjectCounts::default();
    for object in objects {
        let has = |type_, status| usize::from(object.has_condition(type_, status));
        counts.total += 1;
        counts.ready += has("Ready", "True");
        counts.reconciling += has("Reconciling", "True");
        counts.invalid += has("Valid", "False");
        counts.stalled += has("Stalled", "True");
        counts.paused += has("Paused", "True");
        counts.deleting += usize::from(object.is_deleting());
        counts.without_conditions += usize::from(object.state().is_none());
    }
    counts
}
