use crate::site::Site;
pub async fn there_and_back(_site: &Site) {}
