//! IAM roles that callers can assume.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::control::authorization::Policy;
use crate::fields::Fields;
use crate::protocol::fault::Fault;

/// Validity of the credentials of a session.
const SESSION: Duration = Duration::from_hours(1);

/// Role whose trust policy demands an external ID.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) external_id: String,
    pub(crate) policy: Option<Policy>,
}

/// Roles by ARN, and the number of their sessions.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    pub(crate) by_arn: BTreeMap<String, Role>,
    sessions: usize,
}

/// Session of a role.
pub(crate) struct Session {
    pub(crate) access_key: String,
    pub(crate) account: String,
    pub(crate) policy: Option<Policy>,
    /// Result of the call.
    pub(crate) result: Value,
}

impl Roles {
    /// Starts a session, if the external ID is the one that the role demands. As in AWS, the error does not tell if the role
    /// exists.
    pub(crate) fn assume(&mut self, parameters: &Fields) -> Result<Session, Fault> {
        let arn = parameters.text("RoleArn");
        let name = parameters.text("RoleSessionName");
        let external_id = parameters.given_text("ExternalId");
        let role = self.by_arn.get(arn);
        let role = role.filter(|role| external_id == Some(&role.external_id));
        let Some(role) = role else {
            let message =
                format!("User is not authorized to perform: sts:AssumeRole on resource: {arn}");
            return Err(Fault::new("AccessDenied", message));
        };
        self.sessions += 1;
        let access_key = format!("ASIA{:012}", self.sessions);
        let account = arn.split(':').nth(4).unwrap_or_default().to_owned();
        let role_name = arn.rsplit('/').next().unwrap_or_default();
        let expiration = Timestamp::now() + SESSION;
        let result = json!({
            "Credentials": {
                "AccessKeyId": access_key,
                "SecretAccessKey": "testing",
                "SessionToken": "testing",
                "Expiration": expiration.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            },
            "AssumedRoleUser": {
                "AssumedRoleId": format!("AROA0D15EA5E:{name}"),
                "Arn": format!("arn:aws:sts::{account}:assumed-role/{role_name}/{name}"),
            },
        });
        Ok(Session {
            access_key,
            account,
            policy: role.policy.clone(),
            result,
        })
    }
}
