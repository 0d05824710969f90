//! Search for a state that breaks a property, in the order of the number of steps.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::exploration::properties;
use crate::exploration::rds::Disruption;
use crate::exploration::world::{Step, Surroundings, UID, World};

/// Rounds without faults after which an object must be as desired. The time in each of the last ones is a day: RDS does not show
/// all that waits for the maintenance window.
const ROUNDS: u32 = 24;
const DAYS: u32 = 12;
const DAY: Duration = Duration::from_hours(24);

/// Ages that steps distinguish: some minutes, as long as RDS may need to show what it does.
const OLDEST: Duration = Duration::from_mins(20);

/// Search and its result.
#[derive(Default)]
pub(super) struct Search {
    nodes: Vec<Node>,
    seen: HashSet<u64>,
    /// States from which an object comes to rest, as it should, without further faults.
    resting: HashSet<(bool, u64)>,
    pub(super) steps: usize,
    pub(super) depth: usize,
    /// Ends that were reached: what cannot be reached is not explored.
    pub(super) ends: BTreeSet<String>,
    pub(super) took: Duration,
}

struct Node {
    parent: usize,
    depth: usize,
    step: String,
}

impl Search {
    pub(super) fn states(&self) -> usize {
        self.seen.len()
    }

    /// Explores everything that follows from a world. Returns the broken property with its trace.
    pub(super) async fn explore(
        &mut self,
        surroundings: &Surroundings,
        first: World,
        edits: &[Value],
        most_steps: usize,
    ) -> Option<String> {
        let began = Instant::now();
        let mut open = VecDeque::new();
        self.is_new(&first);
        self.nodes.push(Node {
            parent: 0,
            depth: 0,
            step: "the object is created".to_owned(),
        });
        open.push_back((0, first));
        let mut found = None;
        'search: while let Some((at, world)) = open.pop_front() {
            let depth = self.nodes[at].depth + 1;
            if depth > most_steps {
                break;
            }
            self.depth = depth;
            for (step, log, next) in successors(surroundings, &world, edits).await {
                self.steps += 1;
                self.ends.extend(end(&next, edits));
                let text = described(&step, &log);
                if let Some(problem) = properties::broken(&world, &step, &next) {
                    found = Some(self.trace(at, &[text], &problem));
                    break 'search;
                }
                if !self.is_new(&next) {
                    continue;
                }
                self.nodes.push(Node {
                    parent: at,
                    depth,
                    step: text,
                });
                let number = self.nodes.len() - 1;
                if let Err((texts, problem)) = self.rest(surroundings, next.clone()).await {
                    found = Some(self.trace(number, &texts, &problem));
                    break 'search;
                }
                open.push_back((number, next));
            }
        }
        self.took += began.elapsed();
        found
    }

    /// Lets time pass without further faults. Returns the steps and the broken property.
    async fn rest(
        &mut self,
        surroundings: &Surroundings,
        mut world: World,
    ) -> Result<(), (Vec<String>, String)> {
        world.faults = 0;
        world.has_secret = true;
        let mut texts = vec!["from here on, without further faults:".to_owned()];
        let mut effects = Vec::new();
        let mut passed = Vec::new();
        for round in 0..ROUNDS {
            // What follows is determined by the state.
            let is_long = round >= ROUNDS - DAYS;
            let state = (is_long, hash(&world, DAY * DAYS));
            if world.object.is_none() || self.resting.contains(&state) {
                break;
            }
            passed.push(state);
            for step in [Step::Reconcile(Vec::new()), Step::Pass(false)] {
                if world.object.is_none() {
                    break;
                }
                self.steps += 1;
                let before = world.clone();
                let log = if step == Step::Pass(false) {
                    world.step(&step, &[]);
                    if is_long {
                        world.time = world.time.after(DAY);
                    }
                    Vec::new()
                } else {
                    world.reconcile(surroundings, Vec::new()).await.1
                };
                texts.push(described(&step, &log));
                if let Some(problem) = properties::broken(&before, &step, &world) {
                    return Err((texts, problem));
                }
                effects.push(std::mem::take(&mut world.effects));
            }
        }
        if passed.len() == ROUNDS as usize
            && let Some(problem) = properties::at_rest(&world, &effects)
        {
            return Err((texts, problem));
        }
        self.resting.extend(passed);
        Ok(())
    }

    fn is_new(&mut self, world: &World) -> bool {
        self.seen.insert(hash(world, OLDEST))
    }

    fn trace(&self, mut at: usize, last: &[String], problem: &str) -> String {
        let mut steps = Vec::new();
        while at != 0 {
            steps.push(self.nodes[at].step.as_str());
            at = self.nodes[at].parent;
        }
        steps.push(&self.nodes[0].step);
        let mut text = format!("{problem}\n");
        let steps = steps
            .into_iter()
            .rev()
            .chain(last.iter().map(String::as_str));
        for (number, step) in steps.enumerate() {
            let _ = writeln!(text, "  {number}. {step}");
        }
        text
    }
}

/// Returns the end that an object has reached, by its conditions or by the way in which it went.
fn end(world: &World, edits: &[Value]) -> Option<String> {
    let told = &world.told;
    if world.retained.is_some() {
        return Some("retained".to_owned());
    }
    if world.object.is_none() {
        return Some("gone".to_owned());
    }
    if told.is_synced && told.is_ready && world.edits == edits.len() {
        return Some("as desired".to_owned());
    }
    told.problem.clone().filter(|_| told.is_stalled)
}

fn hash(world: &World, oldest: Duration) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.digest(oldest).hash(&mut hasher);
    hasher.finish()
}

fn described(step: &Step, log: &[String]) -> String {
    match step {
        Step::Reconcile(_) => format!("reconciliation [{}]", log.join(", ")),
        Step::Land => "a call takes effect whose answer was lost".to_owned(),
        Step::Pass(false) => "time passes, and RDS ends what it is doing".to_owned(),
        Step::Pass(true) => "time passes, and RDS takes the change back".to_owned(),
        Step::Edit => "a user changes the object".to_owned(),
        Step::Delete => "a user deletes the object".to_owned(),
        Step::TakeOver => "another process takes over".to_owned(),
        Step::EraseStatus => "the status is erased".to_owned(),
        Step::PublishElsewhere => "another client makes the instance public".to_owned(),
        Step::LoseSecret => "the Secret is deleted".to_owned(),
        Step::DeleteElsewhere => "another client deletes the instance".to_owned(),
        Step::ChangePassword => "a user changes the password in the Secret".to_owned(),
        Step::RestoreStored => "the data of the API server is restored from a backup".to_owned(),
        Step::CreateAnew => "the object is created anew from a backup".to_owned(),
    }
}

/// Returns each world that can follow, with the calls of the step.
async fn successors(
    surroundings: &Surroundings,
    world: &World,
    edits: &[Value],
) -> Vec<(Step, Vec<String>, World)> {
    let mut next = Vec::new();
    for step in steps_without_calls(world, edits) {
        let mut after = world.clone();
        after.step(&step, edits);
        next.push((step, Vec::new(), after));
    }
    if world.object.is_none() {
        return next;
    }
    let mut script = Vec::new();
    loop {
        let mut after = world.clone();
        let (taken, log) = after.reconcile(surroundings, script.clone()).await;
        let answers: Vec<_> = taken.iter().map(|(_, chosen)| *chosen).collect();
        next.push((Step::Reconcile(answers), log, after));
        // The next combination of answers: the last call that has one more.
        let Some(last) = taken
            .iter()
            .rposition(|(number, chosen)| chosen + 1 < *number)
        else {
            return next;
        };
        script = taken[..last].iter().map(|(_, chosen)| *chosen).collect();
        script.push(taken[last].1 + 1);
    }
}

fn steps_without_calls(world: &World, edits: &[Value]) -> Vec<Step> {
    let mut steps = Vec::new();
    let instances = &world.rds.instances;
    if !world.rds.late.is_empty() {
        steps.push(Step::Land);
    }
    steps.push(Step::Pass(false));
    let exists = world.object.is_some();
    let has_faults = world.faults > 0;
    if has_faults
        && instances
            .iter()
            .any(|instance| instance.change != Disruption::default())
    {
        steps.push(Step::Pass(true));
    }
    if exists && !world.is_deleting() {
        if world.edits < edits.len() {
            steps.push(Step::Edit);
        }
        steps.push(Step::Delete);
        if world.can_change_password() {
            steps.push(Step::ChangePassword);
        }
    }
    if has_faults && world.backup.is_some() {
        steps.push(Step::RestoreStored);
    }
    if exists && world.extras.backups && world.uid == UID {
        steps.push(Step::CreateAnew);
    }
    if exists && has_faults {
        steps.extend([Step::TakeOver, Step::EraseStatus]);
        if world.has_secret {
            steps.push(Step::LoseSecret);
        }
        if !instances.is_empty() {
            steps.extend([Step::DeleteElsewhere, Step::PublishElsewhere]);
        }
    }
    steps
}
