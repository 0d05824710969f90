//! Registration of operators in the library of a program: the calls `Program::operator`.

use std::collections::BTreeSet;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Expr, ExprMethodCall, FnArg, ImplItem, Item, Local, Pat, ReturnType,
    Signature, Type,
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
    /// Type of an operator, as code at the call writes it.
    pub(crate) operator_type: String,
}

/// Returns the last registration of an operator.
///
/// # Errors
///
/// No call registers one, or it cannot be said which one is the last; the error is what is missing.
pub(crate) fn registration(source: &Source<'_>) -> Result<Registration, &'static str> {
    let mut found = Vec::new();
    collect(source, &source.file.items, "", &mut found);
    if found.iter().any(|(function, _)| function == "program") {
        found.retain(|(function, _)| function == "program");
    }
    let functions: BTreeSet<_> = found.iter().map(|(function, _)| function.clone()).collect();
    if functions.len() > 1 {
        return Err("one function that registers the operators, or one with the name `program`");
    }
    let last = found.into_iter().max_by_key(|(_, found)| found.end);
    last.map(|(_, found)| found)
        .ok_or("a call `.operator(…)` of a `Program` outside conditions, loops and macros")
}

/// Collects the registrations of the functions of a module, each with the name of its function.
fn collect(
    source: &Source<'_>,
    items: &[Item],
    root: &'static str,
    found: &mut Vec<(String, Registration)>,
) {
    let imports = Imports::of_items(items);
    let functions = items.iter().filter_map(|item| match item {
        Item::Fn(item) if returns_program(&imports, &item.sig) => Some(item.sig.ident.to_string()),
        _ => None,
    });
    let functions: BTreeSet<_> = functions.collect();
    let mut search = |attributes: &[Attribute], signature: &Signature, block: &Block| {
        if is_conditional(attributes) {
            return;
        }
        let mut calls = Calls {
            source,
            imports: imports.with_statements(&block.stmts),
            functions: &functions,
            programs: parameters(&imports, signature),
            root,
            found: Vec::new(),
        };
        calls.visit_block(block);
        let name = signature.ident.to_string();
        found.extend(calls.found.into_iter().map(|found| (name.clone(), found)));
    };
    for item in items {
        match item {
            Item::Fn(item) => search(&item.attrs, &item.sig, &item.block),
            Item::Impl(item) if !is_conditional(&item.attrs) => {
                for item in &item.items {
                    if let ImplItem::Fn(item) = item {
                        search(&item.attrs, &item.sig, &item.block);
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
            collect(source, items, "crate::", found);
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

/// Returns the names of the parameters that are programs.
fn parameters(imports: &Imports, signature: &Signature) -> BTreeSet<String> {
    let parameters = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) if is_program_type(imports, &input.ty) => variable(&input.pat),
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
    /// Variables that contain a program.
    programs: BTreeSet<String>,
    root: &'static str,
    found: Vec<Registration>,
}

impl Calls<'_> {
    /// Returns true if the value of an expression is a program: its methods return the program.
    fn is_program(&self, expression: &Expr) -> bool {
        match expression {
            Expr::MethodCall(call) => self.is_program(&call.receiver),
            Expr::Paren(inner) => self.is_program(&inner.expr),
            Expr::Try(inner) => self.is_program(&inner.expr),
            Expr::Await(inner) => self.is_program(&inner.base),
            Expr::Call(call) => self.creates_program(&call.func),
            Expr::Path(path) => {
                let name = path.path.get_ident();
                name.is_some_and(|name| self.programs.contains(&name.to_string()))
            }
            _ => false,
        }
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
    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if is_conditional(&call.attrs) {
            return;
        }
        let registers = call.method == "operator" && call.args.len() == 1;
        if !registers || !self.is_program(&call.receiver) {
            visit::visit_expr_method_call(self, call);
            return;
        }
        self.found.push(Registration {
            dot: self.source.range(call.dot_token.span()).start,
            end: self.source.range(call.span()).end,
            root: self.root,
            operator_type: self.imports.written("lockstep_sdk::Operator"),
        });
        self.visit_expr(&call.receiver);
    }

    fn visit_local(&mut self, local: &'a Local) {
        if is_conditional(&local.attrs) {
            return;
        }
        visit::visit_local(self, local);
        let value = local.init.as_ref().map(|init| &init.expr);
        if let (Some(name), Some(value)) = (variable(&local.pat), value) {
            if self.is_program(value) {
                self.programs.insert(name);
            } else {
                self.programs.remove(&name);
            }
        }
    }

    fn visit_expr_assign(&mut self, assignment: &'a syn::ExprAssign) {
        if !is_conditional(&assignment.attrs) {
            visit::visit_expr_assign(self, assignment);
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
