//! Replicas: the relation of an instance to its source, and its promotion once the spec does not name one any more.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_cloud_database_api::effects::effect_of;

use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::instance_status::{self, Accepts};
use crate::instance::modification::outcomes::{Outcome, Outcomes};

/// Name of the field in conditions and Events.
pub(crate) const REPLICA_OF: &str = "replicaOf";

/// Relation of an instance to the spec of its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replication<'a> {
    /// The instance replicates another one, as the spec says.
    Replica(&'a str),
    /// The spec named the source before, and names none now.
    ToPromote(&'a str),
    /// The instance replicates another one, and neither the spec nor the status names that.
    Unnamed(&'a str),
    /// The instance was adopted as a replica, which it stays.
    Adopted(&'a str),
    /// The spec names a source, and the instance replicates none.
    Promoted,
    /// Neither is a replica.
    None,
}

impl<'a> Replication<'a> {
    /// Returns the relation. `recorded` is the source while the spec named one. A replica that the spec never called one,
    /// because it was adopted, is not promoted.
    pub(crate) fn of(
        object: &CloudDatabase,
        instance: &'a DbInstance,
        recorded: Option<&str>,
    ) -> Self {
        let source = instance.read_replica_source_db_instance_identifier();
        let source = source.filter(|source| !source.is_empty());
        match (&object.spec.replica_of, source) {
            (Some(_), Some(source)) => Self::Replica(source),
            (Some(_), None) => Self::Promoted,
            (None, Some(source)) if recorded.is_some() => Self::ToPromote(source),
            (None, Some(source)) if object.spec.adopt.is_none() => Self::Unnamed(source),
            (None, Some(source)) => Self::Adopted(source),
            (None, None) => Self::None,
        }
    }

    /// Returns the source to record.
    pub(crate) fn recorded(&self) -> Option<&'a str> {
        match self {
            Self::Replica(source) | Self::ToPromote(source) => Some(source),
            Self::Unnamed(_) | Self::Adopted(_) | Self::Promoted | Self::None => None,
        }
    }

    /// Returns true for a replica that stays one. It has the users of its source.
    pub(crate) fn has_users_of_source(&self) -> bool {
        matches!(self, Self::Replica(_) | Self::Unnamed(_) | Self::Adopted(_))
    }

    /// Returns a difference from the spec that only a person can remove. If the instance `serves` clients, RDS shows what it
    /// replicates.
    pub(crate) fn difference(&self, serves: bool) -> Option<String> {
        match self {
            Self::Unnamed(source) => Some(format!(
                "it replicates '{source}', which neither the spec nor the status names, so that it is not known whether it is to be promoted; promote it in RDS, or create another object with `spec.replicaOf`"
            )),
            Self::Promoted if serves => {
                Some("it replicates no other instance any more; remove `spec.replicaOf`".to_owned())
            }
            Self::Replica(_)
            | Self::ToPromote(_)
            | Self::Adopted(_)
            | Self::Promoted
            | Self::None => None,
        }
    }
}

impl InstanceReconciler {
    /// Requests the promotion of a replica, if its status allows it.
    pub(crate) async fn promote(
        &self,
        id: &str,
        object: &CloudDatabase,
        replica: &DbInstance,
        outcomes: &mut Outcomes,
    ) {
        let status = replica.db_instance_status().unwrap_or_default();
        let accepts = instance_status::meaning(status).accepts;
        if !matches!(accepts, Accepts::All | Accepts::AllButStorage) {
            return outcomes.add(&[REPLICA_OF], Outcome::Busy(None));
        }
        tracing::info!(
            instance = id,
            "requesting the promotion of a replica from RDS"
        );
        let outcome = match self.rds.promote(id, object, replica).await {
            Ok(_) => {
                let effect = effect_of(REPLICA_OF, object.spec.apply_changes, &[]);
                let words = effect.map_or(String::new(), |it| it.words());
                Outcome::Requested(vec![(REPLICA_OF, words)])
            }
            Err(error) if error.is_busy() => Outcome::Busy(Some(error.text())),
            Err(error) if error.is_rejected() => Outcome::Rejected(error.text()),
            Err(error) => Outcome::Failed(error.text()),
        };
        outcomes.add(&[REPLICA_OF], outcome);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(replica_of: Value) -> CloudDatabase {
        let mut object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "reader", "namespace": "shop", "uid": "1"},
            "spec": {
                "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "secretName": "s"},
            },
        });
        if !replica_of.is_null() {
            object["spec"]["replicaOf"] = replica_of;
        }
        serde_json::from_value(object).expect("a database")
    }

    #[test]
    fn only_a_replica_whose_source_was_in_the_spec_is_promoted() {
        let named = object(json!({"identifier": "orders"}));
        let unnamed = object(Value::Null);
        let builder = DbInstance::builder();
        let replica = builder.read_replica_source_db_instance_identifier("orders");
        let (replica, own) = (replica.build(), DbInstance::builder().build());
        let of = Replication::of;
        assert_eq!(of(&named, &replica, None), Replication::Replica("orders"));
        assert_eq!(of(&named, &own, Some("orders")), Replication::Promoted);
        let removed = of(&unnamed, &replica, Some("orders"));
        assert_eq!(removed, Replication::ToPromote("orders"));
        assert_eq!(removed.recorded(), Some("orders"), "until it is promoted");
        assert_eq!(of(&unnamed, &replica, None), Replication::Unnamed("orders"));
        let mut adopted = object(Value::Null);
        let adopt = json!({"identifier": "reader"});
        adopted.spec.adopt = serde_json::from_value(adopt).expect("an identifier");
        assert_eq!(of(&adopted, &replica, None), Replication::Adopted("orders"));
        assert_eq!(of(&unnamed, &own, Some("orders")), Replication::None);
    }
}
