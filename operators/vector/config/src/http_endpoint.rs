//! Endpoints of sinks from Vector 0.58 on: absolute URLs, to which `https` is added if they have no scheme.
//!
//! <https://github.com/vectordotdev/vector/blob/master/src/sinks/util/uri.rs>

use http_02::Uri;

/// Description of the expected value.
pub(crate) const EXPECTED: &str = "must be an absolute URL with the scheme `http` or `https`, a host and, if any, a port from 0 to 65535, such as https://example.com:8080";

/// Returns the URI of an endpoint, or none if Vector rejects it.
pub(crate) fn parse(text: &str) -> Option<Uri> {
    let uri = if has_scheme(text) {
        text.parse()
    } else {
        format!("https://{text}").parse()
    };
    uri.ok().filter(is_absolute)
}

/// Returns true if a URI has a scheme of HTTP, a host and, if any, a port that is a number of 16 bits.
pub(crate) fn is_absolute(uri: &Uri) -> bool {
    matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.host().is_some_and(|host| !host.is_empty())
        && uri
            .authority()
            .is_none_or(|authority| has_valid_port(authority.as_str()))
}

/// A scheme later in the text, such as in a query parameter, is not the one of the endpoint.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// The library for URIs accepts any text after the colon.
fn has_valid_port(authority: &str) -> bool {
    let (_, host_and_port) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (_, after_brackets) = host_and_port
        .rsplit_once(']')
        .unwrap_or(("", host_and_port));
    let port = after_brackets.rsplit_once(':').map(|(_, port)| port);
    port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_absolute_url_after_https_is_added() {
        for text in [
            "h",
            "h:1",
            "http://h",
            "https://u:p@h:1/a?b",
            "http://[::1]:80",
            "h:1/w?target=http://up",
        ] {
            assert!(parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "//h",
            "://",
            "/path",
            "ftp://h",
            "unix:///x",
            "http://",
            "http://:80",
            "http://[::1",
            "http://h h",
            "http://h:99999",
            "http://h:x",
            "http://h:",
            "h:x",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
