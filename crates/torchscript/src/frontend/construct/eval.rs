//! Expressions.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::TypeKind;
use ruff_python_ast::{BoolOp, Comprehension, Expr, ExprCall, InterpolatedStringElement, Number, UnaryOp};

use super::exec::insert;
use super::globals::Binding;
use super::operators::compared;
use super::value::{ClassRef, Py};
use super::{MAX_DEPTH, Maker, Scope, ancestry, find_class};
use crate::frontend::Result;
use crate::frontend::annotation::dotted;
use crate::frontend::program::Global;
use crate::frontend::source::SourceFile;

impl Maker<'_, '_> {
    pub(super) fn expr(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Py> {
        self.step(&scope.file, expr)?;
        if self.depth >= MAX_DEPTH || self.program.stack.is_short() {
            return self.fail(&scope.file, "expressions and calls nest too deeply", expr);
        }
        self.depth += 1;
        let value = self.expr_inner(scope, expr);
        self.depth -= 1;
        let value = value?;
        self.charge(&scope.file, &value, expr)?;
        match self.globals.doubt(&value) {
            Some(doubt) => Err(Box::new(doubt.clone()).into()),
            None => Ok(value),
        }
    }

    fn expr_inner(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Py> {
        let file = Arc::clone(&scope.file);
        Ok(match expr {
            Expr::NoneLiteral(_) => Py::None,
            Expr::BooleanLiteral(literal) => Py::Bool(literal.value),
            Expr::StringLiteral(literal) => Py::str(literal.value.to_str()),
            Expr::NumberLiteral(literal) => match &literal.value {
                Number::Int(int) => match int.as_i64() {
                    Some(int) => Py::Int(int),
                    None => return self.beyond(&file, "an integer of more than 64 bits", expr),
                },
                Number::Float(float) => Py::Float(*float),
                Number::Complex { .. } => return self.beyond(&file, "a complex number", expr),
            },
            Expr::Name(name) => return self.name(scope, &name.id, expr),
            Expr::Attribute(attribute) => {
                let base = self.expr(scope, &attribute.value)?;
                return self.attribute(&file, base, &attribute.attr, expr);
            }
            Expr::Tuple(tuple) => Py::tuple(self.sequence(scope, &tuple.elts)?),
            Expr::List(list) => Py::list(self.sequence(scope, &list.elts)?),
            Expr::Dict(dict) => {
                let mut items = Vec::with_capacity(dict.items.len());
                for item in &dict.items {
                    let Some(key) = &item.key else {
                        return self.beyond(&file, "`**` in a dictionary", &item.value);
                    };
                    let key = self.expr(scope, key)?;
                    let value = self.expr(scope, &item.value)?;
                    insert(&mut items, key, value);
                }
                Py::Dict(Rc::new(RefCell::new(items)))
            }
            Expr::UnaryOp(op) => {
                let value = self.expr(scope, &op.operand)?;
                match (op.op, &value) {
                    (UnaryOp::Not, value) => Py::Bool(!value.truth()),
                    (UnaryOp::USub, Py::Int(i)) => Py::Int(i.wrapping_neg()),
                    (UnaryOp::USub, Py::Float(f)) => Py::Float(-f),
                    (UnaryOp::USub, Py::Tensor(t)) => match t.map(t.dtype, |x| -x) {
                        Some(t) => Py::Tensor(t),
                        None => return self.beyond(&file, "this operator", expr),
                    },
                    (UnaryOp::UAdd, _) => value,
                    (UnaryOp::Invert, Py::Int(i)) => Py::Int(!i),
                    _ => return self.beyond(&file, "this operator", expr),
                }
            }
            Expr::BinOp(op) => {
                let left = self.expr(scope, &op.left)?;
                let right = self.expr(scope, &op.right)?;
                return self.binary(&file, op.op, &left, &right, expr);
            }
            Expr::BoolOp(op) => {
                let mut last = Py::None;
                for value in &op.values {
                    last = self.expr(scope, value)?;
                    if last.truth() == (op.op == BoolOp::Or) {
                        break;
                    }
                }
                last
            }
            Expr::Compare(compare) => {
                let mut left = self.expr(scope, &compare.left)?;
                for (op, right) in compare.ops.iter().zip(&compare.comparators) {
                    let right = self.expr(scope, right)?;
                    match compared(*op, &left, &right) {
                        Some(true) => left = right,
                        Some(false) => return Ok(Py::Bool(false)),
                        None => return self.beyond(&file, "this comparison", expr),
                    }
                }
                Py::Bool(true)
            }
            Expr::If(ternary) => {
                let taken = self.expr(scope, &ternary.test)?.truth();
                return self.expr(scope, if taken { &ternary.body } else { &ternary.orelse });
            }
            Expr::Subscript(subscript) => {
                let container = self.expr(scope, &subscript.value)?;
                if let Py::Tensor(tensor) | Py::Parameter(tensor) = &container {
                    let picks = self.picks(scope, &subscript.slice)?;
                    let part = picks.and_then(|picks| tensor.part(&tensor.select(&picks)?));
                    return match part {
                        Some(part) => Ok(Py::Tensor(part)),
                        None => self.beyond(&file, "this element of a tensor", expr),
                    };
                }
                if let Expr::Slice(slice) = &*subscript.slice {
                    let mut bounds = [None; 3];
                    for (bound, part) in bounds.iter_mut().zip([&slice.lower, &slice.upper, &slice.step]) {
                        if let Some(part) = part {
                            *bound = self.expr(scope, part)?.as_int();
                        }
                    }
                    return self.slice(&file, &container, bounds, expr);
                }
                let index = self.expr(scope, &subscript.slice)?;
                return self.element(&file, &container, &index, expr);
            }
            Expr::ListComp(comprehension) => {
                let mut out = Vec::new();
                self.comprehend(scope, &comprehension.generators, &mut |this, scope| {
                    out.push(this.expr(scope, &comprehension.elt)?);
                    Ok(())
                })?;
                Py::list(out)
            }
            Expr::Generator(comprehension) => {
                let mut out = Vec::new();
                self.comprehend(scope, &comprehension.generators, &mut |this, scope| {
                    out.push(this.expr(scope, &comprehension.elt)?);
                    Ok(())
                })?;
                Py::list(out)
            }
            Expr::DictComp(comprehension) => {
                let mut out = Vec::new();
                let Some(key) = comprehension.key.as_deref() else {
                    return self.beyond(&file, "`**` in a dictionary", expr);
                };
                self.comprehend(scope, &comprehension.generators, &mut |this, scope| {
                    let key = this.expr(scope, key)?;
                    let value = this.expr(scope, &comprehension.value)?;
                    insert(&mut out, key, value);
                    Ok(())
                })?;
                Py::Dict(Rc::new(RefCell::new(out)))
            }
            Expr::FString(string) => {
                let mut text = String::new();
                for element in string.value.elements() {
                    match element {
                        InterpolatedStringElement::Literal(part) => text.push_str(&part.value),
                        InterpolatedStringElement::Interpolation(part) => {
                            text.push_str(&self.expr(scope, &part.expression)?.text());
                        }
                    }
                }
                Py::str(text)
            }
            Expr::Call(call) => return self.call(scope, call),
            other => return self.beyond(&file, "this expression", other),
        })
    }

    fn sequence(&mut self, scope: &mut Scope, items: &[Expr]) -> Result<Vec<Py>> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Expr::Starred(star) => out.extend(self.elements(scope, &star.value)?),
                item => out.push(self.expr(scope, item)?),
            }
        }
        Ok(out)
    }

    /// What a loop goes through.
    pub(super) fn elements(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Vec<Py>> {
        let value = self.expr(scope, expr)?;
        match value.items() {
            Some(items) => Ok(items),
            None => self.beyond(&scope.file, format!("going through a {}", value.type_name()), expr),
        }
    }

    fn comprehend(
        &mut self,
        scope: &mut Scope,
        generators: &[Comprehension],
        work: &mut dyn FnMut(&mut Self, &mut Scope) -> Result<()>,
    ) -> Result<()> {
        let Some((generator, rest)) = generators.split_first() else {
            return work(self, scope);
        };
        let items = self.elements(scope, &generator.iter)?;
        // The variables of a comprehension are its own.
        let mut targets = BTreeSet::new();
        target_names(&generator.target, &mut targets);
        let before = self.hide(scope, targets);
        let done = self.comprehend_items(scope, generator, items, rest, work);
        self.restore(scope, before);
        done
    }

    fn comprehend_items(
        &mut self,
        scope: &mut Scope,
        generator: &Comprehension,
        items: Vec<Py>,
        rest: &[Comprehension],
        work: &mut dyn FnMut(&mut Self, &mut Scope) -> Result<()>,
    ) -> Result<()> {
        'items: for item in items {
            self.assign(scope, Some(&generator.target), item, generator)?;
            for test in &generator.ifs {
                if !self.expr(scope, test)?.truth() {
                    continue 'items;
                }
            }
            self.comprehend(scope, rest, work)?;
        }
        Ok(())
    }

    fn name(&mut self, scope: &mut Scope, name: &str, node: &Expr) -> Result<Py> {
        if let Some(value) = scope.variables.get(name) {
            return Ok(value.clone());
        }
        let file = Arc::clone(&scope.file);
        if file.is_by_hand() {
            match self.globals.names.get(name).map(|binding| &binding.value) {
                Some(Ok(value)) => return Ok(value.clone()),
                Some(Err(error)) => return Err(error.clone().into()),
                None => {}
            }
        } else if let Some(value) = self.library_name(&file, name)? {
            return Ok(value);
        }
        if let Some(path) = file.imported(name).map(str::to_owned) {
            return match find_class(self.program, &file, &path)? {
                Some(class) => Ok(Py::Class(class)),
                None => Ok(Py::Path(path.into())),
            };
        }
        if super::builtins::is_known(name) {
            return Ok(Py::Path(name.into()));
        }
        self.fail(&file, format!("undefined value {name}"), node)
    }

    /// What a file of the library calls `name`.
    fn library_name(&mut self, file: &Arc<SourceFile>, name: &str) -> Result<Option<Py>> {
        if let Some(function) = self.function(file, name) {
            return Ok(Some(Py::Function(function)));
        }
        if let Some(class) = find_class(self.program, file, name)? {
            return Ok(Some(Py::Class(class)));
        }
        let qualified = format!("{}.{name}", file.qualifier.unwrap_or_default());
        if let Some(value) = self.library_values.get(&qualified) {
            return Ok(Some(value.clone()));
        }
        let value = file.body().iter().rev().find_map(|statement| match statement {
            ruff_python_ast::Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Name(target)] if target.id.as_str() == name => Some(&*assign.value),
                _ => None,
            },
            _ => None,
        });
        let Some(value) = value else { return Ok(None) };
        let value = self.expr(&mut Scope::new(file), value)?;
        self.library_values.insert(qualified, value.clone());
        Ok(Some(value))
    }

    /// Takes variables out of the way, and gives the values that they had.
    fn hide(&mut self, scope: &mut Scope, names: BTreeSet<String>) -> Vec<(String, Option<Binding>, Option<Py>)> {
        let hidden = names.into_iter().map(|name| {
            let global = scope.is_top.then(|| self.globals.names.remove(&name)).flatten();
            let local = scope.variables.remove(&name);
            (name, global, local)
        });
        hidden.collect()
    }

    fn restore(&mut self, scope: &mut Scope, hidden: Vec<(String, Option<Binding>, Option<Py>)>) {
        for (name, global, local) in hidden {
            scope.variables.remove(&name);
            if scope.is_top {
                self.globals.names.remove(&name);
            }
            scope.variables.extend(local.map(|value| (name.clone(), value)));
            self.globals.names.extend(global.map(|binding| (name, binding)));
        }
    }

    fn call(&mut self, scope: &mut Scope, call: &ExprCall) -> Result<Py> {
        let file = Arc::clone(&scope.file);
        if let Expr::Name(name) = &*call.func
            && name.id.as_str() == "super"
        {
            return match (&scope.this, &scope.class) {
                (Some(Py::Object(object)), Some(class)) => Ok(Py::Super(Rc::clone(object), (**class).clone())),
                _ => self.beyond(&file, "`super()` here", call),
            };
        }
        let callee = self.expr(scope, &call.func)?;
        let positional = self.sequence(scope, &call.arguments.args)?;
        let mut keywords = Vec::with_capacity(call.arguments.keywords.len());
        for keyword in &call.arguments.keywords {
            let value = self.expr(scope, &keyword.value)?;
            match (&keyword.arg, &value) {
                (Some(name), _) => keywords.push((name.to_string(), value)),
                (None, Py::Dict(items)) => {
                    keywords.extend(items.borrow().iter().map(|(key, value)| (key.text(), value.clone())));
                }
                _ => return self.beyond(&file, "`**` of this", keyword),
            }
        }
        self.call_value(&file, callee, positional, keywords, call)
    }

    pub(super) fn call_value(
        &mut self,
        file: &Arc<SourceFile>,
        callee: Py,
        positional: Vec<Py>,
        keywords: Vec<(String, Py)>,
        call: &ExprCall,
    ) -> Result<Py> {
        match callee {
            Py::Function(function) => self.call_function(&function, None, positional, keywords, call),
            Py::Class(class) => self.instantiate(&class, positional, keywords, file, call),
            Py::Path(path) => self.call_path(file, &path, &positional, &keywords, call),
            Py::Method(object, name) => match &*object {
                Py::Super(object, class) => {
                    let chain = ancestry(self.program, class)?.unwrap_or_default();
                    match chain.iter().skip(1).find_map(|class| class.method(&name)) {
                        Some(method) => {
                            self.call_function(&method, Some(Py::Object(Rc::clone(object))), positional, keywords, call)
                        }
                        // `nn.Module` itself.
                        None => self.module_method(file, object, &name, &positional, &keywords, call),
                    }
                }
                Py::Object(object) => {
                    let class = object.borrow().class.clone();
                    let chain = ancestry(self.program, &class)?.unwrap_or_default();
                    match chain.iter().find_map(|class| class.method(&name)) {
                        Some(method) => {
                            self.call_function(&method, Some(Py::Object(Rc::clone(object))), positional, keywords, call)
                        }
                        None => self.module_method(file, object, &name, &positional, &keywords, call),
                    }
                }
                other => self.value_method(file, other, &name, &positional, &keywords, call),
            },
            other => self.beyond(file, format!("calling a {}", other.type_name()), call),
        }
    }

    fn attribute(&mut self, file: &Arc<SourceFile>, base: Py, name: &str, node: &Expr) -> Result<Py> {
        match base {
            Py::Path(path) => {
                let path = format!("{path}.{name}");
                Ok(match find_class(self.program, file, &path)? {
                    Some(class) => Py::Class(class),
                    None => super::builtins::constant(&path).unwrap_or(Py::Path(path.into())),
                })
            }
            Py::Object(object) => {
                let known = object.borrow().attributes.get(name).map(|a| a.value.clone());
                if let Some(known) = known {
                    let is_copied = object.borrow().scripted.is_some();
                    return Ok(if is_copied {
                        super::scripted::detached(&known)
                    } else {
                        known
                    });
                }
                let class = object.borrow().class.clone();
                for class in ancestry(self.program, &class)?.unwrap_or_default() {
                    if let Some(known) = self.class_value(&class, name) {
                        return Ok(known?);
                    }
                    if class.method(name).is_some() {
                        break;
                    }
                }
                Ok(Py::Method(Box::new(Py::Object(object)), name.into()))
            }
            Py::Tensor(tensor) | Py::Parameter(tensor) if name == "shape" => {
                Ok(Py::tuple(tensor.sizes.iter().map(|&n| Py::Int(n)).collect()))
            }
            Py::Tensor(tensor) | Py::Parameter(tensor) if name == "data" => Ok(Py::Tensor(tensor)),
            // What `load_state_dict` gives.
            Py::Tuple(keys) if keys.len() == 2 && matches!(name, "missing_keys" | "unexpected_keys") => {
                let keys = keys.get(usize::from(name == "unexpected_keys"));
                Ok(keys.cloned().unwrap_or(Py::None))
            }
            Py::Class(class) => match class_constant(&class, name) {
                Some(_) if let Some(member) = self.member(&class, name)? => Ok(member),
                Some(value) => match self.class_value(&class, name) {
                    Some(known) => Ok(known?),
                    None => {
                        let value = value.clone();
                        self.expr(&mut Scope::new(&class.file), &value)
                    }
                },
                None => match class.method(name) {
                    Some(method) => Ok(Py::Function(method)),
                    None => self.beyond(file, format!("`{name}` of a class"), node),
                },
            },
            other => Ok(Py::Method(Box::new(other), name.into())),
        }
    }

    /// The member `name` of an enumeration, if `class` is one.
    fn member(&mut self, class: &ClassRef, name: &str) -> Result<Option<Py>> {
        let is_enum = class.def().is_some_and(|def| {
            let mut bases = def.bases().iter().filter_map(dotted);
            bases.any(|base| base.rsplit('.').next().is_some_and(|base| base.ends_with("Enum")))
        });
        if !is_enum {
            return Ok(None);
        }
        let Some(Global::Type(ty)) = self.program.global(&class.qualified)? else {
            return Ok(None);
        };
        let TypeKind::Enum(class) = self.program.ctx.type_kind(ty) else {
            return Ok(None);
        };
        let name = self.program.ctx.symbol(name);
        let member = self
            .program
            .unit
            .class(class)
            .and_then(|class| class.constants.get(&name));
        Ok(member.map(|member| Py::Member(ty, Box::new(member.clone()))))
    }
}

/// The names that a target of an assignment sets.
fn target_names(target: &Expr, names: &mut BTreeSet<String>) {
    match target {
        Expr::Name(name) => {
            names.insert(name.id.to_string());
        }
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|item| target_names(item, names)),
        Expr::List(list) => list.elts.iter().for_each(|item| target_names(item, names)),
        Expr::Starred(starred) => target_names(&starred.value, names),
        _ => {}
    }
}

/// The value that the body of a class gives a name.
fn class_constant<'c>(class: &'c ClassRef, name: &str) -> Option<&'c Expr> {
    class.def()?.body.iter().find_map(|member| match member {
        ruff_python_ast::Stmt::Assign(assign) => match assign.targets.as_slice() {
            [Expr::Name(target)] if target.id.as_str() == name => Some(&*assign.value),
            _ => None,
        },
        ruff_python_ast::Stmt::AnnAssign(assign) => match &*assign.target {
            Expr::Name(target) if target.id.as_str() == name => assign.value.as_deref(),
            _ => None,
        },
        _ => None,
    })
}
