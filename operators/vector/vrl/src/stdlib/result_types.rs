//! Result types of functions that return objects with known fields.
//!
//! <https://vector.dev/docs/reference/vrl/functions/>

use std::collections::BTreeMap;

use vrl::prelude::{Collection, Field, Kind, TypeDef};

/// Returns the result type of `parse_etld`.
pub(crate) fn etld() -> TypeDef {
    let known = object(&[
        ("etld", Kind::bytes()),
        ("etld_plus", Kind::bytes()),
        ("known_suffix", Kind::boolean()),
    ]);
    TypeDef::from(known).fallible()
}

/// Returns the result type of `dns_lookup`: a DNS message.
pub(crate) fn dns() -> TypeDef {
    let (flag, number, text) = (Kind::boolean, Kind::integer, Kind::bytes);
    let header = object(&[
        ("aa", flag()),
        ("ad", flag()),
        ("anCount", number()),
        ("arCount", number()),
        ("cd", flag()),
        ("nsCount", number()),
        ("opcode", number()),
        ("qdCount", number()),
        ("qr", number()),
        ("ra", flag()),
        ("rcode", number()),
        ("rd", flag()),
        ("tc", flag()),
    ]);
    let record = object(&[
        ("class", text()),
        ("domainName", text()),
        ("rData", text()),
        ("recordType", text()),
        ("recordTypeId", number()),
        ("ttl", number()),
    ]);
    let many = |of: &Kind| Kind::array(Collection::from_unknown(of.clone()));
    let message = object(&[
        ("fullRcode", number()),
        ("rcodeName", text().or_null()),
        ("time", text().or_null()),
        ("timePrecision", text().or_null()),
        ("answers", many(&record)),
        ("authority", many(&record)),
        ("additional", many(&record)),
        ("header", header),
        ("question", many(&question())),
    ]);
    TypeDef::from(message).fallible()
}

/// Returns the result type of `parse_dnstap`: the possible fields of a message.
pub(crate) fn dnstap() -> TypeDef {
    let (flag, number, text) = (Kind::boolean, Kind::integer, Kind::bytes);
    let (may_be_number, may_be_text) = (number().or_undefined(), text().or_undefined());
    let many = |of: &Kind| Kind::array(Collection::from_unknown(of.clone())).or_undefined();
    // The fields of a query and of an update, some of which are the same.
    let header = object(&[
        ("aa", flag()),
        ("ad", flag()),
        ("adCount", may_be_number.clone()),
        ("anCount", may_be_number.clone()),
        ("arCount", may_be_number.clone()),
        ("cd", flag()),
        ("id", number()),
        ("nsCount", may_be_number.clone()),
        ("opcode", number()),
        ("prCount", may_be_number.clone()),
        ("qdCount", may_be_number.clone()),
        ("qr", number()),
        ("ra", flag()),
        ("rcode", number()),
        ("rd", flag()),
        ("tc", flag()),
        ("upCount", may_be_number.clone()),
        ("zoCount", may_be_number.clone()),
    ]);
    let zone = object(&[
        ("zClass", text()),
        ("zName", text()),
        ("zType", may_be_text.clone()),
        ("zTypeId", number()),
    ]);
    let record = object(&[
        ("class", text()),
        ("domainName", text()),
        ("rData", text()),
        ("rDataBytes", may_be_text.clone()),
        ("recordType", may_be_text.clone()),
        ("recordTypeId", number()),
        ("ttl", number()),
    ]);
    let option = object(&[
        ("optCode", number()),
        ("optName", text()),
        ("optValue", text()),
    ]);
    let options = object(&[
        ("do", flag()),
        ("ednsVersion", number()),
        ("extendedRcode", number()),
        ("options", many(&option)),
        ("udpPayloadSize", number()),
    ]);
    let message = object(&[
        ("additional", many(&record)),
        ("answers", many(&record)),
        ("authority", many(&record)),
        ("fullRcode", may_be_number.clone()),
        ("header", header.or_undefined()),
        ("opt", options.or_undefined()),
        ("prerequisite", many(&record)),
        ("question", many(&question())),
        ("rawData", may_be_text.clone()),
        ("rcodeName", may_be_text.clone()),
        ("time", may_be_number),
        ("timePrecision", may_be_text),
        ("update", many(&record)),
        ("zone", zone.or_undefined()),
    ]);
    TypeDef::from(message).fallible()
}

/// Returns the type of a DNS question in `dns_lookup` and `parse_dnstap`.
fn question() -> Kind {
    object(&[
        ("class", Kind::bytes()),
        ("domainName", Kind::bytes()),
        ("questionType", Kind::bytes()),
        ("questionTypeId", Kind::integer()),
    ])
}

/// Returns the result type of `get_vector_metric`.
pub(crate) fn metric() -> TypeDef {
    TypeDef::from(one_metric()).or_null()
}

/// Returns the result type of `find_vector_metrics`. The function returns a list, but Vector declares its type as an
/// object.
pub(crate) fn metrics() -> TypeDef {
    TypeDef::object(Collection::from_unknown(one_metric()))
}

fn one_metric() -> Kind {
    object(&[
        ("kind", Kind::bytes()),
        ("name", Kind::bytes()),
        ("tags", Kind::any_object()),
        ("type", Kind::bytes()),
        ("value", Kind::float().or_null()),
    ])
}

fn object(fields: &[(&str, Kind)]) -> Kind {
    let fields = fields.iter();
    let fields = fields.map(|(name, kind)| (Field::from(*name), kind.clone()));
    Kind::object(fields.collect::<BTreeMap<_, _>>())
}
