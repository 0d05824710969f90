//! Credential scope of a request: caller, region and service. Signatures are not verified.

use crate::protocol::fault::Fault;

/// Parts of the credential scope of a signed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) access_key: String,
    pub(crate) region: String,
    pub(crate) service: String,
}

impl Scope {
    /// Reads the header `Authorization`
    /// (`AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, …`).
    pub(crate) fn parse(authorization: Option<&str>) -> Result<Self, Fault> {
        let authorization = authorization.ok_or_else(|| {
            Fault::new(
                "MissingAuthenticationToken",
                "Request is missing Authentication Token",
            )
        })?;
        let scope = authorization
            .split_once("Credential=")
            .and_then(|(_, rest)| rest.split([',', ' ']).next());
        let parts: Vec<_> = scope.unwrap_or_default().split('/').collect();
        let &[access_key, _, region, service, "aws4_request"] = parts.as_slice() else {
            return Err(Fault::new(
                "IncompleteSignature",
                "Authorization header requires 'Credential' parameter.",
            ));
        };
        Ok(Self {
            access_key: access_key.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_that_of_the_signature() {
        let header = "AWS4-HMAC-SHA256 Credential=testing/20260101/eu-central-1/rds/aws4_request, \
                      SignedHeaders=host, Signature=0";
        let scope = Scope::parse(Some(header)).expect("a scope");
        let parts = [&scope.access_key, &scope.region, &scope.service];
        assert_eq!(parts, ["testing", "eu-central-1", "rds"]);
        let code = |header| Scope::parse(header).expect_err("no scope").code;
        assert_eq!(code(None), "MissingAuthenticationToken");
        assert_eq!(code(Some("Basic YTpi")), "IncompleteSignature");
    }
}
