//! Passwords that the controller generates. Each is stored in a Secret of the object before RDS gets it, so that it is never
//! lost, and it stays as long as that Secret has it.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use lockstep_cloud_database_api::{
    CloudDatabase, ManagementPolicy, ROTATE_PASSWORD, check_password, generated_secret_name,
};
use rand::distr::{Alphanumeric, SampleString};
use serde_json::{Value, json};

use crate::credentials::master_user::{Credentials, KnownPassword, MasterPassword, MasterUser};
use crate::credentials::secrets::{Secrets, read_secret, text};

const USERNAME: &str = "username";
const PASSWORD: &str = "password";

/// Number of characters of a password: nearly the 41 that MySQL and MariaDB accept. As letters and digits, which need no
/// encoding anywhere, they are worth 238 bits.
const LENGTH: usize = 40;

/// Reads the password from the Secret that the controller has created. If it does not exist, or another password is
/// requested, the Secret to create has a new one.
///
/// The Secret is read from the API server, and not from the cache of the children: a password that exists must not be
/// replaced because no watch has delivered it yet.
pub(crate) async fn read(
    secrets: Secrets<'_>,
    object: &CloudDatabase,
    name: String,
) -> Credentials {
    let namespace = object.namespace().unwrap_or_default();
    let secret_name = generated_secret_name(object);
    let (secret, read) = read_secret(secrets, &namespace, &secret_name).await;
    let found = match secret {
        Ok(found) => found,
        Err(error) => {
            return Credentials {
                user: Err(error),
                secret: None,
                reads: vec![read],
            };
        }
    };
    let is_ours = found
        .as_ref()
        .is_some_and(|it| is_controlled_by(it, object));
    let stored = found.as_ref().and_then(|it| of_secret(object, it));
    let rotation = found
        .as_ref()
        .and_then(|it| it.annotations().get(ROTATE_PASSWORD));
    let requested = object.annotations().get(ROTATE_PASSWORD);
    // The password of an instance that is only observed is not changed.
    let is_observed = object.spec.management_policy == ManagementPolicy::Observe;
    let is_kept = requested.is_none() || requested == rotation || is_observed;
    let (text, password) = match stored.filter(|_| is_kept) {
        Some(known) if is_ours => (known.text.clone(), MasterPassword::Known(known)),
        // Left by an owner that is gone: it is ours once it has been adopted.
        Some(known) => (known.text, MasterPassword::NotStored),
        // The instance does not have it, and would not get it.
        None if is_observed => {
            return Credentials {
                user: Ok(MasterUser {
                    name,
                    password: MasterPassword::NotStored,
                }),
                secret: None,
                reads: vec![read],
            };
        }
        None => (generate(), MasterPassword::NotStored),
    };
    let rotation_done = if is_observed {
        rotation
    } else {
        requested.or(rotation)
    };
    Credentials {
        secret: Some(secret_with(&secret_name, &name, &text, rotation_done)),
        user: Ok(MasterUser { name, password }),
        // The children of the object are watched; a Secret that is in the way is none of them.
        reads: if is_ours { Vec::new() } else { vec![read] },
    }
}

/// Returns the Secret with a master user, and the last rotation that was requested.
fn secret_with(
    secret_name: &str,
    username: &str,
    password: &str,
    rotation: Option<&String>,
) -> Value {
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name},
        "stringData": {USERNAME: username, PASSWORD: password},
    });
    if let Some(rotation) = rotation {
        secret["metadata"]["annotations"] = json!({ROTATE_PASSWORD: rotation});
    }
    secret
}

/// Returns the valid password of a Secret that no other object controls.
fn of_secret(object: &CloudDatabase, secret: &Secret) -> Option<KnownPassword> {
    if controller_uid(secret).is_some_and(|uid| Some(uid) != object.metadata.uid.as_deref()) {
        return None;
    }
    let text = text(secret, PASSWORD)?;
    let is_valid = check_password(object, &text).is_none();
    is_valid.then(|| KnownPassword::of(secret, text))
}

fn is_controlled_by(secret: &Secret, object: &CloudDatabase) -> bool {
    let uid = object.metadata.uid.as_deref();
    uid.is_some() && controller_uid(secret) == uid
}

fn controller_uid(secret: &Secret) -> Option<&str> {
    let mut owners = secret.owner_references().iter();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.map(|owner| owner.uid.as_str())
}

fn generate() -> String {
    // A cryptographically secure generator, seeded by the operating system.
    Alphanumeric.sample_string(&mut rand::rng(), LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(engine: &str) -> CloudDatabase {
        let object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "orders", "namespace": "shop", "uid": "1"},
            "spec": {
                "engine": engine, "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "generate": {}},
            },
        });
        serde_json::from_value(object).expect("a database")
    }

    #[test]
    fn a_password_is_valid_for_each_engine_and_never_the_same() {
        let passwords: std::collections::HashSet<_> = (0..100).map(|_| generate()).collect();
        assert_eq!(passwords.len(), 100);
        for engine in ["postgres", "mysql", "mariadb"] {
            let object = object(engine);
            for password in &passwords {
                assert_eq!(check_password(&object, password), None, "{engine}");
                assert_eq!(password.len(), LENGTH);
            }
        }
    }
}
