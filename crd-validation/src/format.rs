//! String formats, as implemented by the API server's validator:
//! <https://pkg.go.dev/k8s.io/kube-openapi/pkg/validation/strfmt>.

pub mod go_fmt;
pub(crate) mod mail;
pub(crate) mod name;
pub(crate) mod network;
pub(crate) mod number;
pub(crate) mod time;
pub(crate) mod url;

pub use name::{is_label_value, is_qualified_name};

use std::sync::LazyLock;

use regex::Regex;

/// Format that a schema can require for a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    Mac,
    Password,
    RgbColor,
    ShortName,
    LongName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

impl Format {
    /// Returns the format with this name. Names that the API server does not know have no effect. Like the API
    /// server, this ignores hyphens: `date-time` equals `datetime`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "byte" => Self::Byte,
            "cidr" => Self::Cidr,
            "creditcard" => Self::CreditCard,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            "duration" => Self::Duration,
            "email" => Self::Email,
            "hexcolor" => Self::HexColor,
            "hostname" => Self::Hostname,
            "k8slongname" => Self::LongName,
            "k8sshortname" => Self::ShortName,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "mac" => Self::Mac,
            "password" => Self::Password,
            "rgbcolor" => Self::RgbColor,
            "ssn" => Self::Ssn,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            _ => return None,
        })
    }

    /// Returns true if the text has the format.
    pub(crate) fn holds(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Byte => BASE64.is_match(text),
            Self::Cidr => network::is_cidr(text),
            Self::CreditCard => number::is_credit_card(text),
            Self::Date => time::date(text).is_some(),
            Self::DateTime => time::is_date_time(text),
            Self::Duration => time::duration(text).is_some(),
            Self::Email => mail::is_address(text),
            Self::HexColor => HEX_COLOR.is_match(text),
            Self::Hostname => network::is_hostname(text),
            Self::Ipv4 => network::sloppy_ip(text).is_some() && text.contains('.'),
            Self::Ipv6 => network::ip(text).is_some() && text.contains(':'),
            Self::Isbn => number::is_isbn10(text) || number::is_isbn13(text),
            Self::Isbn10 => number::is_isbn10(text),
            Self::Isbn13 => number::is_isbn13(text),
            Self::Mac => network::is_mac(text),
            Self::Password => true,
            Self::RgbColor => RGB_COLOR.is_match(text),
            Self::ShortName => name::is_dns1123_label(text),
            Self::LongName => name::is_dns1123_subdomain(text),
            Self::Ssn => text.len() == 11 && SSN.is_match(text),
            Self::Uri => url::Url::of_request(text).is_ok(),
            Self::Uuid => UUID.is_match(text),
            Self::Uuid3 => UUID3.is_match(text),
            Self::Uuid4 => UUID4.is_match(text),
            Self::Uuid5 => UUID5.is_match(text),
        }
    }
}

/// Defines regular expressions that are compiled once.
macro_rules! expression {
    ($($name:ident = $pattern:literal;)*) => {
        $(static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the literal expression is valid, as a test verifies"));)*
    };
}

expression! {
    BASE64 = r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\([\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*\)$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    UUID = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_the_same_strings_as_the_api_server() {
        for (format, good, bad) in [
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
            ("byte", "YWJj", "YW-j"),
            ("cidr", "010.0.0.0/8", "10.0.0.0/33"),
            ("creditcard", "4111-1111-1111-1111", "4111111111111112"),
            ("date", "2024-02-29", "2023-02-29"),
            (
                "date-time",
                "2026-11-21t07:00:00.5z",
                "2026-11-21T24:00:00Z",
            ),
            ("duration", "22 hours", "later"),
            ("email", "A <a@b.c>", "a@"),
            ("hexcolor", "abc", "#abcd"),
            ("hostname", "a-b.example", "-a.example"),
            ("ipv4", "01.2.3.4", "1.2.3"),
            ("ipv6", "::1", "1.2.3.4"),
            ("isbn", "978-0321751041", "978-0321751042"),
            ("isbn10", "0321751043", "0321751044"),
            ("mac", "01:23:45:67:89:ab", "01:23:45:67:89"),
            ("rgbcolor", "rgb(1, 2,255)", "rgb(1,2,256)"),
            ("ssn", "123-45-6789", "123456789"),
            ("uri", "/a/b", "a/b"),
            ("uuid", "123E4567e89b12d3a456426614174000", "123"),
            (
                "uuid4",
                "123e4567-e89b-42d3-a456-426614174000",
                "123e4567-e89b-12d3-a456-426614174000",
            ),
        ] {
            let kind = Format::named(format).expect(format);
            assert!(kind.holds(good), "{format} {good}");
            assert!(!kind.holds(bad), "{format} {bad}");
        }
        assert!(UUID3.is_match("123e4567-e89b-32d3-a456-426614174000"));
        assert!(UUID5.is_match("123e4567-e89b-52d3-a456-426614174000"));
        assert_eq!(Format::named("uri-reference"), None);
    }
}
