//! Simulation of replicas that race, stop at any point and are suspended, and of API servers that observe writes
//! late. No API server may ever meet a certificate that it does not trust.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fastrand::Rng;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use serde_json::json;
use time::OffsetDateTime;
use x509_parser::pem::parse_x509_pem;

use crate::api::ClusterApi;
use crate::ca::authority::CertKeyPair;
use crate::ca::bundle::{CertificateBundle, RotationPhase};
use crate::ca::rotation::RotationPolicy;
use crate::error::CertError;
use crate::inject::target::{InjectOutcome, InjectTarget, InjectTargetKind};
use crate::source::self_signed;
use crate::store::secret;

const HOUR: Duration = Duration::from_hours(1);
const PROPAGATION_DELAY: Duration = Duration::from_mins(10);

/// Longest time until an API server observes a change. It is shorter than the propagation delay.
const LATEST_NEWS: Duration = Duration::from_mins(9);

const REPLICAS: usize = 3;
const API_SERVERS: usize = 2;

struct World {
    now: OffsetDateTime,
    secret: Option<Secret>,
    configurations: Vec<Configuration>,
    served: Vec<Option<CertKeyPair>>,
    writes: u64,
    repairs: usize,
    /// Time until which the node of each replica is suspended.
    suspended: [Option<OffsetDateTime>; REPLICAS],
}

#[derive(Default)]
struct Configuration {
    version: u64,
    bundle: String,
    /// CA bundle that each API server has observed, and the time since which it is stale.
    observed: Vec<(String, Option<OffsetDateTime>)>,
}

/// Cluster as seen by one replica.
struct Replica {
    world: Arc<Mutex<World>>,
    index: usize,
}

/// Yields once, so that other replicas can run.
async fn turn() {
    let mut waited = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

impl Replica {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world
            .lock()
            .expect("no thread panics while holding the lock")
    }

    /// Performs one call. Other replicas can run before it is executed and before it returns.
    async fn call<T>(&self, done: impl FnOnce(&mut World) -> T) -> T {
        turn().await;
        let result = done(&mut self.world());
        turn().await;
        result
    }
}

fn position(target: &InjectTarget) -> usize {
    usize::from(target.kind == InjectTargetKind::Mutating)
}

impl ClusterApi for Replica {
    fn now(&self) -> OffsetDateTime {
        self.world().now
    }

    async fn get_target(&self, target: &InjectTarget) -> Result<Option<DynamicObject>, CertError> {
        let found = self.call(|world| {
            let configuration = &world.configurations[position(target)];
            let bundle = ByteString(configuration.bundle.clone().into_bytes());
            json!({
                "metadata": {"resourceVersion": configuration.version.to_string()},
                "webhooks": [{"name": "one", "clientConfig": {
                    "service": {"namespace": "system", "name": "webhook"},
                    "caBundle": bundle,
                }}],
            })
        });
        Ok(serde_json::from_value(found.await).ok())
    }

    async fn inject_ca(
        &self,
        target: &InjectTarget,
        found: &DynamicObject,
        trusted: &str,
    ) -> Result<InjectOutcome, CertError> {
        if target.injected_cas(found) == [Some(trusted.to_owned())] {
            return Ok(InjectOutcome::Already);
        }
        let resource_version = found.metadata.resource_version.clone();
        let written = self.call(|world| {
            let (now, configuration) = (world.now, &mut world.configurations[position(target)]);
            if resource_version != Some(configuration.version.to_string()) {
                return InjectOutcome::Conflict;
            }
            world.writes += 1;
            configuration.version += 1;
            trusted.clone_into(&mut configuration.bundle);
            for (_, fresh_until) in &mut configuration.observed {
                fresh_until.get_or_insert(now);
            }
            InjectOutcome::Now
        });
        Ok(written.await)
    }

    async fn get_secret(&self) -> Result<Option<Secret>, CertError> {
        Ok(self.call(|world| world.secret.clone()).await)
    }

    async fn put_secret(&self, secret: &Secret) -> Result<InjectOutcome, CertError> {
        let mut secret = secret.clone();
        let written = self.call(|world| {
            let version = |secret: &Secret| secret.metadata.resource_version.clone();
            if world.secret.as_ref().and_then(version) != version(&secret) {
                return InjectOutcome::Conflict;
            }
            world.writes += 1;
            secret.metadata.resource_version = Some(world.writes.to_string());
            world.secret = Some(secret);
            InjectOutcome::Now
        });
        Ok(written.await)
    }

    fn on_secret_repaired(&self, _: &str) {
        self.world().repairs += 1;
    }

    async fn all_replicas_serve(&self, ca: &str) -> Result<bool, CertError> {
        for index in 0..REPLICAS {
            let shown = self.call(|world| world.served[index].clone()).await;
            if !shown.is_some_and(|pair| is_of(&pair, ca)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read_served(&self) -> Option<CertKeyPair> {
        self.world().served[self.index].clone()
    }

    fn write_files(&self, pair: &CertKeyPair) -> Result<(), CertError> {
        self.world().served[self.index] = Some(pair.clone());
        Ok(())
    }
}

fn is_of(pair: &CertKeyPair, trusted: &str) -> bool {
    let (_, leaf) = parse_x509_pem(pair.certificate.as_bytes()).expect("PEM");
    let leaf = leaf.parse_x509().expect("a certificate");
    let cas = secret::certificates(trusted).expect("PEM");
    cas.iter().any(|ca| {
        let (_, ca) = parse_x509_pem(ca.as_bytes()).expect("PEM");
        let ca = ca.parse_x509().expect("a certificate");
        ca.subject() == leaf.issuer()
    })
}

impl World {
    fn new() -> Self {
        let configuration = || Configuration {
            observed: vec![(String::new(), None); API_SERVERS],
            ..Configuration::default()
        };
        Self {
            now: OffsetDateTime::UNIX_EPOCH + 500_000 * HOUR,
            secret: None,
            configurations: vec![configuration(), configuration()],
            served: vec![None; REPLICAS],
            writes: 0,
            repairs: 0,
            suspended: [None; REPLICAS],
        }
    }

    /// Returns the keys in the Secret, if it is not damaged.
    fn keys(&self) -> Option<CertificateBundle> {
        let keys = secret::read(self.secret.as_ref()?)?;
        keys.check().ok().map(|()| keys)
    }

    /// Damages one entry of the Secret, unless another one is still damaged, or lost with its CA not yet replaced.
    fn damage(&mut self, random: &mut Rng) {
        let keys = self.keys();
        if keys.is_none_or(|keys| keys.current_ca.is_without_key()) {
            return;
        }
        self.writes += 1;
        let stored = self.secret.as_mut().expect("the Secret contains the keys");
        stored.metadata.resource_version = Some(self.writes.to_string());
        let data = stored.data.as_mut().expect("the Secret contains the keys");
        let names = ["ca.crt", "ca.key", "tls.crt", "tls.key", "next-ca.key"];
        let Some(entry) = data.get_mut(names[random.usize(..names.len())]) else {
            return;
        };
        match random.u32(..3) {
            0 => entry.0.clear(),
            1 => entry.0.truncate(10),
            _ => {
                let half = entry.0.len() / 2;
                entry.0.truncate(half);
            }
        }
    }

    fn deliver(&mut self, api_server: usize) {
        for configuration in &mut self.configurations {
            configuration.observed[api_server] = (configuration.bundle.clone(), None);
        }
    }

    /// Advances the time, and updates API servers that have been stale for the longest allowed time.
    fn pass(&mut self, period: Duration) {
        let then = self.now + period;
        for configuration in &mut self.configurations {
            for (observed, stale_since) in &mut configuration.observed {
                if stale_since.is_some_and(|since| then - since >= LATEST_NEWS) {
                    configuration.bundle.clone_into(observed);
                    *stale_since = None;
                }
            }
        }
        self.now = then;
    }

    fn request_rotation(&mut self) {
        if let Some(mut keys) = self.keys() {
            keys.rotation_requested = true;
            self.writes += 1;
            let stored = self.secret.as_mut().expect("the Secret contains the keys");
            secret::write(stored, &keys);
            stored.metadata.resource_version = Some(self.writes.to_string());
        }
    }

    /// Simulates a user who applies an older manifest, with the signing CA but without the next CA.
    fn overwrite(&mut self) {
        let Some(keys) = self
            .keys()
            .filter(|keys| keys.phase() == RotationPhase::Introducing)
        else {
            return;
        };
        for configuration in &mut self.configurations {
            self.writes += 1;
            configuration.version += 1;
            configuration
                .bundle
                .clone_from(&keys.current_ca.certificate);
            for (_, stale_since) in &mut configuration.observed {
                stale_since.get_or_insert(self.now);
            }
        }
    }

    fn assert_everybody_is_trusted(&self, seed: u64, known: &mut HashSet<(String, String)>) {
        for pair in self.served.iter().flatten() {
            for configuration in &self.configurations {
                for (observed, _) in &configuration.observed {
                    let meeting = (pair.certificate.clone(), observed.clone());
                    assert!(
                        known.contains(&meeting) || is_of(pair, observed),
                        "seed {seed}: an API server met a certificate that it does not trust, in phase {:?}",
                        self.keys().map(|keys| keys.phase())
                    );
                    known.insert(meeting);
                }
            }
        }
    }
}

type SyncFuture = Pin<Box<dyn Future<Output = Result<CertificateBundle, CertError>>>>;

fn new_sync(world: &Arc<Mutex<World>>, index: usize) -> SyncFuture {
    let replica = Replica {
        world: Arc::clone(world),
        index,
    };
    Box::pin(async move {
        let targets = [
            InjectTarget::sample(InjectTargetKind::Validating),
            InjectTarget::sample(InjectTargetKind::Mutating),
        ];
        let plan = RotationPolicy {
            dns_names: vec!["webhook".to_owned()],
            ca_duration: 96 * HOUR,
            cert_duration: 24 * HOUR,
            propagation_delay: PROPAGATION_DELAY,
        };
        self_signed::sync(&replica, "keys", &plan, &targets).await
    })
}

/// Numbers of a history.
#[derive(Default)]
struct History {
    /// CAs that have signed.
    cas: usize,
    /// Replicas that were interrupted at work.
    interrupted: usize,
    repairs: usize,
}

/// Runs one history.
fn history(seed: u64) -> History {
    let mut random = Rng::with_seed(seed);
    let world = Arc::new(Mutex::new(World::new()));
    let mut syncs: Vec<Option<SyncFuture>> = (0..REPLICAS).map(|_| None).collect();
    let (mut cas, mut cut_off) = (Vec::new(), 0);
    let (mut is_installed, mut known) = (false, HashSet::new());
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..6_000 {
        let index = random.usize(..REPLICAS);
        match random.u32(..1_000) {
            // A replica is killed, and restarts with or without its volume.
            0..5 => {
                cut_off += usize::from(syncs[index].take().is_some());
                if random.bool() {
                    world.lock().expect("whole").served[index] = None;
                }
            }
            5..15 => world
                .lock()
                .expect("whole")
                .deliver(random.usize(..API_SERVERS)),
            15..55 => {
                let minutes = random.u64(..8);
                world
                    .lock()
                    .expect("whole")
                    .pass(Duration::from_mins(minutes));
            }
            55..60 => world.lock().expect("whole").pass(random.u32(1..12) * HOUR),
            60..62 => world.lock().expect("whole").request_rotation(),
            // At any point of its work.
            62..65 => {
                let mut world = world.lock().expect("whole");
                let period = Duration::from_mins(random.u64(1..240));
                world.suspended[index] = Some(world.now + period);
            }
            // While no replica is about to write: one that has already read could not detect the change.
            68..70 => world.lock().expect("whole").damage(&mut random),
            65..68 => {
                syncs.fill_with(|| None);
                world.lock().expect("whole").overwrite();
            }
            _ => {
                {
                    let world = world.lock().expect("whole");
                    if world.suspended[index].is_some_and(|until| world.now < until) {
                        continue;
                    }
                }
                let running = syncs[index].get_or_insert_with(|| new_sync(&world, index));
                if let Poll::Ready(done) = running.as_mut().poll(&mut context) {
                    syncs[index] = None;
                    assert!(matches!(done, Ok(_) | Err(CertError::Conflict)));
                }
            }
        }
        let world = world.lock().expect("whole");
        let Some(keys) = world.keys() else { continue };
        if cas.last() != Some(&keys.current_ca.certificate) {
            cas.push(keys.current_ca.certificate.clone());
        }
        let everybody_has_heard = || {
            let mut all = world.configurations.iter().flat_map(|one| &one.observed);
            all.all(|(observed, _)| !observed.is_empty())
        };
        is_installed = is_installed || everybody_has_heard();
        if is_installed {
            world.assert_everybody_is_trusted(seed, &mut known);
        }
    }
    drop(syncs);
    assert_comes_to_rest(&world, seed);
    History {
        cas: cas.len(),
        interrupted: cut_off,
        repairs: world.lock().expect("whole").repairs,
    }
}

/// Asserts that without further faults the rotation ends: with one CA, and a certificate of it at every replica.
fn assert_comes_to_rest(world: &Arc<Mutex<World>>, seed: u64) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..12 {
        for index in 0..REPLICAS {
            let mut running = new_sync(world, index);
            while running.as_mut().poll(&mut context).is_pending() {}
        }
        world.lock().expect("whole").pass(PROPAGATION_DELAY);
    }
    let world = world.lock().expect("whole");
    let keys = world.keys().expect("keys");
    assert_eq!(keys.phase(), RotationPhase::Stable, "seed {seed}");
    for pair in &world.served {
        assert!(pair.as_ref() == Some(&keys.serving), "seed {seed}");
    }
    for configuration in &world.configurations {
        assert_eq!(configuration.bundle, keys.ca_bundle(), "seed {seed}");
    }
}

/// Number of histories. `LOCKSTEP_HISTORIES` overrides it.
fn histories() -> u64 {
    let configured = std::env::var("LOCKSTEP_HISTORIES").ok();
    configured
        .and_then(|configured| configured.parse().ok())
        .unwrap_or(12)
}

#[test]
fn no_api_server_meets_a_certificate_that_it_does_not_trust() {
    let mut all = History::default();
    for seed in 0..histories() {
        let one = history(seed);
        all.cas += one.cas;
        all.interrupted += one.interrupted;
        all.repairs += one.repairs;
    }
    let History {
        cas,
        interrupted,
        repairs,
    } = all;
    println!(
        "{cas} CAs have signed, {interrupted} replicas were interrupted at work, {repairs} repairs"
    );
    // Otherwise the test would prove nothing.
    assert!(cas > 60, "only {cas} CAs");
    assert!(interrupted > 100, "only {interrupted} replicas interrupted");
    assert!(repairs > 20, "only {repairs} repairs");
}
