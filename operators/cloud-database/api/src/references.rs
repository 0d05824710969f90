//! Pages of the documentation of AWS that several rules refer to.

pub(crate) const CREATE: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_CreateDBInstance.html";
