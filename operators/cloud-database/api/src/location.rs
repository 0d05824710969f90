//! Annotations that choose the AWS region and the IAM role for the instance of an object.

/// Annotation of an object or its Namespace with the AWS region of the instance.
pub const REGION: &str = "database.example.com/region";

/// Annotation of an object or its Namespace with the ARN of the IAM role that the controller assumes. That of an object has an
/// effect only if its Namespace allows the role.
pub const ROLE_ARN: &str = "database.example.com/role-arn";

/// Annotation of a Namespace with the ARNs of the roles that its objects may choose, separated by commas.
pub const ALLOWED_ROLE_ARNS: &str = "database.example.com/allowed-role-arns";

/// Annotation of a Namespace with the regions that its objects may choose, separated by commas.
pub const ALLOWED_REGIONS: &str = "database.example.com/allowed-regions";

/// Annotation of a Namespace with the external ID with which the controller assumes the roles of its objects, instead of the UID
/// of the Namespace. It has an effect only if the controller allows it.
pub const EXTERNAL_ID: &str = "database.example.com/external-id";

/// Prefix of the external IDs of annotations, which no UID of a Namespace has.
pub const EXTERNAL_ID_PREFIX: &str = "lockstep-";

/// Maximum length of an external ID in an annotation. STS allows more.
const MAX_EXTERNAL_ID: usize = 128;

/// Maximum length of the name of a region. It becomes a part of the names of hosts.
const MAX_REGION: usize = 32;

/// Returns true if a text has the form of the name of an AWS region, such as `eu-central-1` or `us-gov-west-1`.
#[must_use]
pub fn is_region(text: &str) -> bool {
    let Some((places, number)) = text.rsplit_once('-') else {
        return false;
    };
    let is_place =
        |place: &str| !place.is_empty() && place.bytes().all(|it| it.is_ascii_lowercase());
    text.len() <= MAX_REGION
        && places.contains('-')
        && places.split('-').all(is_place)
        && (1..=2).contains(&number.len())
        && number.bytes().all(|it| it.is_ascii_digit())
}

/// Returns true if a text has the form of the ARN of an IAM role, such as `arn:aws:iam::123456789012:role/databases`.
#[must_use]
pub fn is_role_arn(text: &str) -> bool {
    let parts: Vec<_> = text.splitn(6, ':').collect();
    let &["arn", partition, "iam", "", account, resource] = parts.as_slice() else {
        return false;
    };
    let is_name = |it: char| it.is_ascii_alphanumeric() || "+=,.@_/-".contains(it);
    let name = resource.strip_prefix("role/").unwrap_or_default();
    partition.starts_with("aws")
        && account.len() == 12
        && account.bytes().all(|it| it.is_ascii_digit())
        && !name.is_empty()
        && !name.ends_with('/')
        && name.chars().all(is_name)
}

/// Returns true if a text has the form of an external ID in an annotation, such as `lockstep-shop-7f3a`.
#[must_use]
pub fn is_external_id(text: &str) -> bool {
    let own = text.strip_prefix(EXTERNAL_ID_PREFIX).unwrap_or_default();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !own.is_empty() && text.len() <= MAX_EXTERNAL_ID && own.bytes().all(is_part)
}

/// Returns the ID of the account in the ARN of a role.
pub(crate) fn account_of_role(role: &str) -> Option<&str> {
    role.split(':').nth(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions_are_recognised() {
        for region in [
            "eu-central-1",
            "us-gov-west-1",
            "us-iso-east-1",
            "eusc-de-east-1",
        ] {
            assert!(is_region(region), "{region}");
        }
        for other in [
            "",
            "eu",
            "eu-1",
            "eu-central",
            "eu-central-1.a",
            "EU-central-1",
            "eu--central-1",
            "eu-central-123",
        ] {
            assert!(!is_region(other), "{other}");
        }
        assert!(!is_region(&format!("eu-{}-1", "a".repeat(40))));
    }

    #[test]
    fn arns_of_roles_are_recognised() {
        for role in [
            "arn:aws:iam::123456789012:role/databases",
            "arn:aws-cn:iam::123456789012:role/teams/shop_1",
        ] {
            assert!(is_role_arn(role), "{role}");
        }
        for other in [
            "",
            "databases",
            "arn:aws:iam::123456789012:user/databases",
            "arn:aws:iam::12345:role/databases",
            "arn:aws:iam::123456789012:role/",
            "arn:aws:iam::123456789012:role/a b",
            "arn:aws:sts::123456789012:role/databases",
        ] {
            assert!(!is_role_arn(other), "{other}");
        }
    }

    #[test]
    fn external_ids_of_annotations_are_no_uids_of_namespaces() {
        for text in ["lockstep-shop", "lockstep-Shop_7.f"] {
            assert!(is_external_id(text), "{text}");
        }
        let long = format!("lockstep-{}", "a".repeat(128));
        let uid = "0c7e8f1a-4a2c-4b7e-9a57-2f6d1f0a3c11";
        for text in [
            "",
            "lockstep-",
            "shop",
            uid,
            "lockstep-a b",
            "lockstep-a/b",
            &long,
        ] {
            assert!(!is_external_id(text), "{text}");
        }
    }
}
