//! Likely mistakes behind an unknown kind.

use lockstep_shared_validation::{did_you_mean, similar_names};

/// Kind that is built in, or whose CRD is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownKind<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) version: &'a str,
}

/// Returns the likely mistake behind an unknown kind, and its field: its group is that of a known kind or similar to it, or a part is
/// missing.
pub(crate) fn suggestion(
    known: &[KnownKind<'_>],
    api_version: &str,
    kind: &str,
) -> Option<(&'static str, String)> {
    if api_version.is_empty() {
        let meant = known.iter().find(|known| known.kind == kind)?;
        let KnownKind { group, version, .. } = meant;
        let message = format!("apiVersion: it is missing; `{kind}` belongs to {group}/{version}");
        return Some(("apiVersion", message));
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let mut kinds: Vec<_> = known
        .iter()
        .filter(|known| known.group == group)
        .map(|known| known.kind)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    if !kinds.is_empty() {
        return Some(("kind", unknown_kind(group, kind, &kinds)));
    }
    let of_kind = |known: &&KnownKind<'_>| known.kind.eq_ignore_ascii_case(kind);
    let groups = known.iter().filter(of_kind).map(|known| known.group);
    let meant = similar_names(group, groups).into_iter().next()?;
    let meant = known
        .iter()
        .filter(of_kind)
        .find(|known| known.group == meant)?;
    let KnownKind {
        group: right,
        version,
        ..
    } = meant;
    let message =
        format!("apiVersion: the group `{group}` is unknown; did you mean `{right}/{version}`?");
    Some(("apiVersion", message))
}

fn unknown_kind(group: &str, kind: &str, kinds: &[&str]) -> String {
    let shown: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
    let shown = shown.join(", ");
    if kind.is_empty() {
        return format!("kind: it is missing; known kinds of {group}: {shown}");
    }
    let question = did_you_mean(kind, kinds.iter().copied());
    format!("kind: `{kind}` does not exist in {group}; known kinds: {shown}{question}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likely_mistake_is_named() {
        let known = [KnownKind {
            group: "eq.example.com",
            kind: "App",
            version: "v1",
        }];
        let found = |api_version: &str, kind: &str| {
            let found = suggestion(&known, api_version, kind);
            found.map_or(String::new(), |(_, message)| message)
        };
        for (api_version, kind, expected) in [
            (
                "",
                "App",
                "apiVersion: it is missing; `App` belongs to eq.example.com/v1",
            ),
            (
                "eq.example.com/v1",
                "",
                "kind: it is missing; known kinds of eq.example.com: `App`",
            ),
            (
                "eq.example.com/v1",
                "app",
                "kind: `app` does not exist in eq.example.com; known kinds: `App`; did you mean `App`?",
            ),
            (
                "eq.example.com/v1",
                "Application",
                "kind: `Application` does not exist in eq.example.com; known kinds: `App`",
            ),
            (
                "eq.exmaple.com/v1",
                "App",
                "apiVersion: the group `eq.exmaple.com` is unknown; did you mean `eq.example.com/v1`?",
            ),
            ("apps/v1", "Deployment", ""),
            ("other.example.org/v1", "App", ""),
            ("v1", "Service", ""),
        ] {
            assert_eq!(found(api_version, kind), expected, "{api_version} {kind}");
        }
    }
}
