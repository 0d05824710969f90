//! Names of the Secrets that the controller creates.

use std::hash::Hasher;

use fnv::FnvHasher;
use kube::ResourceExt;

use crate::spec::CloudDatabase;

/// Maximum length of the name of a Secret, in characters.
const LONGEST_NAME: usize = 253;

/// Number of characters of a hash in a name.
const HASH: usize = 16;

/// Returns the name of the Secret for applications, if the object has one.
#[must_use]
pub fn connection_secret_name(object: &CloudDatabase) -> Option<String> {
    let secret = object.spec.connection_secret.as_ref()?;
    let default = || derived_name(&object.name_any(), "connection");
    Some(secret.name.clone().unwrap_or_else(default))
}

/// Returns the name of the Secret with a password that the controller generates.
#[must_use]
pub fn generated_secret_name(object: &CloudDatabase) -> String {
    derived_name(&object.name_any(), "master-user")
}

/// Returns `name-purpose`, with a hash in place of the end of a name that is too long.
fn derived_name(name: &str, purpose: &str) -> String {
    let full = format!("{name}-{purpose}");
    if full.len() <= LONGEST_NAME {
        return full;
    }
    let mut hash = FnvHasher::default();
    hash.write(name.as_bytes());
    let hash = format!("{:0HASH$x}", hash.finish());
    // Names of objects are ASCII. A part of a name must not end with a dot or a hyphen.
    let kept = LONGEST_NAME - purpose.len() - HASH - 2;
    let beginning = name.get(..kept).unwrap_or(name);
    let beginning = beginning.trim_end_matches(['.', '-']);
    format!("{beginning}-{hash}-{purpose}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_has_a_hash() {
        assert_eq!(derived_name("orders", "connection"), "orders-connection");
        let name = |last: &str| format!("{}{last}", "o".repeat(252));
        let (first, second) = (name("a"), name("b"));
        let derived = derived_name(&first, "connection");
        assert_eq!(derived.len(), LONGEST_NAME);
        assert_ne!(derived, derived_name(&second, "connection"));
        let dotted = format!("{}.{}", "o".repeat(223), "o".repeat(29));
        assert!(!derived_name(&dotted, "connection").contains(".-"));
    }
}
