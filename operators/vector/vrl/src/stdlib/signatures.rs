//! Signatures of functions in Vector 0.57: names, parameters and result types.
//!
//! <https://vector.dev/docs/reference/vrl/functions/>

use vrl::compiler::function::Parameter;
use vrl::prelude::{Collection, Kind, TypeDef, kind};

use crate::stdlib::algorithms::{CHECKSUMS, CIPHERS};
use crate::stdlib::result_types;
use crate::stdlib::signature::{CallRequirement, Signature};

pub(crate) const SIGNATURES: &[Signature] = &[
    // Checksums and cryptography.
    of(
        "crc",
        &[needs("value", kind::BYTES), may("algorithm", kind::BYTES)],
        text,
        kind::BYTES,
    )
    .with(CallRequirement::SafeWith("algorithm", CHECKSUMS)),
    of("md5", &[needs("value", kind::BYTES)], text, kind::BYTES),
    of("sha1", &[needs("value", kind::BYTES)], text, kind::BYTES),
    of(
        "sha2",
        &[needs("value", kind::BYTES), may("variant", kind::BYTES)],
        text,
        kind::BYTES,
    )
    .with(CallRequirement::OneOf(
        "variant",
        &[
            "SHA-224",
            "SHA-256",
            "SHA-384",
            "SHA-512",
            "SHA-512/224",
            "SHA-512/256",
        ],
    )),
    of(
        "sha3",
        &[needs("value", kind::BYTES), may("variant", kind::BYTES)],
        text,
        kind::BYTES,
    )
    .with(CallRequirement::OneOf(
        "variant",
        &["SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512"],
    )),
    of(
        "seahash",
        &[needs("value", kind::BYTES)],
        TypeDef::integer,
        kind::INTEGER,
    ),
    of(
        "xxhash",
        &[needs("value", kind::BYTES), may("variant", kind::BYTES)],
        text,
        kind::INTEGER | kind::BYTES,
    )
    .with(CallRequirement::SafeWith(
        "variant",
        &["XXH32", "XXH64", "XXH3-64", "XXH3-128"],
    )),
    of(
        "hmac",
        &[
            needs("value", kind::BYTES),
            needs("key", kind::BYTES),
            may("algorithm", kind::BYTES),
        ],
        text,
        kind::BYTES,
    )
    .with(CallRequirement::SafeWith(
        "algorithm",
        &["SHA1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"],
    )),
    of(
        "encrypt",
        &[
            needs("plaintext", kind::BYTES),
            needs("algorithm", kind::BYTES),
            needs("key", kind::BYTES),
            needs("iv", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    )
    .with(CallRequirement::Known("algorithm", CIPHERS)),
    of(
        "decrypt",
        &[
            needs("ciphertext", kind::BYTES),
            needs("algorithm", kind::BYTES),
            needs("key", kind::BYTES),
            needs("iv", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    )
    .with(CallRequirement::Known("algorithm", CIPHERS)),
    of(
        "encrypt_ip",
        &[
            needs("ip", kind::BYTES),
            needs("key", kind::BYTES),
            needs("mode", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    ),
    of(
        "decrypt_ip",
        &[
            needs("ip", kind::BYTES),
            needs("key", kind::BYTES),
            needs("mode", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    ),
    // The host and the network.
    of(
        "get_env_var",
        &[needs("name", kind::BYTES)],
        uncertain_text,
        kind::BYTES,
    ),
    of("get_hostname", &[], uncertain_text, kind::BYTES),
    of("get_timezone_name", &[], uncertain_text, kind::BYTES),
    of(
        "dns_lookup",
        &[
            needs("value", kind::BYTES),
            may("qtype", kind::BYTES),
            may("class", kind::BYTES),
            may("options", kind::OBJECT),
        ],
        result_types::dns,
        kind::OBJECT,
    ),
    of(
        "reverse_dns",
        &[needs("value", kind::BYTES)],
        uncertain_text,
        kind::BYTES,
    ),
    of(
        "http_request",
        &[
            needs("url", kind::BYTES),
            may("method", kind::BYTES),
            may("headers", kind::OBJECT),
            may("body", kind::BYTES),
            may("http_proxy", kind::BYTES),
            may("https_proxy", kind::BYTES),
            may("redact_headers", kind::BOOLEAN),
        ],
        uncertain_text,
        kind::BYTES,
    )
    .with(CallRequirement::Proxies(&["http_proxy", "https_proxy"])),
    // Functions for which the compiler reads files.
    of(
        "parse_etld",
        &[
            needs("value", kind::BYTES),
            may("plus_parts", kind::INTEGER),
            may("psl", kind::BYTES),
        ],
        result_types::etld,
        kind::OBJECT,
    )
    .with(CallRequirement::File("psl")),
    of(
        "parse_proto",
        &[
            needs("value", kind::BYTES),
            needs("desc_file", kind::BYTES),
            needs("message_type", kind::BYTES),
        ],
        uncertain_object,
        kind::OBJECT,
    )
    .with(CallRequirement::File("desc_file")),
    of(
        "encode_proto",
        &[
            needs("value", kind::ANY),
            needs("desc_file", kind::BYTES),
            needs("message_type", kind::BYTES),
            may("allow_lossy_string_coercion", kind::BOOLEAN),
        ],
        uncertain_text,
        kind::BYTES,
    )
    .with(CallRequirement::File("desc_file")),
    of(
        "validate_json_schema",
        &[
            needs("value", kind::BYTES),
            needs("schema_definition", kind::BYTES),
            may("ignore_unknown_formats", kind::BOOLEAN),
        ],
        || TypeDef::boolean().fallible(),
        kind::BOOLEAN,
    )
    .with(CallRequirement::Literal("schema_definition")),
    // Functions of Vector that are not in the VRL library.
    of(
        "get_secret",
        &[needs("key", kind::BYTES)],
        || TypeDef::bytes().add_null(),
        kind::BYTES | kind::NULL,
    ),
    of(
        "set_secret",
        &[needs("key", kind::BYTES), needs("secret", kind::BYTES)],
        effect,
        kind::NULL,
    ),
    of(
        "remove_secret",
        &[needs("key", kind::BYTES)],
        effect,
        kind::NULL,
    ),
    of(
        "set_semantic_meaning",
        &[needs("target", kind::ANY), needs("meaning", kind::BYTES)],
        effect,
        kind::NULL,
    )
    .with(CallRequirement::Meaning),
    of(
        "get_enrichment_table_record",
        &[
            needs("table", kind::BYTES),
            needs("condition", kind::OBJECT),
            may("select", kind::ARRAY),
            may("case_sensitive", kind::BOOLEAN),
            may("wildcard", kind::BYTES),
        ],
        uncertain_object,
        kind::OBJECT,
    )
    .with(CallRequirement::Table("table")),
    of(
        "find_enrichment_table_records",
        &[
            needs("table", kind::BYTES),
            needs("condition", kind::OBJECT),
            may("select", kind::ARRAY),
            may("case_sensitive", kind::BOOLEAN),
            may("wildcard", kind::BYTES),
        ],
        || {
            let record = Kind::object(Collection::any());
            TypeDef::array(Collection::from_unknown(record)).fallible()
        },
        kind::ARRAY,
    )
    .with(CallRequirement::Table("table")),
    of(
        "get_vector_metric",
        &[needs("key", kind::BYTES), may("tags", kind::OBJECT)],
        result_types::metric,
        kind::OBJECT | kind::NULL,
    ),
    of(
        "find_vector_metrics",
        &[needs("key", kind::BYTES), may("tags", kind::OBJECT)],
        result_types::metrics,
        kind::ARRAY,
    ),
    of(
        "aggregate_vector_metrics",
        &[
            needs("function", kind::BYTES),
            needs("key", kind::BYTES),
            may("tags", kind::OBJECT),
        ],
        || TypeDef::float().or_null(),
        kind::FLOAT | kind::NULL,
    )
    .with(CallRequirement::OneOf(
        "function",
        &["sum", "avg", "min", "max"],
    )),
    of(
        "parse_dnstap",
        &[
            needs("value", kind::BYTES),
            may("lowercase_hostnames", kind::BOOLEAN),
        ],
        result_types::dnstap,
        kind::OBJECT,
    ),
];

const fn of(
    name: &'static str,
    parameters: &'static [Parameter],
    gives: fn() -> TypeDef,
    kind: u16,
) -> Signature {
    Signature {
        name,
        parameters,
        gives,
        kind,
        demand: CallRequirement::Nothing,
    }
}

impl Signature {
    const fn with(self, demand: CallRequirement) -> Self {
        Self { demand, ..self }
    }
}

const fn needs(keyword: &'static str, kind: u16) -> Parameter {
    Parameter::required(keyword, kind, "")
}

const fn may(keyword: &'static str, kind: u16) -> Parameter {
    Parameter::optional(keyword, kind, "")
}

fn text() -> TypeDef {
    TypeDef::bytes().infallible()
}

fn uncertain_text() -> TypeDef {
    TypeDef::bytes().fallible()
}

pub(crate) fn uncertain_object() -> TypeDef {
    TypeDef::object(Collection::any()).fallible()
}

fn effect() -> TypeDef {
    TypeDef::null().infallible().impure()
}
