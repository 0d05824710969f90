//! Sources of the serving certificate: self-signed, or a Secret that another controller fills.

pub(crate) mod external;
pub(crate) mod self_signed;
