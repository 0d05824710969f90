//! Names and jumps of a program, which Lua resolves while it compiles the program: local variables, labels, `break` and
//! `...`.
//!
//! <https://www.lua.org/source/5.4/lparser.c.html>

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use full_moon::ast::{
    Assignment, Ast, Block, Call, Expression, Field, FunctionArgs, FunctionBody,
    FunctionDeclaration, GenericFor, If, Index, LastStmt, LocalAssignment, NumericFor, Parameter,
    Prefix, Repeat, Stmt, Suffix, TableConstructor, Var,
};
use full_moon::tokenizer::{Position, Symbol, TokenReference, TokenType};

use crate::start_up::lua::mistake::Mistake;

/// Maximum number of local variables of a function.
const MAX_LOCALS: usize = 200;

/// Variables of a loop that programs do not see: of `for` with numbers, and with an iterator.
const HIDDEN: (usize, usize) = (3, 4);

/// Name that no variable can have.
const NO_NAME: &str = "(for state)";

/// Label at the end of a loop.
const BREAK: &str = "break";

/// Returns the first mistake of a program. The calls at the positions of `breaks` stand for `break`.
pub(crate) fn mistake(program: &Ast, breaks: BTreeSet<usize>) -> Option<Mistake> {
    let mut compiler = Compiler {
        breaks,
        functions: Vec::new(),
    };
    // The whole program is a function with any arguments.
    compiler.functions.push(Function {
        is_variadic: true,
        ..Function::default()
    });
    compiler.function_block(program.nodes()).err()
}

type Compiled = Result<(), Mistake>;

struct Compiler {
    breaks: BTreeSet<usize>,
    /// Functions that contain each other, the innermost last.
    functions: Vec<Function>,
}

#[derive(Default)]
struct Function {
    is_variadic: bool,
    /// Variables that are visible.
    locals: Vec<Local>,
    /// Labels that are visible.
    labels: Vec<Label>,
    /// Jumps to labels that may follow.
    jumps: Vec<Jump>,
}

struct Local {
    name: String,
    is_constant: bool,
}

struct Label {
    name: String,
}

struct Jump {
    name: String,
    place: Position,
    /// Number of variables that are visible in the block with the jump.
    locals: usize,
}

/// Block that is compiled: what was visible before it.
struct Outside {
    locals: usize,
    labels: usize,
    jumps: usize,
    is_loop: bool,
}

impl Compiler {
    fn current(&mut self) -> &mut Function {
        self.functions
            .last_mut()
            .expect("the program is a function")
    }

    fn enter(&mut self, is_loop: bool) -> Outside {
        let function = self.current();
        Outside {
            locals: function.locals.len(),
            labels: function.labels.len(),
            jumps: function.jumps.len(),
            is_loop,
        }
    }

    /// Ends a block. Its jumps go on to the labels of the block around it.
    fn leave(&mut self, outside: &Outside) {
        let function = self.current();
        function.locals.truncate(outside.locals);
        function.labels.truncate(outside.labels);
        let mut index = 0;
        function.jumps.retain_mut(|jump| {
            index += 1;
            let is_inside = index > outside.jumps;
            if is_inside {
                jump.locals = jump.locals.min(outside.locals);
            }
            !(is_inside && outside.is_loop && jump.name == BREAK)
        });
    }

    /// Compiles the block of a function, and its parameters before it.
    fn function_block(&mut self, block: &Block) -> Compiled {
        self.block(block, false)?;
        match self.current().jumps.first() {
            None => Ok(()),
            Some(jump) if jump.name == BREAK => {
                Err(Mistake::at(jump.place, "`break` is outside a loop"))
            }
            Some(jump) => Err(Mistake::at(
                jump.place,
                format!("`goto {}` has no visible label", jump.name),
            )),
        }
    }

    fn block(&mut self, block: &Block, is_loop: bool) -> Compiled {
        let outside = self.enter(is_loop);
        self.statements(block, &outside, true)?;
        self.leave(&outside);
        Ok(())
    }

    /// Compiles the statements of a block. A label at the end of a block is behind the scope of its variables, unless a
    /// condition follows it.
    fn statements(&mut self, block: &Block, outside: &Outside, is_end: bool) -> Compiled {
        let statements: Vec<&Stmt> = block.stmts().collect();
        let after_labels = statements
            .iter()
            .rposition(|statement| !matches!(statement, Stmt::Label(_)))
            .map_or(0, |last| last + 1);
        for (index, statement) in statements.iter().enumerate() {
            if let Stmt::Label(label) = statement {
                let is_last = is_end && block.last_stmt().is_none() && index >= after_labels;
                self.label(label.name(), is_last.then_some(outside.locals), outside)?;
            } else {
                self.statement(statement)?;
            }
        }
        match block.last_stmt() {
            Some(LastStmt::Break(token)) => {
                self.jump(BREAK, token);
                Ok(())
            }
            Some(LastStmt::Return(values)) => self.expressions(values.returns().iter()),
            _ => Ok(()),
        }
    }

    fn statement(&mut self, statement: &Stmt) -> Compiled {
        match statement {
            Stmt::Assignment(assignment) => self.assignment(assignment),
            Stmt::Do(block) => self.block(block.block(), false),
            Stmt::FunctionCall(call) => {
                if let Prefix::Name(token) = call.prefix()
                    && self.breaks.contains(&token.start_position().bytes())
                {
                    self.jump(BREAK, token);
                }
                self.suffixed(call.prefix(), call.suffixes())
            }
            Stmt::FunctionDeclaration(function) => self.declaration(function),
            Stmt::GenericFor(statement) => self.generic_for(statement),
            Stmt::If(statement) => self.conditional(statement),
            Stmt::LocalAssignment(assignment) => self.local(assignment),
            Stmt::LocalFunction(function) => {
                self.declare(function.name(), false)?;
                self.body(function.body(), false)
            }
            Stmt::NumericFor(statement) => self.numeric_for(statement),
            Stmt::Repeat(statement) => self.repeat(statement),
            Stmt::While(statement) => {
                self.expression(statement.condition())?;
                self.block(statement.block(), true)
            }
            Stmt::Goto(goto) => {
                let token = goto.label_name();
                let name = text(token);
                let is_behind = self.current().labels.iter().any(|label| label.name == name);
                if !is_behind {
                    self.jump(name, token);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn jump(&mut self, name: &str, token: &TokenReference) {
        let function = self.current();
        function.jumps.push(Jump {
            name: name.to_owned(),
            place: token.start_position(),
            locals: function.locals.len(),
        });
    }

    /// Declares a label. `locals` is the number of variables that are visible behind it, if it is not the present one.
    fn label(
        &mut self,
        token: &TokenReference,
        locals: Option<usize>,
        outside: &Outside,
    ) -> Compiled {
        let name = text(token);
        let function = self.current();
        if function.labels.iter().any(|label| label.name == name) {
            let message = format!("the label `{name}` is defined twice");
            return Err(Mistake::at(token.start_position(), message));
        }
        let visible = locals.unwrap_or(function.locals.len());
        let mut index = 0;
        let mut into_scope = None;
        function.jumps.retain(|jump| {
            index += 1;
            let is_here = index > outside.jumps && jump.name == name;
            if is_here && jump.locals < visible {
                into_scope.get_or_insert(jump.place);
            }
            !is_here
        });
        if let Some(place) = into_scope {
            let message = format!("`goto {name}` jumps into the scope of a local variable");
            return Err(Mistake::at(place, message));
        }
        function.labels.push(Label {
            name: name.to_owned(),
        });
        Ok(())
    }

    fn declare(&mut self, token: &TokenReference, is_constant: bool) -> Compiled {
        self.declare_name(text(token), is_constant, token.start_position())
    }

    fn declare_name(&mut self, name: &str, is_constant: bool, place: Position) -> Compiled {
        let function = self.current();
        if function.locals.len() >= MAX_LOCALS {
            let message = format!("a function has more than {MAX_LOCALS} local variables");
            return Err(Mistake::at(place, message));
        }
        function.locals.push(Local {
            name: name.to_owned(),
            is_constant,
        });
        Ok(())
    }

    /// Validates that a name that gets a value is not the one of a constant.
    fn assigned(&self, token: &TokenReference) -> Compiled {
        let name = text(token);
        let visible = self.functions.iter().rev();
        let mut visible = visible.flat_map(|function| function.locals.iter().rev());
        if visible
            .find(|local| local.name == name)
            .is_some_and(|local| local.is_constant)
        {
            let message = format!("the constant `{name}` cannot be assigned");
            return Err(Mistake::at(token.start_position(), message));
        }
        Ok(())
    }

    fn assignment(&mut self, assignment: &Assignment) -> Compiled {
        for variable in assignment.variables() {
            match variable {
                Var::Name(token) => self.assigned(token)?,
                variable => self.variable(variable)?,
            }
        }
        self.expressions(assignment.expressions().iter())
    }

    fn local(&mut self, assignment: &LocalAssignment) -> Compiled {
        self.expressions(assignment.expressions().iter())?;
        let mut has_closed = false;
        let attributes: Vec<_> = assignment.attributes().collect();
        for (index, name) in assignment.names().iter().enumerate() {
            let attribute = attributes.get(index).copied().flatten();
            let attribute = attribute.map(|attribute| attribute.name());
            let is_constant = match attribute.map(text) {
                None => false,
                Some("const") => true,
                Some("close") if !has_closed => {
                    has_closed = true;
                    true
                }
                Some("close") => {
                    let message = "only one variable of a list can have `<close>`";
                    return Err(Mistake::at(name.start_position(), message));
                }
                Some(other) => {
                    let message = format!("the attribute `{other}` is unknown");
                    return Err(Mistake::at(name.start_position(), message));
                }
            };
            self.declare(name, is_constant)?;
        }
        Ok(())
    }

    fn declaration(&mut self, function: &FunctionDeclaration) -> Compiled {
        let name = function.name();
        let is_method = name.method_name().is_some();
        self.body(function.body(), is_method)?;
        let mut names = name.names().iter();
        match (names.next(), names.next()) {
            (Some(only), None) if !is_method => self.assigned(only),
            _ => Ok(()),
        }
    }

    fn body(&mut self, body: &FunctionBody, is_method: bool) -> Compiled {
        let parameters = body.parameters();
        let is_variadic = parameters
            .iter()
            .any(|parameter| matches!(parameter, Parameter::Ellipsis(_)));
        self.functions.push(Function {
            is_variadic,
            ..Function::default()
        });
        if is_method {
            let place = body.parameters_parentheses().tokens().0.start_position();
            self.declare_name("self", false, place)?;
        }
        for parameter in parameters {
            if let Parameter::Name(token) = parameter {
                self.declare(token, false)?;
            }
        }
        self.function_block(body.block())?;
        self.functions.pop();
        Ok(())
    }

    fn conditional(&mut self, statement: &If) -> Compiled {
        self.expression(statement.condition())?;
        self.block(statement.block(), false)?;
        for other in statement.else_if().into_iter().flatten() {
            self.expression(other.condition())?;
            self.block(other.block(), false)?;
        }
        match statement.else_block() {
            Some(block) => self.block(block, false),
            None => Ok(()),
        }
    }

    fn numeric_for(&mut self, statement: &NumericFor) -> Compiled {
        let bounds = [statement.start(), statement.end()];
        self.expressions(bounds.into_iter().chain(statement.step()))?;
        let names = [statement.index_variable()];
        self.for_block(HIDDEN.0, &names, statement.block())
    }

    fn generic_for(&mut self, statement: &GenericFor) -> Compiled {
        self.expressions(statement.expressions().iter())?;
        let names: Vec<_> = statement.names().iter().collect();
        self.for_block(HIDDEN.1, &names, statement.block())
    }

    fn for_block(&mut self, hidden: usize, names: &[&TokenReference], block: &Block) -> Compiled {
        let outside = self.enter(true);
        for _ in 0..hidden {
            let place = names.first().map(|name| name.start_position());
            self.declare_name(NO_NAME, false, place.unwrap_or_default())?;
        }
        let inside = self.enter(false);
        for name in names {
            self.declare(name, false)?;
        }
        self.block(block, false)?;
        self.leave(&inside);
        self.leave(&outside);
        Ok(())
    }

    /// Compiles a loop whose condition sees the variables of its block.
    fn repeat(&mut self, statement: &Repeat) -> Compiled {
        let outside = self.enter(true);
        let inside = self.enter(false);
        self.statements(statement.block(), &inside, false)?;
        self.expression(statement.until())?;
        self.leave(&inside);
        self.leave(&outside);
        Ok(())
    }

    fn expressions<'a>(&mut self, expressions: impl Iterator<Item = &'a Expression>) -> Compiled {
        for expression in expressions {
            self.expression(expression)?;
        }
        Ok(())
    }

    fn expression(&mut self, expression: &Expression) -> Compiled {
        match expression {
            Expression::BinaryOperator { lhs, rhs, .. } => {
                self.expression(lhs)?;
                self.expression(rhs)
            }
            Expression::Parentheses { expression, .. }
            | Expression::UnaryOperator { expression, .. } => self.expression(expression),
            Expression::Function(function) => self.body(function.body(), false),
            Expression::FunctionCall(call) => self.suffixed(call.prefix(), call.suffixes()),
            Expression::TableConstructor(table) => self.table(table),
            Expression::Symbol(token) => {
                if is_ellipsis(token) && !self.current().is_variadic {
                    let message = "`...` is outside a function with any arguments";
                    return Err(Mistake::at(token.start_position(), message));
                }
                Ok(())
            }
            Expression::Var(variable) => self.variable(variable),
            _ => Ok(()),
        }
    }

    fn variable(&mut self, variable: &Var) -> Compiled {
        match variable {
            Var::Expression(suffixed) => self.suffixed(suffixed.prefix(), suffixed.suffixes()),
            _ => Ok(()),
        }
    }

    fn suffixed<'a>(
        &mut self,
        prefix: &Prefix,
        suffixes: impl Iterator<Item = &'a Suffix>,
    ) -> Compiled {
        if let Prefix::Expression(expression) = prefix {
            self.expression(expression)?;
        }
        for suffix in suffixes {
            match suffix {
                Suffix::Call(Call::AnonymousCall(arguments)) => self.arguments(arguments)?,
                Suffix::Call(Call::MethodCall(call)) => self.arguments(call.args())?,
                Suffix::Index(Index::Brackets { expression, .. }) => self.expression(expression)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn arguments(&mut self, arguments: &FunctionArgs) -> Compiled {
        match arguments {
            FunctionArgs::Parentheses { arguments, .. } => self.expressions(arguments.iter()),
            FunctionArgs::TableConstructor(table) => self.table(table),
            _ => Ok(()),
        }
    }

    fn table(&mut self, table: &TableConstructor) -> Compiled {
        for field in table.fields() {
            match field {
                Field::ExpressionKey { key, value, .. } => {
                    self.expression(key)?;
                    self.expression(value)?;
                }
                Field::NameKey { value, .. } => self.expression(value)?,
                Field::NoKey(value) => self.expression(value)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns a name as it is written.
fn text(token: &TokenReference) -> &str {
    match token.token().token_type() {
        TokenType::Identifier { identifier } => identifier.as_str(),
        _ => "",
    }
}

fn is_ellipsis(token: &TokenReference) -> bool {
    matches!(token.token().token_type(), TokenType::Symbol { symbol } if *symbol == Symbol::Ellipsis)
}
