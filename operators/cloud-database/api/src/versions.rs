//! Versions of CloudDatabase other than the stored one.

use lockstep_shared_validation::VersionMapping;

/// Version with `spec.class` instead of `spec.instanceClass`, and the Secret as a reference.
pub(crate) const V1BETA1: VersionMapping = VersionMapping::new("v1beta1")
    .moves(&[
        ("spec.instanceClass", "spec.class"),
        (
            "spec.credentials.secretName",
            "spec.credentials.secretRef.name",
        ),
        (
            "spec.credentials.selectors.username",
            "spec.credentials.secretRef.usernameKey",
        ),
        (
            "spec.credentials.selectors.password",
            "spec.credentials.secretRef.passwordKey",
        ),
    ])
    .only_in_storage(&["spec.credentials.selectors"])
    .only_in_version(&[(
        "spec.credentials.secretRef",
        "Secret with the password, in the namespace of the object, and its keys of username and password.",
    )]);
