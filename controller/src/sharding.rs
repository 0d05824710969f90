//! Sharding: the objects are distributed over the replicas, each of which reconciles those of its shards.

pub(crate) mod balance;
pub(crate) mod group_lock;
pub(crate) mod hash;
pub(crate) mod held_shards;
pub(crate) mod lease_table;
pub(crate) mod scope;
pub(crate) mod shard_elector;
#[cfg(test)]
mod simulation;

pub use crate::sharding::held_shards::Shards;
pub use crate::sharding::lease_table::LEADER_ELECTION_ID_LABEL;
pub use crate::sharding::shard_elector::ShardElector;
