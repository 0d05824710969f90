use crate::site::Site;
pub async fn runs(_site: &Site) {}
