//! Request → answer: authentication, faults, the operation, and the journal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::clock::Clock;
use crate::control::authorization::{self, Policy, Tags};
use crate::control::injection::{Disturbance, Injections, empty_list, nothing};
use crate::control::journal::{JournalEntry, Outcome, without_secrets};
use crate::control::roles::Roles;
use crate::fields::Fields;
use crate::model::Model;
use crate::operations::{self, Call};
use crate::protocol::answer;
use crate::protocol::credentials::Scope;
use crate::protocol::fault::Fault;
use crate::protocol::form::Form;
use crate::rules::tags;
use crate::state::config::Config;
use crate::state::place::Place;
use crate::state::region::Region;

/// State of a simulator.
#[derive(Debug)]
pub(crate) struct Service {
    rds: Model,
    sts: Model,
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    /// Accounts, by access key.
    pub(crate) accounts: HashMap<String, String>,
    /// IAM policies, by access key. A caller without one may do everything.
    pub(crate) policies: HashMap<String, Policy>,
    pub(crate) roles: Roles,
    /// Actions that callers with a policy have needed, each with a resource.
    pub(crate) needed: BTreeSet<(String, String)>,
    pub(crate) regions: BTreeMap<Place, Region>,
    pub(crate) injections: Injections,
    pub(crate) journal: Vec<JournalEntry>,
    /// Answers that RDS cannot give according to its model: errors of the simulator.
    pub(crate) violations: Vec<String>,
    requests: u64,
}

/// Answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) request_id: String,
    /// Real time after which the answer is sent.
    pub(crate) delay: Duration,
    /// If true, the connection is closed without the answer.
    pub(crate) is_lost: bool,
}

impl Service {
    pub(crate) fn new() -> Self {
        Self {
            rds: Model::rds(),
            sts: Model::sts(),
            clock: Clock::start(),
            config: Config::default(),
            accounts: HashMap::new(),
            policies: HashMap::new(),
            roles: Roles::default(),
            needed: BTreeSet::new(),
            regions: BTreeMap::new(),
            injections: Injections::default(),
            journal: Vec::new(),
            violations: Vec::new(),
            requests: 0,
        }
    }

    /// Returns the model of the service with an operation.
    pub(crate) fn model_of(&self, operation: &str) -> Option<&Model> {
        let mut models = [&self.rds, &self.sts].into_iter();
        models.find(|model| model.operations.contains_key(operation))
    }

    /// Returns a region in its state at the present time.
    pub(crate) fn region(&mut self, place: &Place) -> (&mut Region, &Config, Timestamp) {
        let now = self.clock.now();
        let region = self.regions.entry(place.clone());
        let region = region.or_insert_with(|| Region::new(place.clone()));
        region.settle(&self.config, now);
        (region, &self.config, now)
    }

    /// Answers a request.
    pub(crate) fn answer(&mut self, authorization: Option<&str>, body: &[u8]) -> Answer {
        self.requests += 1;
        let request_id = format!("00000000-0000-4000-8000-{:012x}", self.requests);
        let form = Form::parse(body);
        let scope = match Scope::parse(authorization) {
            Ok(scope) => scope,
            Err(fault) => return self.fault(&form.action, &fault, request_id),
        };
        let Some(account) = self.accounts.get(&scope.access_key).cloned() else {
            let message = "The security token included in the request is invalid.";
            let fault = Fault::new("InvalidClientTokenId", message);
            return self.fault(&form.action, &fault, request_id);
        };
        let model = match scope.service.as_str() {
            "rds" => &self.rds,
            "sts" => &self.sts,
            _ => {
                let message = "Credential should be scoped to correct service.";
                let fault = Fault::new("SignatureDoesNotMatch", message);
                return self.fault(&form.action, &fault, request_id);
            }
        };
        if !model.operations.contains_key(&form.action) || form.version != model.api_version {
            let message = format!(
                "Could not find operation {} for version {}",
                form.action, form.version
            );
            return self.fault("", &Fault::new("InvalidAction", message), request_id);
        }
        let model = model.clone();
        let place = Place {
            account,
            name: scope.region,
        };
        self.call(&model, &form, &place, scope.access_key, request_id)
    }

    /// Carries out a call, with the faults that wait for it.
    fn call(
        &mut self,
        model: &Model,
        form: &Form,
        place: &Place,
        access_key: String,
        request_id: String,
    ) -> Answer {
        let operation = form.action.as_str();
        let input = &model.operations[operation].input;
        let disturbance = self.injections.take(operation).or_else(|| {
            let lapses = self.injections.lapses(operation, &access_key);
            lapses.then_some(Disturbance::Nothing)
        });
        let parameters = form.parameters(model, input);
        let shown = parameters.as_ref().map_or(Value::Null, |parameters| {
            without_secrets(model, operation, parameters)
        });
        let result = match &disturbance {
            Some(Disturbance::Error(code, message)) => Err(Fault::new(code, message)),
            Some(Disturbance::LostRequest) => Ok(Value::Null),
            Some(Disturbance::EmptyList) => Ok(empty_list(operation)),
            Some(Disturbance::Nothing) => {
                parameters.and_then(|parameters| nothing(operation, &parameters))
            }
            _ => parameters.and_then(|parameters| {
                self.authorize(operation, place, &parameters, &access_key)?;
                self.run(operation, place, &parameters)
            }),
        };
        let outcome = match &result {
            Ok(_) => Outcome::Succeeded,
            Err(fault) => Outcome::Failed(fault.code.clone()),
        };
        let mut answer = match result {
            _ if matches!(disturbance, Some(Disturbance::LostRequest)) => {
                self.fault(operation, &Fault::new("InternalFailure", ""), request_id)
            }
            Ok(result) => self.success(model, operation, &result, request_id),
            Err(fault) => self.fault(operation, &fault, request_id),
        };
        let outcome = match disturbance {
            Some(Disturbance::LostAnswer) => Outcome::AnswerLost(Box::new(outcome)),
            Some(Disturbance::LostRequest) => Outcome::RequestLost,
            _ => outcome,
        };
        answer.is_lost = matches!(outcome, Outcome::AnswerLost(_) | Outcome::RequestLost);
        if let Some(Disturbance::Delay(delay)) = disturbance {
            answer.delay = delay;
        }
        self.journal.push(JournalEntry {
            operation: operation.to_owned(),
            parameters: shown,
            outcome,
            access_key,
            account: place.account.clone(),
            region: place.name.clone(),
            at: self.clock.now(),
        });
        answer
    }

    /// Rejects a call that the policy of its caller does not allow. This is also reported at the end of the test: the client
    /// may have hidden it.
    fn authorize(
        &mut self,
        operation: &str,
        place: &Place,
        parameters: &Fields,
        access_key: &str,
    ) -> Result<(), Fault> {
        let Some(policy) = self.policies.get(access_key).cloned() else {
            return Ok(());
        };
        for (action, resource) in authorization::needed(operation, parameters, place) {
            let possible = self.possible_tags(&resource, place, parameters);
            if !possible
                .iter()
                .all(|tags| policy.allows(&action, &resource, tags))
            {
                let message = format!(
                    "User is not authorized to perform: {action} on resource: {resource} because no identity-based policy allows the {action} action"
                );
                self.violations.push(message.clone());
                return Err(Fault::new("AccessDenied", message));
            }
            self.needed.insert((action, resource));
        }
        Ok(())
    }

    /// Returns the tags with which AWS may authorize a call for a resource. One that is created has none, or those of the request: the
    /// documentation of `aws:ResourceTag` names both cases, and what RDS does is not known, so that a policy has to allow both.
    fn possible_tags(&mut self, resource: &str, place: &Place, parameters: &Fields) -> Vec<Tags> {
        let parts: Vec<_> = resource.splitn(7, ':').collect();
        let &["arn", _, "rds", _, _, kind @ ("db" | "snapshot"), id] = parts.as_slice() else {
            return vec![Tags::new()];
        };
        let (region, _, _) = self.region(place);
        let present = match kind {
            "db" => region.instance(id).map(|instance| instance.tags.clone()),
            _ => region.snapshot(id).map(|snapshot| snapshot.tags.clone()),
        };
        present.map_or_else(
            |_| {
                let requested = tags::read(parameters.get("Tags")).unwrap_or_default();
                vec![Tags::new(), requested]
            },
            |present| vec![present],
        )
    }

    pub(crate) fn run(
        &mut self,
        operation: &str,
        place: &Place,
        parameters: &Fields,
    ) -> Result<Value, Fault> {
        if let Some(fault) = self.injections.refusal(operation, parameters) {
            return Err(fault.clone());
        }
        if operation == "AssumeRole" {
            let session = self.roles.assume(parameters)?;
            let key = session.access_key;
            self.accounts.insert(key.clone(), session.account);
            self.policies
                .extend(session.policy.map(|policy| (key, policy)));
            return Ok(session.result);
        }
        let (region, config, now) = self.region(place);
        let mut call = Call {
            region,
            config,
            now,
        };
        operations::run(operation, &mut call, parameters)
    }

    fn success(
        &mut self,
        model: &Model,
        operation: &str,
        result: &Value,
        request_id: String,
    ) -> Answer {
        match answer::result(model, operation, result, &request_id) {
            Ok(body) => Answer {
                status: 200,
                body,
                request_id,
                delay: Duration::ZERO,
                is_lost: false,
            },
            Err(error) => {
                self.violations.push(format!("{operation}: {error}"));
                let fault = Fault::new("InternalFailure", error.to_string());
                self.fault(operation, &fault, request_id)
            }
        }
    }

    fn fault(&mut self, operation: &str, fault: &Fault, request_id: String) -> Answer {
        let model = self.model_of(operation).unwrap_or(&self.rds);
        let status = fault.status(model, operation);
        let body = answer::error(model, fault, status.unwrap_or(500), &request_id)
            .expect("an error has no shape that it can violate");
        if status.is_none() {
            let code = &fault.code;
            self.violations
                .push(format!("{operation} does not document the error {code}"));
        }
        Answer {
            status: status.unwrap_or(500),
            body,
            request_id,
            delay: Duration::ZERO,
            is_lost: false,
        }
    }
}
