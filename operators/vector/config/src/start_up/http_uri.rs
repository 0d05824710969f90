//! The URI of the sink `http` and of those that wrap it. From Vector 0.58 on, it has a scheme and a host.

use lockstep_shared_validation::FieldPath;

use crate::confinement;
use crate::diagnostic::DiagnosticList;
use crate::option_format::is_dynamic;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse};
use crate::start_up::uri::{has_valid_authority, parse};
use crate::start_up::user_info::has_user;
use crate::vector_version::VectorVersion;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.version < VectorVersion::V0_58 {
        return;
    }
    let Some((path, text, uri)) = uri(options) else {
        return;
    };
    // The URI of each event is known only with the event.
    if is_dynamic(&uri) || options.is_replaced(&uri) {
        return;
    }
    let is_absolute =
        parse(&uri).is_ok_and(|uri| uri.scheme().is_some() && has_valid_authority(&uri));
    if !is_absolute {
        let detail = "must be a URI with a scheme and a host, such as `https://example.com:8080`";
        refuse(path, text, detail, problems);
    } else if has_user(&uri) && (options.has("auth") || options.is_sink(&["axiom"])) {
        let detail =
            "cannot have a user name beside the authorization of the sink; remove one of them";
        forbid(path, detail, problems);
    }
}

/// Returns the URI of a sink, with the option that it comes from.
fn uri<'a>(options: &ComponentOptions<'a>) -> Option<(FieldPath, &'a str, String)> {
    if options.is_sink(&["http"]) {
        let (path, text) = options.text("uri")?;
        return Some((path, text, text.to_owned()));
    }
    if options.is_sink(&["axiom"]) {
        let (option, uri) = confinement::uri::axiom_endpoint(options.value())?;
        let (path, text) = options.text(option)?;
        return Some((path, text, uri));
    }
    None
}
