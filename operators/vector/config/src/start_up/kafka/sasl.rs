//! Authentication by SASL.

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::require;
use crate::start_up::kafka::client::{Client, PROPERTIES, State};

/// Property with the mechanism.
const MECHANISM: &str = "sasl.mechanisms";

/// Mechanism that is the default.
const KERBEROS: &str = "GSSAPI";

/// Mechanism with tokens.
const TOKENS: &str = "OAUTHBEARER";

/// Mechanisms with a user and a password.
const PASSWORDS: [&str; 4] = ["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"];

/// Protocols with SASL.
const PROTOCOLS: [&str; 2] = ["sasl_plaintext", "sasl_ssl"];

pub(crate) fn validate(client: &Client<'_>, problems: &mut DiagnosticList) {
    let mechanism = match client.state(MECHANISM) {
        State::Unset => KERBEROS,
        State::Unknown => return,
        State::Is(text) => text.trim_start(),
    };
    // Tokens are validated even if another protocol is used.
    if mechanism.eq_ignore_ascii_case(TOKENS) {
        oidc(client, problems);
    }
    if client.is_one_of("security.protocol", "plaintext", &PROTOCOLS) != Some(true) {
        return;
    }
    if mechanism == KERBEROS {
        keytab(client, problems);
    } else if PASSWORDS.contains(&mechanism) {
        for name in ["sasl.username", "sasl.password"] {
            if client.has_text(name) == Some(false) {
                let detail = "must be set with this mechanism";
                require(client.options.path(name), detail, problems);
            }
        }
    } else if mechanism != TOKENS {
        let detail = "must be GSSAPI, PLAIN, OAUTHBEARER, SCRAM-SHA-256 or SCRAM-SHA-512";
        client.report(&[MECHANISM], detail, problems);
    }
}

/// Validates that the command for a ticket of Kerberos is complete. The default command names the keytab.
fn keytab(client: &Client<'_>, problems: &mut DiagnosticList) {
    let has_own_command = match client.state("sasl.kerberos.kinit.cmd") {
        State::Unset => false,
        State::Unknown => return,
        State::Is(command) => !command.contains("%{sasl.kerberos.keytab}"),
    };
    let is_run = client.integer("sasl.kerberos.min.time.before.relogin", 1) != Some(0);
    if has_own_command || !is_run || client.has_text("sasl.kerberos.keytab") != Some(false) {
        return;
    }
    if client.is_set(MECHANISM) {
        let detail = format!("requires `sasl.kerberos.keytab` in `{PROPERTIES}`");
        client.report(&[MECHANISM], &detail, problems);
    } else {
        let detail = "must be set, such as `SCRAM-SHA-512`: the default is GSSAPI, which requires `sasl.kerberos.keytab` in `librdkafka_options`";
        require(client.options.path("sasl.mechanism"), detail, problems);
    }
}

/// Validates that tokens can be fetched from a provider.
fn oidc(client: &Client<'_>, problems: &mut DiagnosticList) {
    if client.is_one_of("sasl.oauthbearer.method", "default", &["oidc"]) != Some(true) {
        return;
    }
    let unsecure = "enable.sasl.oauthbearer.unsecure.jwt";
    if client.boolean(unsecure) == Some(true) {
        let detail = "cannot be true beside `sasl.oauthbearer.method: oidc`";
        client.report(&[unsecure], detail, problems);
    }
    let kind = "sasl.oauthbearer.metadata.authentication.type";
    if client.is_one_of(kind, "none", &["none", ""]) != Some(true) {
        return;
    }
    let mut missing = vec!["sasl.oauthbearer.token.endpoint.url"];
    let grant = client.is_one_of(
        "sasl.oauthbearer.grant.type",
        "client_credentials",
        &["client_credentials", ""],
    );
    if grant == Some(true) {
        missing.extend([
            "sasl.oauthbearer.client.id",
            "sasl.oauthbearer.client.secret",
        ]);
    }
    missing.retain(|name| client.has_text(name) == Some(false));
    for name in missing {
        let path = client.options.path(PROPERTIES).key(name);
        let detail = "must be set with `sasl.oauthbearer.method: oidc`";
        require(path, detail, problems);
    }
}
