//! `GetCallerIdentity` of STS.

use serde_json::{Value, json};

use crate::operations::call::Call;

/// Returns the account of the caller.
pub(crate) fn caller(call: &Call<'_>) -> Value {
    let account = &call.region.place.account;
    json!({
        "Account": account,
        "Arn": format!("arn:aws:sts::{account}:user/tests"),
        "UserId": "AIDA0D15EA5E",
    })
}
