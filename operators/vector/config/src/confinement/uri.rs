//! URIs that begin with `http://` or `https://`: their host must be literal.

use http::Uri;
use serde_json::Value;
use url::Url;

use crate::confinement::unconfined::Unconfined;
use crate::interpolation::Interpolation;
use crate::vector_version::VectorVersion;

/// Characters that some servers read as a `/` once they have decoded a path; `%25` is decoded twice by a proxy
/// before a server.
const ENCODED_SEPARATORS: [&str; 4] = ["%2f", "%5c", "%25", "\\"];

/// Returns true if a literal prefix makes a template a URI.
pub(crate) fn is_http(prefix: &str) -> bool {
    let prefix = prefix.to_ascii_lowercase();
    prefix.starts_with("http://") || prefix.starts_with("https://")
}

/// Returns the reason why Vector cannot confine a URI with this literal prefix, if there is one.
pub(crate) fn unconfined(
    text: &str,
    prefix: &str,
    interpolation: Interpolation,
    version: VectorVersion,
) -> Option<Unconfined> {
    if interpolation.without_variables(text).contains(['?', '#']) {
        return Some(Unconfined::QueryOrFragment);
    }
    // `${HOST}` is a host only once Vector has replaced it.
    if interpolation.is_replaced(prefix) {
        return None;
    }
    // Vector's URI parser accepts only ASCII; the parser here accepts more.
    let uri = prefix.parse::<Uri>().ok().filter(|_| prefix.is_ascii());
    let Some(uri) = uri.filter(|uri| uri.authority().is_some()) else {
        return Some(Unconfined::NoHost);
    };
    let path = uri.path().to_ascii_lowercase();
    let is_encoded = ENCODED_SEPARATORS.iter().any(|it| path.contains(it));
    // An event field could end the name of the host, or make another one of it.
    let (_, after_scheme) = prefix.split_once("://").unwrap_or_default();
    let is_partial = version >= VectorVersion::V0_58 && !after_scheme.contains('/');
    is_encoded
        .then_some(Unconfined::EncodedSeparator)
        .or(is_partial.then_some(Unconfined::PartialHost))
}

/// Returns the template of the endpoint of the `axiom` sink, and the option that it comes from.
///
/// The dataset is a part of it only if the URL has no path of its own.
pub(crate) fn axiom_endpoint(options: &Value) -> Option<(&'static str, String)> {
    let text = |option: &str| options[option].as_str();
    let dataset = text("dataset")?;
    if let Some(url) = text("url") {
        let url = url.trim_end_matches('/');
        let has_path = Url::parse(url).map_or(true, |url| !["", "/"].contains(&url.path()));
        if has_path {
            return Some(("url", url.to_owned()));
        }
        let option = if url.contains("{{") { "url" } else { "dataset" };
        return Some((option, format!("{url}/v1/datasets/{dataset}/ingest")));
    }
    if let Some(region) = text("region") {
        let region = region.trim_end_matches('/');
        let option = if region.contains("{{") {
            "region"
        } else {
            "dataset"
        };
        return Some((option, format!("https://{region}/v1/ingest/{dataset}")));
    }
    let endpoint = format!("https://api.axiom.co/v1/datasets/{dataset}/ingest");
    Some(("dataset", endpoint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::confinement::template::Template;

    fn problem(text: &str) -> Option<Unconfined> {
        Template::read(text)
            .expect("a template")
            .unconfined(Interpolation::On, VectorVersion::V0_57)
    }

    #[test]
    fn a_uri_has_a_literal_host_and_no_query() {
        for text in [
            "http://h/{{ x }}",
            "HTTP://h/{{ x }}",
            "http://h:70000/{{ x }}",
            "http://h/%Y/{{ x }}",
            "ftp://h/{{ x }}?a=b",
            "http_{{ x }}",
        ] {
            assert_eq!(problem(text), None, "{text}");
        }
        for (text, expected) in [
            ("https://{{ x }}", Unconfined::NoHost),
            ("http://h .b/{{ x }}", Unconfined::NoHost),
            ("http://h/é/{{ x }}", Unconfined::NoHost),
            ("http://h/a?b={{ x }}", Unconfined::QueryOrFragment),
            ("http://h/{{ x }}#f", Unconfined::QueryOrFragment),
            ("http://h/a\\{{ x }}", Unconfined::EncodedSeparator),
        ] {
            assert_eq!(problem(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn from_0_58_on_a_literal_host_is_complete() {
        for (text, is_confined) in [
            ("http://h/{{ x }}", true),
            ("http://h{{ x }}/", false),
            ("http://h:{{ x }}/", false),
        ] {
            let problem = |version| {
                let template = Template::read(text).expect("a template");
                template.unconfined(Interpolation::Off, version)
            };
            assert_eq!(problem(VectorVersion::V0_57), None, "{text}");
            let expected = (!is_confined).then_some(Unconfined::PartialHost);
            assert_eq!(problem(VectorVersion::V0_58), expected, "{text}");
        }
    }

    #[test]
    fn a_host_that_is_a_variable_is_not_checked() {
        for text in [
            "http://${HOST}/{{ x }}",
            "http://$HOST/{{ x }}",
            "http://${HOST:?missing}/{{ x }}",
            "http://SECRET[own.host]/{{ x }}",
        ] {
            assert_eq!(problem(text), None, "{text}");
        }
        for (text, expected) in [
            ("http://{{ x }}/$PATH", Unconfined::NoHost),
            ("http://{{ x }}/$$", Unconfined::NoHost),
            ("http://$HOST/?{{ x }}", Unconfined::QueryOrFragment),
        ] {
            assert_eq!(problem(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_dataset_of_axiom_is_a_part_of_a_path() {
        let cases = [
            (json!({"dataset": "{{ x }}"}), "dataset", true),
            (json!({"dataset": "a?{{ x }}"}), "dataset", false),
            (
                json!({"dataset": "{{ x }}", "url": "https://h/"}),
                "dataset",
                true,
            ),
            (
                json!({"dataset": "a#{{ x }}", "url": "https://h/own"}),
                "url",
                true,
            ),
            (json!({"dataset": "d", "url": "{{ x }}"}), "url", false),
            (
                json!({"dataset": "d", "region": "{{ x }}"}),
                "region",
                false,
            ),
            (
                json!({"dataset": "{{ x }}", "region": "eu"}),
                "dataset",
                true,
            ),
        ];
        for (options, option, is_confined) in cases {
            let (from, endpoint) = axiom_endpoint(&options).expect("an endpoint");
            let problem = Template::read(&endpoint)
                .and_then(|template| template.unconfined(Interpolation::On, VectorVersion::V0_57));
            assert_eq!(
                (from, problem.is_none()),
                (option, is_confined),
                "{options}"
            );
        }
    }
}
