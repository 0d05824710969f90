//! Network access to the database, and the ways to log in.

use std::collections::BTreeSet;

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use lockstep_cloud_database_api::{self as api, CloudDatabaseSpec};

use crate::aws::rds_client::request::Request;
use crate::settings::setting::{Call, Change, Setting};

pub(crate) struct PubliclyAccessible;

impl Setting for PubliclyAccessible {
    type Value = bool;
    const FIELD: &'static str = "network.publiclyAccessible";
    const CALL: Call = Call::Access;
    const LEFT_ALONE: Option<fn(&bool) -> String> = Some(|wanted| {
        let is = if *wanted {
            "not publicly accessible"
        } else {
            "publicly accessible"
        };
        format!(
            "it is {is}, as it was created, and is not changed, because clients may depend on it; to change it, set PubliclyAccessible to {wanted} in RDS"
        )
    });

    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        Some(spec.network.publicly_accessible)
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        instance.publicly_accessible()
    }

    /// An instance must not remain public because of a security group. One that becomes public needs its groups.
    fn goes_with(is_public: &bool, _: &[Change]) -> &'static str {
        if *is_public {
            SecurityGroups::FIELD
        } else {
            Self::FIELD
        }
    }

    fn put(value: &bool, request: Request) -> Request {
        request.publicly_accessible(*value)
    }
}

pub(crate) struct SecurityGroups;

impl Setting for SecurityGroups {
    type Value = BTreeSet<String>;
    const FIELD: &'static str = "network.securityGroups";
    const CALL: Call = Call::Access;

    fn desired(spec: &CloudDatabaseSpec) -> Option<BTreeSet<String>> {
        let groups = &spec.network.security_groups;
        (!groups.is_empty()).then(|| groups.iter().cloned().collect())
    }

    /// Groups that are being removed count as removed.
    fn actual(instance: &DbInstance) -> Option<BTreeSet<String>> {
        let groups = instance.vpc_security_groups().iter();
        let groups = groups.filter(|group| group.status() != Some("removing"));
        let ids = groups.filter_map(|group| group.vpc_security_group_id());
        Some(ids.map(String::from).collect())
    }

    fn put(value: &BTreeSet<String>, request: Request) -> Request {
        let groups = value.iter();
        groups.fold(request, |request, group| {
            request.vpc_security_group_ids(group)
        })
    }
}

pub(super) struct IamAuthentication;

impl Setting for IamAuthentication {
    type Value = bool;
    const FIELD: &'static str = "iamAuthentication";

    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        spec.iam_authentication
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        let enabled = instance.iam_database_authentication_enabled();
        Some(enabled.unwrap_or_default())
    }

    fn pending(pending: &PendingModifiedValues) -> Option<bool> {
        pending.iam_database_authentication_enabled()
    }

    fn put(value: &bool, request: Request) -> Request {
        request.enable_iam_database_authentication(*value)
    }
}

pub(super) struct NetworkType;

impl Setting for NetworkType {
    type Value = String;
    const FIELD: &'static str = "network.networkType";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        let wanted = spec.network.network_type;
        wanted.map(api::NetworkType::as_str).map(String::from)
    }

    fn actual(instance: &DbInstance) -> Option<String> {
        instance.network_type().map(String::from)
    }

    fn put(value: &String, request: Request) -> Request {
        request.network_type(value)
    }
}

pub(super) struct CustomerOwnedIp;

impl Setting for CustomerOwnedIp {
    type Value = bool;
    const FIELD: &'static str = "network.customerOwnedIp";

    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        spec.network.customer_owned_ip
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        instance.customer_owned_ip_enabled()
    }

    fn put(value: &bool, request: Request) -> Request {
        request.enable_customer_owned_ip(*value)
    }
}
