//! Network addresses and host names, parsed as in Go's `net` package.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

/// Parses an IP address without a zone.
pub(crate) fn ip(text: &str) -> Option<IpAddr> {
    IpAddr::from_str(text).ok()
}

/// Parses an IP address whose decimal parts may have leading zeros, as Go did before 1.17.
pub(crate) fn sloppy_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let (head, tail) = text.rsplit_once(':')?;
        if tail.contains('.') {
            return ip(&format!("{head}:{}", sloppy_ipv4(tail)?));
        }
        return ip(text);
    }
    sloppy_ipv4(text).map(IpAddr::V4)
}

fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let significant = part.trim_start_matches('0');
        let value = if significant.is_empty() {
            "0"
        } else {
            significant
        };
        *octet = digits.then(|| value.parse().ok())??;
    }
    parts.next().is_none().then(|| octets.into())
}

/// Returns true for an IP address with a prefix length.
pub(crate) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match sloppy_ip(address) {
        Some(IpAddr::V4(_)) => 32,
        // Go stores an IPv4-mapped address as 4 bytes, but still allows 128 bits for its prefix.
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    is_decimal(bits) && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// CIDR as parsed by `netip.ParsePrefix`: without zone and leading zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl Prefix {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.rsplit_once('/')?;
        let address = ip(address)?;
        let plain = is_decimal(bits) && (bits.len() == 1 || !bits.starts_with('0'));
        let bits: u8 = plain.then(|| bits.parse().ok())??;
        (bits <= width(address)).then_some(Self { address, bits })
    }

    /// Returns the network address: all bits after the prefix are cleared.
    pub(crate) fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        Self { address, ..self }
    }

    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let same_family = self.address.is_ipv4() == address.is_ipv4();
        same_family && Self { address, ..self }.masked().address == self.masked().address
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns true for a hardware address of 6, 8 or 20 bytes.
pub(crate) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 12 {
        return false;
    }
    let (separator, group) = match (bytes[2], bytes[4]) {
        (separator @ (b':' | b'-'), _) => (Some(separator), 2),
        (_, separator @ b'.') => (Some(separator), 4),
        _ => (None, bytes.len()),
    };
    let groups: Vec<&[u8]> = match separator {
        Some(separator) => bytes.split(|b| *b == separator).collect(),
        None => vec![bytes],
    };
    let whole = groups
        .iter()
        .all(|part| part.len() == group && part.iter().all(u8::is_ascii_hexdigit));
    whole && matches!(groups.len() * group, 12 | 16 | 40)
}

/// Returns true for a host name as in RFC 1123, with symbols and letters of any script.
pub(crate) fn is_hostname(text: &str) -> bool {
    HOSTNAME.is_match(text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
    .expect("the literal expression is valid, as a test verifies")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_in_go() {
        assert_eq!(sloppy_ip("010.000.0.1"), ip("10.0.0.1"));
        assert_eq!(sloppy_ip("::ffff:01.2.3.4"), ip("::ffff:1.2.3.4"));
        assert_eq!(ip("fe80::1%eth0"), None);
        assert!(is_mac("0123.4567.89ab") && is_mac("0123456789ab"));
        assert!(!is_mac("01:23-45:67:89:ab") && !is_mac("0123456789a"));
    }

    #[test]
    fn a_prefix_contains_only_the_addresses_of_its_network() {
        let prefix = Prefix::parse("10.1.2.3/8").expect("valid");
        assert_eq!(prefix.masked().address, IpAddr::from([10, 0, 0, 0]));
        assert!(prefix.contains(IpAddr::from([10, 200, 0, 1])));
        assert!(!prefix.contains(IpAddr::from([11, 0, 0, 1])));
        assert_eq!(Prefix::parse("10.0.0.0/08"), None);
        assert!(
            Prefix::parse("::/0")
                .expect("valid")
                .contains(ip("::1").expect("valid"))
        );
    }
}
