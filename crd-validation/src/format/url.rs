//! URLs, parsed as in Go's `net/url`, which differs from browsers: <https://pkg.go.dev/net/url#Parse>.

use std::net::IpAddr;
use std::str::FromStr;

/// Parsed URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    pub(crate) host: String,
    user: Option<String>,
    opaque: String,
    path: Vec<u8>,
    raw_path: String,
    raw_query: String,
    fragment: String,
}

impl Url {
    /// Parses a URL as in a request: absolute, or an absolute path.
    pub(crate) fn of_request(text: &str) -> Result<Self, String> {
        parse(text, true)
    }

    /// Parses a URL that may be relative and may have a fragment.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let url = parse(rest, false)?;
        unescape(fragment, Part::Fragment)?;
        Ok(Self {
            fragment: fragment.to_owned(),
            ..url
        })
    }

    /// Returns the host without its port, and the port.
    pub(crate) fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(colon) if is_optional_port(&self.host[colon..]) => {
                (&self.host[..colon], &self.host[colon + 1..])
            }
            _ => (self.host.as_str(), ""),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }

    /// Returns the path in its encoded form.
    pub(crate) fn escaped_path(&self) -> String {
        let needs_no_escape = |byte: u8| {
            is_allowed(byte, Part::Path)
                || matches!(byte, b'!' | b'\'' | b'(' | b')' | b'*' | b'[' | b']' | b'%')
        };
        if !self.raw_path.is_empty() && self.raw_path.bytes().all(needs_no_escape) {
            return self.raw_path.clone();
        }
        if self.path == b"*" {
            return "*".to_owned();
        }
        escape(&self.path)
    }

    /// Returns the query parameters in their order. Invalid parameters are skipped.
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        let pairs = self
            .raw_query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let read = |text| {
            let bytes = unescape(text, Part::Query).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        pairs
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((read(key)?, read(value)?))
            })
            .collect()
    }
}

fn parse(text: &str, of_request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("a control character is not allowed".into());
    }
    if text.is_empty() && of_request {
        return Err("empty url".into());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.raw_query);
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if of_request {
            return Err("invalid URI for request".into());
        }
        if rest
            .split('/')
            .next()
            .is_some_and(|segment| segment.contains(':'))
        {
            return Err("the first segment of a relative path has a colon".into());
        }
    }
    let may_have_host = !url.scheme.is_empty() || (!of_request && !rest.starts_with("///"));
    if let Some(authority) = rest.strip_prefix("//").filter(|_| may_have_host) {
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        rest = path;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        url.host = self::host(&url.scheme, host)?;
        if let Some(user) = user {
            if !user.bytes().all(is_user_text) {
                return Err("the user contains a character that is not allowed".into());
            }
            unescape(user, Part::User)?;
            url.user = Some(user.to_owned());
        }
    }
    url.path = unescape(rest, Part::Path)?;
    if escape(&url.path) != rest {
        rest.clone_into(&mut url.raw_path);
    }
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("the scheme is missing".into()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return ip_literal(host),
        Some(_) => return Err("an IP literal must be the whole host".into()),
        None => {}
    }
    if let Some(first) = host.find(':') {
        // Lists of hosts with ports are in use, but not for these two schemes.
        let strict = matches!(scheme, "http" | "https");
        let colon = if strict {
            first
        } else {
            host.rfind(':').unwrap_or(first)
        };
        if !is_optional_port(&host[colon..]) {
            return Err(format!("`{}` is not a port", &host[colon..]));
        }
    }
    text(unescape(host, Part::Host)?)
}

fn ip_literal(host: &str) -> Result<String, String> {
    let (inside, port) = host[1..]
        .rsplit_once(']')
        .ok_or("`]` is missing in the host")?;
    if !is_optional_port(port) {
        return Err(format!("`{port}` is not a port"));
    }
    let (address, zone) = match inside.find("%25") {
        Some(at) => {
            let zone = text(unescape(&inside[at..], Part::Zone)?)?;
            (&inside[..at], zone)
        }
        None => (inside, String::new()),
    };
    let address = text(unescape(address, Part::Host)?)?;
    match IpAddr::from_str(&address) {
        Ok(IpAddr::V6(_)) => Ok(format!("[{address}{zone}]{port}")),
        _ => Err(format!("`{address}` is not an IPv6 address")),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "the host is not UTF-8".into())
}

fn is_optional_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    text.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

fn is_user_text(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Fragment,
    Host,
    Path,
    Query,
    User,
    Zone,
}

/// Returns true if a byte is not escaped in this part.
fn is_allowed(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return true;
    }
    match part {
        Part::Host | Part::Zone => b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Part::Path => b"$&+,/:;=@".contains(&byte),
        Part::Fragment | Part::Query | Part::User => false,
    }
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let code = text
                    .get(at + 1..at + 3)
                    .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
                let byte = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
                let byte = byte.filter(|byte| match part {
                    Part::Host => *byte >= 0x80 || *byte == b'%',
                    Part::Zone => matches!(byte, b'%' | b' ') || is_allowed(*byte, Part::Host),
                    _ => true,
                });
                let Some(byte) = byte else {
                    return Err(format!(
                        "`{}` is not a valid escape",
                        String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)])
                    ));
                };
                out.push(byte);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            byte if matches!(part, Part::Host | Part::Zone)
                && byte < 0x80
                && !is_allowed(byte, part) =>
            {
                return Err(format!("`{}` is not allowed in a host", byte as char));
            }
            byte => out.push(byte),
        }
        at += 1;
    }
    Ok(out)
}

fn escape(path: &[u8]) -> String {
    path.iter()
        .map(|byte| {
            if is_allowed(*byte, Part::Path) {
                (*byte as char).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_urls_are_valid_as_in_go() {
        for good in [
            "https://a.b:8080/p%20q?k=v",
            "/a/b",
            "mailto:x",
            "*",
            "https://[::1]:80/",
            "a:b",
            "http://u:p@h/",
            "pg://a:1,b:2/x",
            "https://é/",
        ] {
            assert!(Url::of_request(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a/b",
            "://a",
            "https://a b/",
            "https://[::1",
            "https://[1.2.3.4]/",
            "http://a:1:2/",
            "https://a:x/",
            "/a%zz",
            "https://a%41/",
            "1a:b",
            "http://a\n/",
        ] {
            assert!(Url::of_request(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_parts_of_a_url_are_those_of_go() {
        let url = Url::parse("HTTPS://[::1]:80/p%20q/%2F?k=v&k=w+x&a;b#f").expect("valid");
        assert_eq!(url.scheme, "https");
        assert_eq!(url.host, "[::1]:80");
        assert_eq!(url.host_and_port(), ("::1", "80"));
        assert_eq!(url.escaped_path(), "/p%20q/%2F");
        assert_eq!(
            url.query(),
            [("k".into(), "v".into()), ("k".into(), "w x".into())]
        );
    }
}
