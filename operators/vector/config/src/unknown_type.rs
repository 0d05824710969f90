//! Description of a component type that Vector does not have: what it may be instead.

use std::cmp::Reverse;

use lockstep_shared_validation::similar_names;

use crate::catalogue::Catalogue;
use crate::component::ComponentKind;
use crate::removed;

/// Maximum number of types that are suggested.
const MAX_SUGGESTED: usize = 3;

/// Command that lists all component types.
const COMMAND: &str = "lockstep vector components";

/// Describes an unknown component type.
pub(crate) fn describe(catalogue: &Catalogue, family: ComponentKind, kind: &str) -> String {
    let noun = family.noun();
    let version = &catalogue.version;
    let command = if catalogue.is_shipped() {
        COMMAND.to_owned()
    } else {
        format!("{COMMAND} --catalogue FILE")
    };
    if let Some(advice) = removed::component_type(family, kind) {
        return format!(
            "Vector {version} has no such {noun}: it {advice}; `{command}` lists all types"
        );
    }
    let others = ComponentKind::ALL.into_iter();
    let mut others = others.filter(|other| catalogue.entry(*other, kind).is_some());
    if let Some(other) = others.next() {
        return format!(
            "is a {}, not a {noun}; move it to `{}`, or select a {noun} that `{command}` lists",
            other.noun(),
            other.block()
        );
    }
    let question = similar_types(kind, &catalogue.kinds(family));
    let separator = if question.is_empty() { ";" } else { "" };
    format!("Vector {version} has no such {noun}{question}{separator} `{command}` lists all types")
}

/// Returns the end of a message about an unknown type: a question with the most similar known types, or an empty string if
/// none is similar.
#[must_use]
pub fn similar_types(kind: &str, known: &[&str]) -> String {
    match &similar(kind, known)[..] {
        [] => String::new(),
        [one] => format!("; did you mean `{one}`?"),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {} or `{last}`?", first.join(", "))
        }
    }
}

/// Returns the known types with a similar spelling, or else those with a word of the name.
fn similar<'a>(kind: &str, known: &[&'a str]) -> Vec<&'a str> {
    let mut similar = similar_names(kind, known.iter().copied());
    if similar.is_empty() {
        let kind = kind.to_lowercase();
        let words: Vec<_> = kind
            .split(['_', '-'])
            .filter(|word| word.len() > 1)
            .collect();
        let common = |known: &str| {
            let mut known = known.split('_');
            let is_common = |word: &&&str| known.any(|known| known.starts_with(**word));
            words.iter().filter(is_common).count()
        };
        let mut ranked: Vec<_> = known.iter().map(|known| (common(known), *known)).collect();
        ranked.retain(|(count, _)| *count > 0);
        ranked.sort_by_key(|(count, known)| (Reverse(*count), known.len()));
        similar = ranked.into_iter().map(|(_, known)| known).collect();
    }
    similar.truncate(MAX_SUGGESTED);
    similar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(family: ComponentKind, kind: &str) -> String {
        describe(Catalogue::shipped(), family, kind)
    }

    #[test]
    fn an_unknown_type_is_described_by_what_it_may_be() {
        for (family, kind, expected) in [
            (
                ComponentKind::Source,
                "kubernetes_log",
                "Vector 0.57 has no such source; did you mean `kubernetes_logs`? `lockstep vector components` lists all types",
            ),
            (
                ComponentKind::Sink,
                "elastic",
                "Vector 0.57 has no such sink; did you mean `elasticsearch`? `lockstep vector components` lists all types",
            ),
            (
                ComponentKind::Sink,
                "s3",
                "Vector 0.57 has no such sink; did you mean `aws_s3`? `lockstep vector components` lists all types",
            ),
            (
                ComponentKind::Sink,
                "datadog_log_metrics",
                "Vector 0.57 has no such sink; did you mean `datadog_logs`, `datadog_events` or `datadog_traces`? `lockstep vector components` lists all types",
            ),
            (
                ComponentKind::Source,
                "quux",
                "Vector 0.57 has no such source; `lockstep vector components` lists all types",
            ),
            (
                ComponentKind::Source,
                "loki",
                "is a sink, not a source; move it to `sinks`, or select a source that `lockstep vector components` lists",
            ),
            (
                ComponentKind::Source,
                "generator",
                "Vector 0.57 has no such source: it was renamed to `demo_logs`; `lockstep vector components` lists all types",
            ),
        ] {
            assert_eq!(described(family, kind), expected);
        }
    }
}
