//! Programs that Lua compiles, and programs that it does not compile because of a name.

use std::collections::BTreeSet;

use super::mistake;

fn message(program: &str) -> Option<String> {
    let parsed = full_moon::parse_fallible(program, full_moon::LuaVersion::lua54());
    let program = parsed.into_result().expect("the program can be parsed");
    mistake(&program, BTreeSet::new()).map(|mistake| mistake.message)
}

fn locals(count: usize) -> String {
    let names: Vec<_> = (0..count).map(|index| format!("v{index}")).collect();
    format!("local {}\n", names.join(", "))
}

#[test]
fn jumps_have_a_visible_label() {
    for valid in [
        "goto a\n::a::",
        "::a:: goto a",
        "do goto a end\n::a::",
        "goto a\nlocal x\n::a::",
        "do goto a\nlocal x\n::a:: ::b:: end",
        "for i = 1, 2 do if i then goto continue end\nlocal x\n::continue:: end",
        "do ::a:: end\n::a::",
        "while x do if y then break end end",
        "repeat break until x",
        "for k, v in pairs(t) do do break end end",
        "::a:: local function f() ::a:: end",
    ] {
        assert_eq!(message(valid), None, "{valid}");
    }
    for (invalid, part) in [
        ("goto a", "no visible label"),
        ("do ::a:: end\ngoto a", "no visible label"),
        ("::a:: local function f() goto a end", "no visible label"),
        ("goto a\nlocal x\n::a:: f()", "scope of a local variable"),
        (
            "repeat goto a\nlocal x\n::a:: until x",
            "scope of a local variable",
        ),
        ("::a:: ::a::", "twice"),
        ("::a:: do ::a:: end", "twice"),
        ("break", "outside a loop"),
        (
            "while x do local function f() break end end",
            "outside a loop",
        ),
    ] {
        let found = message(invalid);
        assert!(
            found.as_ref().is_some_and(|it| it.contains(part)),
            "{invalid}: {found:?}"
        );
    }
}

#[test]
fn variables_are_few_and_constants_are_not_assigned() {
    for valid in [
        "local x <const> = 1\nlocal x = 2\nx = 3",
        "local x <const> = {}\nx.y = 1\nfunction x.f() end",
        "do local x <close> = nil end\nx = 1",
        "for i = 1, 2 do i = 3 end",
        "local x <const> = x",
        &locals(200),
        &format!("do {} end do {} end", locals(150), locals(150)),
        &format!("{}local function f() end", locals(199)),
        &format!("{}for i = 1, 2 do end", locals(196)),
    ] {
        assert_eq!(message(valid), None, "{valid}");
    }
    for (invalid, part) in [
        ("local x <const> = 1\nx = 2", "constant `x`"),
        ("local x <const>, y = 1, 2\ny, x = 2, 3", "constant `x`"),
        (
            "local x <close> = nil\nlocal function f() x = 2 end",
            "constant `x`",
        ),
        ("local x <const> = 1\nfunction x() end", "constant `x`"),
        ("local x <constant> = 1", "`constant` is unknown"),
        ("local x <close>, y <close> = a, b", "only one variable"),
        (&locals(201), "more than 200"),
        (
            &format!("{}for i = 1, 2 do end", locals(197)),
            "more than 200",
        ),
        (
            &format!("{}for i in x do end", locals(196)),
            "more than 200",
        ),
    ] {
        let found = message(invalid);
        assert!(
            found.as_ref().is_some_and(|it| it.contains(part)),
            "{invalid}: {found:?}"
        );
    }
}

#[test]
fn only_functions_with_any_arguments_have_them() {
    for valid in [
        "return ...",
        "local function f(a, ...) return {...}, f(...), (...) end",
    ] {
        assert_eq!(message(valid), None, "{valid}");
    }
    for invalid in [
        "function f() return ... end",
        "function f(...) return function () return {x = ...} end end",
        "function a:f(x) g(x, ...) end",
    ] {
        assert!(message(invalid).is_some(), "{invalid}");
    }
}
