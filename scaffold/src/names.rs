//! Names of a program and of its kind.

mod reserved;

use crate::error::Error;
use reserved::{KEYWORDS, MODULES, RESERVED_PROGRAMS, USED};

/// Longest name of a program: the names of all objects of an installation begin with it, and a label has 63 characters.
const MAX_PROGRAM: usize = 40;

/// Requirement on the name of a kind.
const KIND_REQUIREMENT: &str =
    "must begin with an upper-case letter, and have only letters and digits, such as `Greeting`";

/// Names of a program and of one of its kinds.
///
/// ```
/// use lockstep_scaffold::Names;
///
/// let names = Names::new("dns-operator", "DnsRecord", "dns.example.com", "v1alpha1", None)?;
/// assert_eq!(names.plural, "dnsrecords");
/// assert_eq!(names.module, "dns_record");
/// # Ok::<(), lockstep_scaffold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Name of the program and of its package.
    pub program: String,
    /// Kind.
    pub kind: String,
    /// Plural of the kind in lower case, as in URLs of the API server.
    pub plural: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Name of the Rust module of the kind.
    pub module: String,
    /// Name of the library in Rust.
    pub(crate) library: String,
}

impl Names {
    /// Checks the names and derives the others.
    ///
    /// # Errors
    ///
    /// A name is not allowed in Kubernetes, or would not compile.
    pub fn new(
        program: &str,
        kind: &str,
        group: &str,
        version: &str,
        plural: Option<&str>,
    ) -> Result<Self, Error> {
        let require = |is_so: bool, what, value: &str, requirement| {
            let error = || Error::Name {
                what,
                value: value.to_owned(),
                requirement,
            };
            is_so.then_some(()).ok_or_else(error)
        };
        let is_short_label = is_label(program) && program.len() <= MAX_PROGRAM;
        require(
            is_short_label && !KEYWORDS.contains(&program) && !RESERVED_PROGRAMS.contains(&program),
            "the name",
            program,
            "must have lower-case letters, digits and `-`, begin with a letter, have at most 40 characters, and must not \
             be a keyword of Rust or a name that Rust or Kubernetes use, such as `core` or `admin`",
        )?;
        require(is_pascal_case(kind), "`--kind`", kind, KIND_REQUIREMENT)?;
        require(
            !USED.contains(&kind),
            "`--kind`",
            kind,
            "is the name of a type that the generated code uses; choose another one",
        )?;
        require(
            group.contains('.') && group.len() <= 253 && group.split('.').all(is_group_label),
            "`--group`",
            group,
            "must be a domain in lower case that belongs to you, such as `demo.example.com`",
        )?;
        require(
            is_version(version),
            "`--api-version`",
            version,
            "must be a version of Kubernetes, such as `v1alpha1` or `v1`",
        )?;
        let plural = plural.map_or_else(|| pluralized(&kind.to_lowercase()), ToOwned::to_owned);
        require(
            is_label(&plural),
            "`--plural`",
            &plural,
            "must have lower-case letters, digits and `-`, and begin with a letter",
        )?;
        Ok(Self {
            program: program.to_owned(),
            kind: kind.to_owned(),
            plural,
            group: group.to_owned(),
            version: version.to_owned(),
            module: module_name(kind),
            library: program.replace('-', "_"),
        })
    }

    /// Replaces the names of the templates by these names.
    pub(crate) fn apply(&self, template: &str) -> String {
        let variable = self.module.to_uppercase();
        // The longest first: some of them contain others.
        let words = [
            ("greeting-operator", self.program.as_str()),
            ("greeting_operator", &self.library),
            ("demo.example.com", &self.group),
            ("greetings", &self.plural),
            ("Greeting", &self.kind),
            ("greeting", &self.module),
            ("GREETING", &variable),
            ("v1alpha1", &self.version),
        ];
        let mut text = String::with_capacity(template.len());
        let mut rest = template;
        'text: while !rest.is_empty() {
            for (word, name) in words {
                if let Some(after) = rest.strip_prefix(word) {
                    text.push_str(name);
                    rest = after;
                    continue 'text;
                }
            }
            let mut letters = rest.chars();
            text.extend(letters.next());
            rest = letters.as_str();
        }
        text
    }
}

fn is_label(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-'))
        && !name.ends_with('-')
        && name.len() <= 63
}

fn is_group_label(name: &str) -> bool {
    let is_inner = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '-');
    !name.is_empty()
        && name.len() <= 63
        && name.chars().all(is_inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn is_pascal_case(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_uppercase())
        && letters.all(|letter| letter.is_ascii_alphanumeric())
        && name.len() <= 63
}

/// Returns true for `v1`, `v1beta2` and the like.
fn is_version(name: &str) -> bool {
    let is_number = |text: &str| {
        !text.is_empty() && !text.starts_with('0') && text.chars().all(|it| it.is_ascii_digit())
    };
    let Some(version) = name.strip_prefix('v') else {
        return false;
    };
    ["alpha", "beta"]
        .iter()
        .find_map(|stage| version.split_once(stage))
        .map_or_else(
            || is_number(version),
            |(major, minor)| is_number(major) && is_number(minor),
        )
}

/// Returns the English plural, as kube derives it.
fn pluralized(word: &str) -> String {
    let ends_with = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    if ends_with(&["s", "x", "z", "ch", "sh"]) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// Checks a kind and returns the name of its module.
///
/// # Errors
///
/// The name is not one of a kind.
pub(crate) fn module_of(kind: &str) -> Result<String, Error> {
    if is_pascal_case(kind) {
        return Ok(module_name(kind));
    }
    Err(Error::Name {
        what: "`--kind`",
        value: kind.to_owned(),
        requirement: KIND_REQUIREMENT,
    })
}

/// Checks the name of a rule or case: files are named after it.
///
/// # Errors
///
/// The name is not allowed.
pub(crate) fn check_part(name: &str) -> Result<(), Error> {
    if is_label(name) {
        return Ok(());
    }
    Err(Error::Name {
        what: "the name",
        value: name.to_owned(),
        requirement: "must have lower-case letters, digits and `-`, and begin with a letter",
    })
}

/// Returns the name of the module of a kind: `DnsRecord` and `DNSRecord` give `dns_record`.
fn module_name(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut name = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let begins_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if begins_word {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    if KEYWORDS.contains(&name.as_str()) || MODULES.contains(&name.as_str()) {
        name.push_str("_kind");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator_form::OperatorForm;

    fn names(program: &str, kind: &str, group: &str, version: &str) -> Result<Names, String> {
        Names::new(program, kind, group, version, None).map_err(|error| error.to_string())
    }

    #[test]
    fn names_that_kubernetes_or_rust_reject_are_errors() {
        let fine = |program: &str, kind: &str, group: &str, version: &str| {
            names(program, kind, group, version).is_ok()
        };
        assert!(fine("greeter", "Greeting", "demo.example.com", "v1"));
        for program in [
            "",
            "Greeter",
            "1st",
            "a_b",
            "a-",
            "match",
            "test",
            "admin",
            "kube",
            &"a".repeat(41),
        ] {
            assert!(
                !fine(program, "Greeting", "demo.example.com", "v1"),
                "{program}"
            );
        }
        for kind in [
            "",
            "greeting",
            "Gree-ting",
            "Value",
            "ConfigMap",
            "Api",
            "Self",
        ] {
            assert!(!fine("greeter", kind, "demo.example.com", "v1"), "{kind}");
        }
        for group in ["", "demo", "Demo.example.com", "demo..com", "-a.b", "a_b.c"] {
            assert!(!fine("greeter", "Greeting", group, "v1"), "{group}");
        }
        for version in ["", "1", "v", "v0", "v1alpha", "v1gamma1", "1.0"] {
            assert!(
                !fine("greeter", "Greeting", "demo.example.com", version),
                "{version}"
            );
        }
        let error = names("greeter", "greeting", "demo.example.com", "v1").expect_err("lower case");
        assert_eq!(
            error,
            "`--kind` is `greeting`: it must begin with an upper-case letter, and have only letters and digits, such as \
             `Greeting`"
        );
    }

    #[test]
    fn no_kind_has_the_name_of_an_import_of_the_templates() {
        let of_form = |form: OperatorForm| [form.repository(), form.kind()].concat();
        let templates = [OperatorForm::Handler, OperatorForm::Reconciler].map(of_form);
        let mut checked = Vec::new();
        for template in templates.iter().flatten() {
            let content = template.content.split(';');
            let imports = content.filter_map(|part| part.rsplit_once("use ").map(|(_, it)| it));
            let names = imports.flat_map(|names| names.split(|c: char| !c.is_alphanumeric()));
            let is_type = |name: &&str| {
                name.starts_with(|c: char| c.is_ascii_uppercase())
                    && name.contains(|c: char| c.is_ascii_lowercase())
            };
            let types: Vec<_> = names.filter(is_type).collect();
            let defines_kind = template.content.contains("kind = \"Greeting\"");
            // Elsewhere, another type may have the name of the kind.
            if types.contains(&"Greeting") || defines_kind {
                checked.extend(types.into_iter().filter(|name| !name.contains("Greeting")));
            }
        }
        for name in ["OwnedType", "JsonSchema", "Leadership", "DevService"] {
            assert!(checked.contains(&name), "{name}: {checked:?}");
        }
        checked.retain(|name| !USED.contains(name));
        assert_eq!(checked, Vec::<&str>::new());
    }

    #[test]
    fn the_other_names_are_derived_from_the_kind() {
        let of = |kind| names("greeter", kind, "demo.example.com", "v1").expect("names");
        for (kind, plural, module) in [
            ("Greeting", "greetings", "greeting"),
            ("DnsRecord", "dnsrecords", "dns_record"),
            ("DNSRecord", "dnsrecords", "dns_record"),
            ("Policy", "policies", "policy"),
            ("Gateway", "gateways", "gateway"),
            ("Match", "matches", "match_kind"),
            ("Trait", "traits", "trait_kind"),
            ("Resource", "resources", "resource_kind"),
            ("Simulator", "simulators", "simulator_kind"),
            ("Bus", "buses", "bus"),
            ("V2Ray", "v2rays", "v2_ray"),
        ] {
            let names = of(kind);
            assert_eq!(
                (names.plural.as_str(), names.module.as_str()),
                (plural, module)
            );
        }
    }

    #[test]
    fn a_name_that_contains_a_word_of_the_templates_is_not_replaced_again() {
        let names = Names::new(
            "greeting-operator-2",
            "GreetingCard",
            "greeting.dev",
            "v1",
            None,
        );
        let names = names.expect("names");
        let text = names.apply(
            "greeting-operator Greeting greetings.demo.example.com greeting.rs GREETING_URL",
        );
        let expected = "greeting-operator-2 GreetingCard greetingcards.greeting.dev greeting_card.rs GREETING_CARD_URL";
        assert_eq!(text, expected);
    }
}
