//! Registration of operators in the library of a program: the calls `Program::operator`.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Expr, ExprAssign, ExprMethodCall, FnArg, ImplItem, Item, Local, Pat,
    ReturnType, Signature, Stmt, Type,
};

use crate::edits::{Edits, begins_line, indentation, rest_of_line};
use crate::source::imports::Imports;
use crate::source::{Source, is_conditional};

/// Type that the operators are registered with.
const PROGRAM: &str = "lockstep_sdk::Program";

/// Last registration of an operator in a library.
pub(crate) struct Registration {
    /// Position of the dot before the name of the method.
    dot: usize,
    /// End of the call.
    end: usize,
    /// Path of the modules of the crate, for code at the call.
    pub(crate) root: &'static str,
    pub(crate) sdk: SdkNames,
}

/// Types of the SDK, as code at a call writes them.
#[derive(Debug)]
pub(crate) struct SdkNames {
    /// Type of an operator.
    pub(crate) operator: String,
    /// Type of an audience.
    pub(crate) audiences: String,
}

impl SdkNames {
    fn in_scope(imports: &Imports) -> Self {
        Self {
            operator: imports.written("lockstep_sdk::Operator"),
            audiences: imports.written("lockstep_sdk::Audience"),
        }
    }
}

impl Default for SdkNames {
    fn default() -> Self {
        Self::in_scope(&Imports::default())
    }
}

/// Registration with the place that it was found in.
struct Candidate {
    /// Path of its function: its modules, the type that it belongs to, and its name.
    function: String,
    /// Position of the expression or parameter that its program comes from.
    program: usize,
    registration: Registration,
}

impl Candidate {
    /// Returns true for a registration in a function of the name `program`.
    fn is_in_program(&self) -> bool {
        self.function.rsplit("::").next() == Some("program")
    }
}

/// Returns the last registration of an operator.
///
/// # Errors
///
/// No call registers one, or it cannot be said which one is the last; the error is what is missing.
pub(crate) fn registration(source: &Source<'_>) -> Result<Registration, String> {
    let mut found = Vec::new();
    collect(source, &source.file.items, "", &mut found);
    if found.iter().any(Candidate::is_in_program) {
        found.retain(Candidate::is_in_program);
    }
    let programs = found.iter().map(|found| (found.program, &found.function));
    let programs: BTreeMap<_, _> = programs.collect();
    if programs.len() > 1 {
        let places = programs.iter().map(|(position, function)| {
            let line = 1 + source.text[..*position].matches('\n').count();
            format!("`{function}` (line {line})")
        });
        let places = places.collect::<Vec<_>>().join(", ");
        return Err(format!(
            "one program that operators are registered with, or one in a function of the name `program`: there are {places}"
        ));
    }
    let found = found.into_iter().map(|found| found.registration);
    let last = found.max_by_key(|found| found.end);
    last.ok_or_else(|| {
        "a call `.operator(…)` of a `Program` outside conditions, loops and macros".to_owned()
    })
}

/// Collects the registrations of the functions of a module, whose path ends with `::` unless it is the crate.
fn collect(source: &Source<'_>, items: &[Item], module: &str, found: &mut Vec<Candidate>) {
    let imports = Imports::of_items(items);
    let functions = items.iter().filter_map(|item| match item {
        Item::Fn(item) if returns_program(&imports, &item.sig) => Some(item.sig.ident.to_string()),
        _ => None,
    });
    let functions: BTreeSet<_> = functions.collect();
    let mut search =
        |owner: &str, attributes: &[Attribute], signature: &Signature, block: &Block| {
            if is_conditional(attributes) {
                return;
            }
            let mut calls = Calls {
                source,
                imports: imports.with_statements(&block.stmts),
                functions: &functions,
                programs: parameters(source, &imports, signature),
                root: if module.is_empty() { "" } else { "crate::" },
                found: Vec::new(),
            };
            calls.visit_block(block);
            let function = format!("{module}{owner}{}", signature.ident);
            found.extend(
                calls
                    .found
                    .into_iter()
                    .map(|(program, registration)| Candidate {
                        function: function.clone(),
                        program,
                        registration,
                    }),
            );
        };
    for item in items {
        match item {
            Item::Fn(item) => search("", &item.attrs, &item.sig, &item.block),
            Item::Impl(block) if !is_conditional(&block.attrs) => {
                let owner = &source.text[source.range(block.self_ty.span())];
                for item in &block.items {
                    if let ImplItem::Fn(item) = item {
                        search(&format!("{owner}::"), &item.attrs, &item.sig, &item.block);
                    }
                }
            }
            _ => {}
        }
    }
    for item in items {
        if let Item::Mod(item) = item
            && let Some((_, items)) = &item.content
            && !is_conditional(&item.attrs)
        {
            collect(source, items, &format!("{module}{}::", item.ident), found);
        }
    }
}

fn is_program_type(imports: &Imports, of_type: &Type) -> bool {
    matches!(of_type, Type::Path(of_type) if is_program_path(imports, &of_type.path))
}

/// Returns true for the type. A crate may export it again, so that its name is enough.
fn is_program_path(imports: &Imports, path: &syn::Path) -> bool {
    imports.name(path, PROGRAM)
        || path
            .segments
            .last()
            .is_some_and(|name| name.ident == "Program")
}

fn returns_program(imports: &Imports, signature: &Signature) -> bool {
    matches!(&signature.output, ReturnType::Type(_, of_type) if is_program_type(imports, of_type))
}

/// Returns the names of the parameters that are programs, with their positions.
fn parameters(
    source: &Source<'_>,
    imports: &Imports,
    signature: &Signature,
) -> BTreeMap<String, usize> {
    let parameters = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) if is_program_type(imports, &input.ty) => {
            Some((variable(&input.pat)?, source.range(input.span()).start))
        }
        _ => None,
    });
    parameters.collect()
}

fn variable(pattern: &Pat) -> Option<String> {
    match pattern {
        Pat::Ident(pattern) => Some(pattern.ident.to_string()),
        Pat::Type(pattern) => variable(&pattern.pat),
        _ => None,
    }
}

/// Registrations in a function.
struct Calls<'a> {
    source: &'a Source<'a>,
    imports: Imports,
    /// Functions that return a program.
    functions: &'a BTreeSet<String>,
    /// Variables that contain a program, and the position that it comes from.
    programs: BTreeMap<String, usize>,
    root: &'static str,
    /// Registrations, each with the position that its program comes from.
    found: Vec<(usize, Registration)>,
}

impl Calls<'_> {
    /// Returns the position that the program comes from if the value of an expression is one: its methods return the program.
    fn program(&self, expression: &Expr) -> Option<usize> {
        match expression {
            Expr::MethodCall(call) => self.program(&call.receiver),
            Expr::Paren(inner) => self.program(&inner.expr),
            Expr::Try(inner) => self.program(&inner.expr),
            Expr::Await(inner) => self.program(&inner.base),
            Expr::Call(call) => {
                let start = self.source.range(call.span()).start;
                self.creates_program(&call.func).then_some(start)
            }
            Expr::Path(path) => {
                let name = path.path.get_ident()?;
                self.programs.get(&name.to_string()).copied()
            }
            _ => None,
        }
    }

    /// Notes that a variable has the value of an expression from here on.
    fn set(&mut self, variable: String, value: &Expr) {
        match self.program(value) {
            Some(program) => self.programs.insert(variable, program),
            None => self.programs.remove(&variable),
        };
    }

    /// Returns true for `Program::new` and for a function that returns a program.
    fn creates_program(&self, function: &Expr) -> bool {
        let Expr::Path(function) = function else {
            return false;
        };
        if let Some(name) = function.path.get_ident() {
            return self.functions.contains(&name.to_string());
        }
        let mut path = function.path.clone();
        path.segments.pop();
        path.segments.pop_punct();
        is_program_path(&self.imports, &path)
    }
}

impl<'a> Visit<'a> for Calls<'_> {
    // Every attribute of code in a function is at the start of a statement or an expression.
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !self.source.is_conditional_code(statement.span()) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if !self.source.is_conditional_code(expression.span()) {
            visit::visit_expr(self, expression);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        let registers = call.method == "operator" && call.args.len() == 1;
        let program = self.program(&call.receiver).filter(|_| registers);
        let Some(program) = program else {
            visit::visit_expr_method_call(self, call);
            return;
        };
        let registration = Registration {
            dot: self.source.range(call.dot_token.span()).start,
            end: self.source.range(call.span()).end,
            root: self.root,
            sdk: SdkNames::in_scope(&self.imports),
        };
        self.found.push((program, registration));
        self.visit_expr(&call.receiver);
    }

    fn visit_local(&mut self, local: &'a Local) {
        visit::visit_local(self, local);
        let value = local.init.as_ref().map(|init| &init.expr);
        if let (Some(name), Some(value)) = (variable(&local.pat), value) {
            self.set(name, value);
        }
    }

    fn visit_expr_assign(&mut self, assignment: &'a ExprAssign) {
        visit::visit_expr_assign(self, assignment);
        if let Expr::Path(left) = &*assignment.left
            && let Some(name) = left.path.get_ident()
        {
            self.set(name.to_string(), &assignment.right);
        }
    }

    // A call in these may run in some cases only, or more than once.
    fn visit_expr_if(&mut self, _: &'a syn::ExprIf) {}
    fn visit_expr_match(&mut self, _: &'a syn::ExprMatch) {}
    fn visit_expr_while(&mut self, _: &'a syn::ExprWhile) {}
    fn visit_expr_for_loop(&mut self, _: &'a syn::ExprForLoop) {}
    fn visit_expr_loop(&mut self, _: &'a syn::ExprLoop) {}
    fn visit_item(&mut self, _: &'a Item) {}
}

impl Registration {
    /// Adds a call after this one: in a line of its own if this one has one.
    pub(crate) fn add(&self, text: &str, call: &str, edits: &mut Edits<'_>) {
        if !begins_line(text, self.dot) {
            edits.insert(self.end, call);
            return;
        }
        let call = format!("\n{}{call}", indentation(text, self.dot));
        // A comment belongs to this call: the end of the statement before it moves to the new one.
        let rest = rest_of_line(text, self.end);
        let (punctuation, comment) = rest.split_at(rest.find("//").unwrap_or(rest.len()));
        let is_plain = |letter: char| matches!(letter, ';' | ',' | ')' | '}' | ' ' | '\t');
        if comment.is_empty() || !punctuation.chars().all(is_plain) {
            edits.insert(self.end, call);
            return;
        }
        let punctuation = punctuation.trim();
        edits.replace(
            self.end..self.end + rest.len(),
            format!(" {}{call}{punctuation}", comment.trim_end()),
        );
    }
}

#[cfg(test)]
mod tests;
