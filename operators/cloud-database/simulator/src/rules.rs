//! Documented constraints of the parameters, without the state of any instance.

pub(crate) mod identifier;
pub(crate) mod limits;
pub(crate) mod master_user;
pub(crate) mod storage;
pub(crate) mod tags;
pub(crate) mod window;
