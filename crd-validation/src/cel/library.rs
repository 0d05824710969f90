//! Functions available to CEL rules: the standard library of CEL and the extensions of Kubernetes.
//! <https://kubernetes.io/docs/reference/using-api/cel/>.

pub(super) mod arguments;
mod conversions;
mod ip;
mod lists;
mod macros;
mod named_format;
pub(super) mod names;
pub(super) mod overloads;
mod quantity;
mod regex;
mod semver;
mod sets;
mod string_format;
mod strings;
mod url;

use std::sync::{Arc, LazyLock};

use ::cel::{DeclarationError, Env, extensions};

pub(super) use regex::compile as compile_regex;

use crate::cel::{cost, list_map, partial_eval};

/// Returns the environment in which rules are compiled and evaluated. It is built once.
pub(super) fn environment() -> Arc<Env> {
    static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
        Arc::new(build().expect("every function is declared only once, as a test verifies"))
    });
    Arc::clone(&ENVIRONMENT)
}

fn build() -> Result<Env, DeclarationError> {
    let mut environment = Env::stdlib();
    environment.set_error_on_duplicate_map_keys(false);
    environment.add_extension(extensions::strings)?;
    environment.add_extension(extensions::lists)?;
    for declare in [
        cost::declare,
        partial_eval::declare,
        conversions::declare,
        named_format::declare,
        string_format::declare,
        ip::declare,
        list_map::declare,
        lists::declare,
        macros::declare,
        quantity::declare,
        regex::declare,
        semver::declare,
        sets::declare,
        strings::declare,
        url::declare,
    ] {
        environment.add_extension(declare)?;
    }
    Ok(environment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::cost_instrumentation;
    use ::cel::{Context, Value};

    /// Evaluates an expression in the environment of rules.
    pub(super) fn evaluate(source: &str) -> Result<Value, String> {
        let mut expression = environment()
            .parser()
            .parse(source)
            .map_err(|error| error.to_string())?;
        cost_instrumentation::instrument(&mut expression);
        let context = Context::with_env(environment());
        let outcome = cost::Budget::new().spend(|| Value::resolve(&expression, &context));
        outcome
            .ok_or("out of budget")?
            .map_err(|error| error.to_string())
    }

    #[test]
    fn functions_return_the_same_results_as_in_kubernetes() {
        for source in [
            // The first examples of each page of the documentation, and edge cases found since.
            "[1, 2, 3].sum() == 6 && [1.5].sum() == 1.5 && [duration('1s')].sum() == duration('1s')",
            "[3, 1].min() == 1 && ['b', 'a'].max() == 'b' && [1, 2].isSorted() && ![2, 1].isSorted()",
            "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(9) == -1",
            "[1].first().value() == 1 && ![].last().hasValue()",
            "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == ''",
            "'a b c'.findAll('[a-z]', 2) == ['a', 'b'] && 'a b'.findAll('[a-z]') == ['a', 'b'] && 'ab'.findAll('a', 0) == []",
            "isURL('https://a.b/c?d=e') && !isURL('a/b') && url('https://u@a.b:80/p?k=v').getHost() == 'a.b:80'",
            "url('/p?k=v&k=w').getQuery() == {'k': ['v', 'w']}",
            "isQuantity('1.5Gi') && !isQuantity('1.5x') && quantity('1Ki').asInteger() == 1024",
            "quantity('k') == quantity('0') && !isQuantity('Ei') && quantity('500m').add(quantity('500m')) == quantity('1') && quantity('1').sub(2).isLessThan(quantity('0'))",
            "quantity('1.5').isInteger() == false && quantity('200k').compareTo(quantity('0.2M')) == 0 && sign(quantity('-1')) == -1",
            "isIP('10.0.0.1') && !isIP('::ffff:10.0.0.1') && ip('::1').isLoopback() && ip('127.0.0.1').family() == 4",
            "ip.isCanonical('::1') && !ip.isCanonical('0::1') && string(ip('0::1')) == '::1' && ip('10.0.0.1').isGlobalUnicast()",
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
            "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && string(cidr('10.0.0.0/8')) == '10.0.0.0/8' && type(ip('::1')) == net.IP",
            "semver('1.2.3').isLessThan(semver('1.2.3+b')) == false && isSemver('v01.2', true) && !isSemver('v1.2.3')",
            "semver('1.0.0-rc.1').compareTo(semver('1.0.0')) == -1 && semver('1.2.3').minor() == 2",
            "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
            "!format.dns1123Label().validate('abc').hasValue() && format.named('labelValue').value().validate('-').hasValue() && !format.named('x').hasValue()",
            "{'a': 1}.all(k, v, k == 'a' && v == 1) && [5].exists(i, v, i == 0 && v == 5) && [5, 6].existsOne(i, v, v == 5)",
            "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && {'a': 1}.transformMap(k, v, v > 1, v) == {}",
            "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'} && [1, 2].transformList(i, v, i > 0, v * 2) == [4]",
            "optional.of(1).optMap(x, x + 1).value() == 2 && optional.of(1).optFlatMap(x, optional.none()).hasValue() == false",
            "'%s-%d'.format(['a', 5]) == 'a-5' && strings.quote('a') == '\"a\"' && 'abc'.replace('', '_') == '_a_b_c_'",
            "'a'.matches('^\\\\pL$') && !'é'.matches('^\\\\w$')",
            "timestamp('2024-01-01T00:00:00Z').getHours('America/New_York') == 19 && timestamp('2024-01-01T01:00:00+01:00').getHours() == 0",
            "{'a': 1, 'a': 2}['a'] == 2 && string(1e21) == '1e+21' && string(1234567.0) == '1.234567e+06' && string(1.0 / 0.0) == '+Inf'",
            "string(timestamp('2024-01-01T02:00:00.50+02:00')) == '2024-01-01T02:00:00.5+02:00' && string(timestamp('2024-01-01T00:00:00-00:00')) == '2024-01-01T00:00:00Z'",
            "'%f %e %s'.format([1234567.891, -0.000123, 1e21]) == '1,234,567.891000 -1.230000×10⁻⁰⁴ 1e+21' && '%.2f%%'.format([99.5]) == '99.50%'",
            "int(duration('1s')) == 1000000000 && duration('1µs') == duration('1us') && string(duration('1.5s')) == '1.5s' && int('7') == 7",
            "'%s %s'.format([['a', 1], {'k': 1.5}]) == '[\"a\", 1] {\"k\":1.500000}' && timestamp(0) == timestamp('1970-01-01T00:00:00Z')",
        ] {
            assert_eq!(evaluate(source), Ok(Value::Bool(true)), "{source}");
        }
    }

    #[test]
    fn expressions_that_fail_in_kubernetes_fail_here() {
        for source in [
            "[].min() == 1",
            "url('a/b').getHost() == ''",
            "quantity('x') == quantity('1')",
            "ip('x') == ip('::1')",
            "'a'.matches('(')",
            "quantity('1.5').asInteger() == 1",
            "semver('1') == semver('1.0.0')",
            "{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}) == {}",
            "'%f'.format([1]) == '1.000000'",
        ] {
            assert!(evaluate(source).is_err(), "{source}");
        }
    }
}
