//! Lockstep as it runs: a real API server calls the real gate over TLS, the controller has exactly the
//! rights that the manifests grant, and AWS is a moto server.

mod absent;
mod alone;
mod apply;
mod arming;
mod audit;
mod bounds;
mod cases;
mod catalogue;
mod conversion;
mod crash;
mod crd_in_sync;
mod desk;
mod desk_input;
mod desk_lines;
mod drain;
mod echo;
mod gate;
mod handshakes;
mod hostile;
mod install;
mod key_sources;
mod leader;
mod namespaced;
mod pause;
mod policy;
mod programs;
mod protocol;
mod proxy;
mod random;
mod traces;
mod unguarded;
mod vector;
mod waiting;
mod wire;
mod world;
