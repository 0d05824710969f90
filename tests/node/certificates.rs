use crate::site::Site;
pub async fn from_another_issuer(_site: &Site) {}
