//! Evaluation of expressions.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::DType;
use num_complex::Complex64;
use ruff_python_ast::{
    BoolOp, Comprehension, ConversionFlag, Expr, ExprCall, InterpolatedStringElement, Number, UnaryOp,
};

use super::arguments::Arguments;
use super::attributes::Member;
use super::dtypes::wrapped;
use super::globals::Binding;
use super::maker::{MAX_DEPTH, Maker, Scope};
use super::sets::set_of;
use super::text::converted;
use super::value::{Py, insert, iterator};
use crate::error::Result;
use crate::names::find_class;
use crate::source::SourceFile;

impl Maker<'_> {
    pub(super) fn expr(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Py> {
        self.step(&scope.file, expr)?;
        if self.depth >= MAX_DEPTH || self.names.definitions().stack.is_short() {
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
                Number::Complex { real, imag } => Py::Complex(Complex64::new(*real, *imag)),
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
                Py::dict(items)
            }
            Expr::Set(set) => {
                let items = self.sequence(scope, &set.elts)?;
                match set_of(items, false) {
                    Some(set) => set,
                    None => return self.beyond(&file, "this set", expr),
                }
            }
            Expr::SetComp(comprehension) => {
                let mut out = Vec::new();
                self.comprehend(scope, &comprehension.generators, &mut |this, scope| {
                    out.push(this.expr(scope, &comprehension.elt)?);
                    Ok(())
                })?;
                match set_of(out, false) {
                    Some(set) => set,
                    None => return self.beyond(&file, "this set", expr),
                }
            }
            Expr::Lambda(_) if !scope.is_top && !scope.is_class && file.rules.is_source() => Py::Opaque("function"),
            Expr::EllipsisLiteral(_) => Py::Opaque("ellipsis"),
            Expr::UnaryOp(op) => {
                let value = self.expr(scope, &op.operand)?;
                let found = match (op.op, &value) {
                    (UnaryOp::Not, value) => Some(Py::Bool(!self.truth(&file, value, expr)?)),
                    (UnaryOp::USub, Py::Int(_) | Py::Bool(_)) => value.as_int().and_then(i64::checked_neg).map(Py::Int),
                    (UnaryOp::USub, Py::Float(f)) => Some(Py::Float(-f)),
                    (UnaryOp::USub, Py::Complex(number)) => Some(Py::Complex(-number)),
                    (UnaryOp::USub, Py::Tensor(t) | Py::Parameter(t)) if t.dtype().is_complex() => {
                        t.map_complex(|x| -x).map(Py::Tensor)
                    }
                    (UnaryOp::USub, Py::Tensor(t) | Py::Parameter(t)) if t.dtype() != DType::Bool => {
                        t.map(t.dtype(), |x| wrapped(t.dtype(), -x)).map(Py::Tensor)
                    }
                    (UnaryOp::UAdd, Py::Int(_) | Py::Float(_)) => Some(value),
                    (UnaryOp::Invert, Py::Int(i)) => Some(Py::Int(!i)),
                    (UnaryOp::Invert, Py::Tensor(t)) if t.dtype() == DType::Bool => {
                        t.map(DType::Bool, |x| 1.0 - x).map(Py::Tensor)
                    }
                    (UnaryOp::Invert, Py::Tensor(t)) if t.dtype().is_integral() => {
                        t.map(t.dtype(), |x| wrapped(t.dtype(), -x - 1.0)).map(Py::Tensor)
                    }
                    _ => None,
                };
                match found {
                    Some(found) => found,
                    None => return self.beyond(&file, "this operator", expr),
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
                    // The last operand is the result, whether it is true or not.
                    let is_last = op.values.last().is_some_and(|other| std::ptr::eq(other, value));
                    if is_last || self.truth(&file, &last, value)? == (op.op == BoolOp::Or) {
                        break;
                    }
                }
                last
            }
            Expr::Compare(compare) => {
                let mut left = self.expr(scope, &compare.left)?;
                let mut result = Py::Bool(true);
                for (number, (op, right)) in compare.ops.iter().zip(&compare.comparators).enumerate() {
                    if number > 0 && !self.truth(&file, &result, expr)? {
                        break;
                    }
                    let right = self.expr(scope, right)?;
                    result = self.comparison(&file, *op, &left, &right, expr)?;
                    left = right;
                }
                result
            }
            Expr::If(ternary) => {
                let taken = self.test(scope, &ternary.test)?;
                return self.expr(scope, if taken { &ternary.body } else { &ternary.orelse });
            }
            Expr::Subscript(subscript) => {
                let container = self.expr(scope, &subscript.value)?;
                if let Py::Tensor(tensor) | Py::Parameter(tensor) = &container {
                    let picks = self.picks(scope, &subscript.slice)?;
                    let part = picks.and_then(|picks| tensor.select(&picks));
                    return match part {
                        Some(part) => Ok(Py::Tensor(part)),
                        None => self.beyond(&file, "this element of a tensor", expr),
                    };
                }
                if let Expr::Slice(slice) = &*subscript.slice {
                    let mut bounds = [None; 3];
                    for (bound, part) in bounds.iter_mut().zip([&slice.lower, &slice.upper, &slice.step]) {
                        if let Some(part) = part {
                            *bound = match self.expr(scope, part)? {
                                Py::None => None,
                                Py::Int(at) => Some(at),
                                _ => return self.beyond(&file, "this slice", expr),
                            };
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
                iterator(out)
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
                Py::dict(out)
            }
            Expr::FString(string) => {
                let mut text = String::new();
                for element in string.value.elements() {
                    match element {
                        InterpolatedStringElement::Literal(part) => text.push_str(&part.value),
                        InterpolatedStringElement::Interpolation(part) => {
                            let value = self.expr(scope, &part.expression)?;
                            let mut spec = String::new();
                            for element in part.format_spec.iter().flat_map(|spec| spec.elements.iter()) {
                                match element {
                                    InterpolatedStringElement::Literal(part) => spec.push_str(&part.value),
                                    InterpolatedStringElement::Interpolation(part) => {
                                        let value = self.expr(scope, &part.expression)?;
                                        spec.push_str(&value.text().unwrap_or_default());
                                    }
                                }
                            }
                            let conversion = match part.conversion {
                                ConversionFlag::None => "",
                                ConversionFlag::Str => "s",
                                ConversionFlag::Repr => "r",
                                ConversionFlag::Ascii => "a",
                            };
                            let value = converted(&value, conversion).and_then(|value| value.formatted(&spec));
                            match value.filter(|_| part.debug_text.is_none()) {
                                Some(piece) => text.push_str(&piece),
                                None => return self.beyond(&file, "the text of this value", &*part.expression),
                            }
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

    /// Returns the items over which a loop over `expr` iterates.
    pub(super) fn elements(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Vec<Py>> {
        let value = self.expr(scope, expr)?;
        match self.items(&value) {
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
        if scope.is_class {
            // In a class body, only the first iterable of a comprehension is evaluated with the variables of the class.
            let mut inner = Scope::new(&scope.file);
            return self.comprehend_items(&mut inner, generator, items, rest, work);
        }
        // The variables of a comprehension are local to it.
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
                if !self.test(scope, test)? {
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
        if file.rules.is_source() && self.is_local(scope, name) {
            let message = format!("cannot access local variable '{name}' where it is not associated with a value");
            return self.raise(&file, message, node);
        }
        if file.rules.is_source() {
            match self.globals.names.get(name).map(|binding| &binding.value) {
                Some(Ok(value)) => return Ok(value.clone()),
                Some(Err(error)) => return Err(error.clone().into()),
                None => {}
            }
        } else if let Some(value) = self.library_name(&file, name)? {
            return Ok(value);
        }
        if let Some(path) = file.imported(name).map(str::to_owned) {
            return match find_class(self.names, &file, &path)? {
                Some(class) => Ok(Py::Class(class)),
                None => Ok(super::known::constant(&path).unwrap_or(Py::Path(path.into()))),
            };
        }
        if super::known::is_known(name) {
            return Ok(Py::Path(name.into()));
        }
        self.fail(&file, format!("undefined value {name}"), node)
    }

    /// Returns the value of the global name `name` in a file of the library.
    fn library_name(&mut self, file: &Arc<SourceFile>, name: &str) -> Result<Option<Py>> {
        if let Some(function) = self.function(file, name) {
            return Ok(Some(Py::Function(function)));
        }
        if let Some(class) = find_class(self.names, file, name)? {
            return Ok(Some(Py::Class(class)));
        }
        let qualified = format!("{}.{name}", file.rules.qualifier().unwrap_or_default());
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

    /// Removes the variables `names` from the scope, and returns their values.
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
            let given = match &*call.arguments.args {
                [] => (scope.class.as_deref().cloned(), scope.this.clone()),
                [class, this] => match (self.expr(scope, class)?, self.expr(scope, this)?) {
                    (Py::Class(class), this) => (Some(class), Some(this)),
                    _ => (None, None),
                },
                _ => (None, None),
            };
            return match given {
                (Some(class), Some(Py::Object(object))) if self.chain(&object)?.iter().any(|c| c.is(&class)) => {
                    Ok(Py::Super(object, class))
                }
                _ => self.beyond(&file, "`super()` here", call),
            };
        }
        if let Some(typed) = self.typed(scope, call)? {
            return Ok(typed);
        }
        let callee = self.expr(scope, &call.func)?;
        let positional = self.sequence(scope, &call.arguments.args)?;
        let mut keywords = Vec::with_capacity(call.arguments.keywords.len());
        for keyword in &call.arguments.keywords {
            let value = self.expr(scope, &keyword.value)?;
            match (&keyword.arg, &value) {
                (Some(name), _) => keywords.push((name.to_string(), value)),
                (None, Py::Dict(items)) => {
                    for (key, value) in items.borrow().iter() {
                        let Py::Str(name) = key else {
                            return self.beyond(&file, "`**` of this", keyword);
                        };
                        keywords.push((name.to_string(), value.clone()));
                    }
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
            // A method that is taken from its class: the first argument is the object.
            Py::Function(function) if function.is_method() => match positional.split_first() {
                Some((this @ Py::Object(_), rest)) => {
                    self.call_function(&function, Some(this.clone()), rest.to_vec(), keywords, call)
                }
                _ => self.beyond(file, "calling a method without an object", call),
            },
            Py::Function(function) => self.call_function(&function, None, positional, keywords, call),
            // `torch.no_grad()` and the like: gradients are off in any case.
            Py::Class(class) if class.qualified.starts_with("__torch__.torch.autograd.grad_mode.") => {
                Ok(Py::Opaque("context of gradients"))
            }
            Py::Class(class) => self.instantiate(&class, positional, keywords, file, call),
            Py::NamedClass(class) => self.make_named(file, &class, positional, keywords, call),
            Py::Path(path) => {
                // `torch.Size` is passed as a plain tuple, except to functions whose result shows the difference.
                let shows = matches!(&*path, "str" | "repr" | "print");
                let shows = shows || path.ends_with("isinstance");
                let plain = |value: Py| if shows { value } else { value.plain() };
                let positional = positional.into_iter().map(plain).collect();
                let keywords = keywords.into_iter().map(|(name, value)| (name, plain(value))).collect();
                self.call_path(file, &path, &Arguments::new(positional, keywords), call)
            }
            Py::Method(object, name) => {
                if let Py::Named(named) = &*object
                    && !matches!(&*name, "count" | "index")
                {
                    return self.call_named(file, named, &name, positional, keywords, call);
                }
                if let Py::Instance(this) = &*object {
                    return self.call_field(file, this, &name, positional, keywords, call);
                }
                let (this, chain) = match &*object {
                    Py::Super(this, class) => (this, self.chain_behind(this, class)?),
                    Py::Object(this) => (this, self.chain(this)?),
                    other @ (Py::Tensor(_) | Py::Parameter(_)) => {
                        let positional = positional.iter().map(Py::plain).collect();
                        let arguments = Arguments::new(positional, keywords);
                        return self.value_method(file, other, &name, &arguments, call);
                    }
                    other => {
                        let arguments = Arguments::new(positional, keywords);
                        return self.value_method(file, other, &name, &arguments, call);
                    }
                };
                match self.inherited(&chain, &name)? {
                    Some(Member::Method(method)) => {
                        self.call_function(&method, Some(Py::Object(Rc::clone(this))), positional, keywords, call)
                    }
                    Some(_) => self.beyond(file, format!("this call of `{name}`"), call),
                    // `nn.Module` itself.
                    None => self.module_method(file, this, &name, &Arguments::new(positional, keywords), call),
                }
            }
            Py::Traced(_) => self.beyond(file, "calling a traced function", call),
            other => self.beyond(file, format!("calling a {}", other.type_name()), call),
        }
    }
}

/// Collects the names of the variables that an assignment to `target` assigns.
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
