//! The one Secret that holds the keys of an installation.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use time::OffsetDateTime;

use crate::authority::KeyMaterial;
use crate::keeper::KeeperError;

/// Gets the keys out of the Secret, makes them if there are none, and renews the serving pair when it
/// is due.
///
/// # Guarantees
///
/// Any number of replicas agree: a write carries the resource version that it was decided on, and the
/// one that loses starts again from what the winner wrote.
pub(crate) async fn ensure(
    secrets: &Api<Secret>,
    name: &str,
    dns_names: &[String],
    now: OffsetDateTime,
) -> Result<KeyMaterial, KeeperError> {
    let params = PostParams::default();
    loop {
        let written = match secrets.get_opt(name).await? {
            None => {
                let keys = KeyMaterial::generate(dns_names, now)?;
                tracing::info!(secret = name, "made a new CA and serving certificate");
                secrets.create(&params, &to_secret(name, None, &keys)).await
            }
            Some(secret) => {
                let renewed = match from_secret(&secret) {
                    Some(keys) if !keys.is_due(now)? => return Ok(keys),
                    Some(keys) => keys.with_new_leaf(dns_names, now)?,
                    // A Secret made empty by an installer, or one that somebody broke.
                    None => KeyMaterial::generate(dns_names, now)?,
                };
                tracing::info!(secret = name, "renewing the serving certificate");
                let version = secret.metadata.resource_version;
                secrets
                    .replace(name, &params, &to_secret(name, version, &renewed))
                    .await
            }
        };
        match written {
            Ok(secret) => return from_secret(&secret).ok_or(KeeperError::Incomplete),
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn from_secret(secret: &Secret) -> Option<KeyMaterial> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| {
        String::from_utf8(data.get(key)?.0.clone())
            .ok()
            .filter(|text| !text.is_empty())
    };
    Some(KeyMaterial {
        ca_certificate: text("ca.crt")?,
        ca_key: text("ca.key")?,
        certificate: text("tls.crt")?,
        key: text("tls.key")?,
    })
}

fn to_secret(name: &str, resource_version: Option<String>, keys: &KeyMaterial) -> Secret {
    let entry = |key: &str, text: &str| (key.to_owned(), ByteString(text.as_bytes().to_vec()));
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            resource_version,
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([
            entry("ca.crt", &keys.ca_certificate),
            entry("ca.key", &keys.ca_key),
            entry("tls.crt", &keys.certificate),
            entry("tls.key", &keys.key),
        ])),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
