//! URLs.

use std::collections::HashMap;

use ::cel::common::types::{CelBool, CelList, CelMap, CelMapKey, CelString};
use ::cel::common::value::Val;
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::library::arguments::failed;
use crate::cel::opaque::opaque;
use crate::format::go_fmt;
use crate::format::url::Url;

opaque!(Url, "kubernetes.URL");

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn is_url: (CelString) -> CelBool, name = "isURL")?;
    cel::add_overload!(env, fn url: (CelString) -> Result<Url>)?;
    cel::add_member_overload!(env, fn get_scheme: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_host: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_hostname: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_port: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_escaped_path: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_query: (Url) -> CelMap)
}

fn is_url(text: &CelString<'_>) -> CelBool {
    Url::of_request(text.inner()).is_ok().into()
}

fn url(text: &CelString<'_>) -> Result<Url, ExecutionError> {
    let parsed = Url::of_request(text.inner()).and_then(|_| Url::parse(text.inner()));
    parsed.map_err(|problem| {
        failed(
            "url",
            format!(
                "URL parse error during conversion from string: parse {}: {problem}",
                go_fmt::quote(text.inner())
            ),
        )
    })
}

fn get_scheme(url: &Url) -> CelString<'static> {
    url.scheme.clone().into()
}

fn get_host(url: &Url) -> CelString<'static> {
    url.host.clone().into()
}

fn get_hostname(url: &Url) -> CelString<'static> {
    url.host_and_port().0.to_owned().into()
}

fn get_port(url: &Url) -> CelString<'static> {
    url.host_and_port().1.to_owned().into()
}

fn get_escaped_path(url: &Url) -> CelString<'static> {
    url.escaped_path().into()
}

fn get_query(url: &Url) -> CelMap<'static> {
    let mut values: HashMap<String, Vec<Box<dyn Val>>> = HashMap::new();
    for (key, value) in url.query() {
        values
            .entry(key)
            .or_default()
            .push(Box::new(CelString::from(value)));
    }
    let entries = values.into_iter().map(|(key, values)| {
        (
            CelMapKey::from(key),
            Box::new(CelList::from(values)) as Box<dyn Val>,
        )
    });
    entries.collect::<HashMap<_, _>>().into()
}
