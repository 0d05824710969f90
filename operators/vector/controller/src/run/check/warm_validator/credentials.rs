//! Certificate, key and token of a validator.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Secret;
use lockstep_certs::{AuthorityError, CertKeyPair};
use lockstep_vector_validator::{CERTIFICATE, KEY, SERVER_NAME, TOKEN};
use ring::rand::{SystemRandom, generate};

/// Lifetime of a certificate. After two thirds of it, everything is replaced.
const LIFETIME: Duration = Duration::from_hours(90 * 24);

/// Credentials of a validator.
pub(crate) struct Credentials {
    pub(crate) pair: CertKeyPair,
    pub(crate) token: String,
    /// Time until they are replaced.
    pub(crate) renewal_in: Duration,
}

impl Credentials {
    /// Returns the credentials in a Secret, or new ones if they cannot be used or are to be renewed.
    pub(crate) fn new(secret: Option<&Secret>, now: SystemTime) -> Result<Self, AuthorityError> {
        if let Some(stored) = secret.and_then(|secret| stored(secret, now)) {
            return Ok(stored);
        }
        let pair = CertKeyPair::self_signed(SERVER_NAME, LIFETIME, now)?;
        let renewal_in = pair
            .renewal_in(SERVER_NAME, now)
            .unwrap_or(LIFETIME * 2 / 3);
        let random = generate::<[u8; 32]>(&SystemRandom::new());
        let random = random.map_err(|_| AuthorityError::Parse("no random numbers".to_owned()))?;
        let token = random
            .expose()
            .into_iter()
            .map(|byte| format!("{byte:02x}"));
        Ok(Self {
            pair,
            token: token.collect(),
            renewal_in,
        })
    }
}

fn stored(secret: &Secret, now: SystemTime) -> Option<Credentials> {
    let value = |key: &str| {
        let value = secret.data.as_ref()?.get(key)?;
        String::from_utf8(value.0.clone()).ok()
    };
    let pair = CertKeyPair {
        certificate: value(CERTIFICATE)?,
        key: value(KEY)?,
    };
    let token = value(TOKEN).filter(|token| !token.is_empty())?;
    let renewal_in = pair.renewal_in(SERVER_NAME, now)?;
    Some(Credentials {
        pair,
        token,
        renewal_in,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn secret(credentials: &Credentials) -> Secret {
        let values = [
            (CERTIFICATE, &credentials.pair.certificate),
            (KEY, &credentials.pair.key),
            (TOKEN, &credentials.token),
        ];
        let values = values.map(|(key, value)| (key.to_owned(), ByteString(value.clone().into())));
        Secret {
            data: Some(BTreeMap::from(values)),
            ..Secret::default()
        }
    }

    fn credentials(secret: Option<&Secret>, days: u32) -> Credentials {
        Credentials::new(secret, SystemTime::UNIX_EPOCH + days * DAY).expect("credentials")
    }

    #[test]
    fn credentials_are_kept_until_two_thirds_of_their_lifetime() {
        let first = credentials(None, 0);
        assert_eq!((first.token.len(), first.renewal_in), (64, 60 * DAY));
        let stored = secret(&first);
        let kept = credentials(Some(&stored), 59);
        assert!(kept.pair == first.pair && kept.token == first.token);
        assert_eq!(kept.renewal_in, DAY);
        let renewed = credentials(Some(&stored), 60);
        assert!(renewed.pair != first.pair && renewed.token != first.token);
        assert_eq!(renewed.renewal_in, 60 * DAY);
    }

    #[test]
    fn a_secret_that_somebody_has_changed_is_replaced() {
        for key in [CERTIFICATE, KEY, TOKEN] {
            let first = credentials(None, 0);
            for value in [
                None,
                Some(ByteString::default()),
                Some(ByteString(vec![0xff])),
            ] {
                let mut stored = secret(&first);
                let data = stored.data.as_mut().expect("values");
                data.remove(key);
                data.extend(value.map(|value| (key.to_owned(), value)));
                let replaced = credentials(Some(&stored), 0);
                assert!(
                    replaced.pair != first.pair && replaced.token != first.token,
                    "{key}"
                );
            }
        }
    }
}
