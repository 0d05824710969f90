//! Account and region of a resource.

/// Account and region.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) account: String,
    pub(crate) name: String,
}

impl Place {
    /// Returns the ARN of a resource of RDS.
    pub(crate) fn arn(&self, kind: &str, id: &str) -> String {
        format!("arn:aws:rds:{}:{}:{kind}:{id}", self.name, self.account)
    }
}
