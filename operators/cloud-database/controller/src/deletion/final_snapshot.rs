//! Names of final snapshots.

use crate::clock;
use crate::instance::identity;

/// After the identifier of the instance.
const SUFFIX: &str = "-final";

/// Returns the name of the final snapshot of an instance.
pub(crate) fn name(instance: &str) -> String {
    format!("{instance}{SUFFIX}")
}

/// Returns the name of another one that is taken now.
pub(crate) fn name_with_time(instance: &str) -> String {
    let time = clock::now().strftime("%Y%m%d%H%M%S");
    format!("{}-{time}", name(instance))
}

/// Returns the UID of the object whose instance has left a final snapshot with this name, if the instance was named after it.
pub(crate) fn uid_of_object(snapshot: &str) -> Option<&str> {
    let (instance, rest) = snapshot.rsplit_once(SUFFIX)?;
    let is_time = |time: &str| !time.is_empty() && time.bytes().all(|it| it.is_ascii_digit());
    let is_final = rest.is_empty() || rest.strip_prefix('-').is_some_and(is_time);
    identity::uid_of(instance).filter(|_| is_final)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_final_snapshot_tells_the_object() {
        let uid = "0c7e8f1a-4a2c-4b7e-9a57-2f6d1f0a3c11";
        let instance = format!("cdb-{uid}");
        for of_object in [name(&instance), name_with_time(&instance)] {
            assert_eq!(uid_of_object(&of_object), Some(uid), "{of_object}");
        }
        for other in [
            "orders-final-20261127",
            "cdb-1",
            "cdb-1-final-x",
            "cdb-1-final-",
            "cdb-1-finally",
        ] {
            assert_eq!(uid_of_object(other), None, "{other}");
        }
    }
}
