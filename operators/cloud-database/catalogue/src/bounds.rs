//! Range of a setting, written as `20..65536`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Least and greatest value of a setting, both included. One that is missing is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bounds {
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
}

/// Text of a range that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no range, such as `20..65536`")]
pub struct InvalidBounds(String);

impl Bounds {
    /// Returns the range between two values, if one of them is known.
    #[must_use]
    pub fn between(min: Option<f64>, max: Option<f64>) -> Option<Self> {
        (min.is_some() || max.is_some()).then_some(Self { min, max })
    }

    /// Returns true if a value is in the range.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(min) = self.min {
            write!(f, "{min}")?;
        }
        f.write_str("..")?;
        self.max.map_or(Ok(()), |max| write!(f, "{max}"))
    }
}

impl FromStr for Bounds {
    type Err = InvalidBounds;

    fn from_str(text: &str) -> Result<Self, InvalidBounds> {
        let invalid = || InvalidBounds(text.to_owned());
        let (min, max) = text.split_once("..").ok_or_else(invalid)?;
        let number = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| invalid()),
        };
        Self::between(number(min)?, number(max)?).ok_or_else(invalid)
    }
}

impl TryFrom<String> for Bounds {
    type Error = InvalidBounds;

    fn try_from(text: String) -> Result<Self, InvalidBounds> {
        text.parse()
    }
}

impl From<Bounds> for String {
    fn from(bounds: Bounds) -> Self {
        bounds.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_it_is_written() {
        for text in ["20..65536", "0.5..50", "..0.25", "100.."] {
            let bounds: Bounds = text.parse().expect(text);
            assert_eq!(bounds.to_string(), text);
        }
        for text in ["", "..", "20", "a..b"] {
            assert!(text.parse::<Bounds>().is_err(), "{text}");
        }
        let bounds: Bounds = "0.5..50".parse().expect("a range");
        assert!(bounds.contains(0.5) && bounds.contains(50.0) && !bounds.contains(50.5));
    }
}
