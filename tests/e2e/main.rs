//! Lockstep as it runs: a real API server calls the real gate over TLS, the controller has exactly the
//! rights that the manifests grant, and AWS is a moto server.

mod alone;
mod apply;
mod audit;
mod bounds;
mod cases;
mod crash;
mod desk;
mod gate;
mod handshakes;
mod install;
mod leader;
mod policy;
mod protocol;
mod proxy;
mod random;
mod unguarded;
mod waiting;
mod world;
