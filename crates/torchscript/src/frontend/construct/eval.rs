//! Expressions.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::TypeKind;
use ruff_python_ast::{
    BoolOp, CmpOp, Comprehension, Expr, ExprCall, InterpolatedStringElement, Number, Operator, UnaryOp,
};
use ruff_text_size::Ranged;

use super::exec::insert;
use super::tensor::HostTensor;
use super::value::{ClassRef, Py};
use super::{MAX_DEPTH, MAX_LENGTH, Maker, Scope, ancestry, find_class};
use crate::frontend::Result;
use crate::frontend::annotation::dotted;
use crate::frontend::program::Global;
use crate::frontend::source::SourceFile;

impl Maker<'_, '_> {
    pub(super) fn expr(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Py> {
        self.step(&scope.file, expr)?;
        if self.depth >= MAX_DEPTH {
            return self.fail(&scope.file, "expressions and calls nest too deeply", expr);
        }
        self.depth += 1;
        let value = self.expr_inner(scope, expr);
        self.depth -= 1;
        value
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
        'items: for item in self.elements(scope, &generator.iter)? {
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
        if let Some(function) = self.function(&file, name) {
            return Ok(Py::Function(function));
        }
        if let Some(class) = find_class(self.program, &file, name)? {
            return Ok(Py::Class(class));
        }
        if let Some(path) = file.imported(name).map(str::to_owned) {
            return match find_class(self.program, &file, &path)? {
                Some(class) => Ok(Py::Class(class)),
                None => Ok(Py::Path(path.into())),
            };
        }
        // A value at the top level of the text.
        let value = file.body().iter().rev().find_map(|statement| match statement {
            ruff_python_ast::Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Name(target)] if target.id.as_str() == name => Some(&*assign.value),
                _ => None,
            },
            ruff_python_ast::Stmt::AnnAssign(assign) => match &*assign.target {
                Expr::Name(target) if target.id.as_str() == name => assign.value.as_deref(),
                _ => None,
            },
            _ => None,
        });
        match value {
            Some(value) if self.calls < super::MAX_CALLS => {
                self.calls += 1;
                let value = self.expr(scope, value);
                self.calls -= 1;
                value
            }
            _ if super::builtins::is_known(name) => Ok(Py::Path(name.into())),
            _ => self.fail(&file, format!("undefined value {name}"), node),
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
                Ok(known.unwrap_or_else(|| Py::Method(Box::new(Py::Object(object)), name.into())))
            }
            Py::Tensor(tensor) | Py::Parameter(tensor) if name == "shape" => {
                Ok(Py::tuple(tensor.sizes.iter().map(|&n| Py::Int(n)).collect()))
            }
            Py::Tensor(tensor) | Py::Parameter(tensor) if name == "data" => Ok(Py::Tensor(tensor)),
            Py::Class(class) => match class_constant(&class, name) {
                Some(_) if let Some(member) = self.member(&class, name)? => Ok(member),
                Some(value) => {
                    let value = value.clone();
                    let mut scope = Scope {
                        file: Arc::clone(&class.file),
                        variables: std::collections::HashMap::new(),
                        class: None,
                        this: None,
                    };
                    self.expr(&mut scope, &value)
                }
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

    pub(super) fn binary(
        &mut self,
        file: &SourceFile,
        op: Operator,
        left: &Py,
        right: &Py,
        node: &impl Ranged,
    ) -> Result<Py> {
        let value = match (op, left, right) {
            (Operator::Add, Py::Str(a), Py::Str(b)) => Some(Py::str(format!("{a}{b}"))),
            (Operator::Add, Py::List(a), Py::List(b)) => {
                Some(Py::list(a.borrow().iter().chain(b.borrow().iter()).cloned().collect()))
            }
            (Operator::Add, Py::Tuple(a), Py::Tuple(b)) => Some(Py::tuple(a.iter().chain(b.iter()).cloned().collect())),
            (Operator::Mult, Py::List(_) | Py::Tuple(_), Py::Int(n)) => {
                let items = left.items().unwrap_or_default();
                let length = n.max(&0).checked_mul(items.len() as i64);
                length.filter(|&length| length <= MAX_LENGTH).map(|_| {
                    let repeated = (0..*n).flat_map(|_| items.iter().cloned()).collect();
                    match left {
                        Py::List(_) => Py::list(repeated),
                        _ => Py::tuple(repeated),
                    }
                })
            }
            (_, Py::Tensor(a) | Py::Parameter(a), Py::Tensor(b) | Py::Parameter(b)) => {
                super::elements::arithmetic(op, a, b).map(Py::Tensor)
            }
            (_, Py::Tensor(a) | Py::Parameter(a), b) if b.as_f64().is_some() => {
                let b = b.as_f64().unwrap_or(0.0);
                let dtype = if matches!(right, Py::Float(_)) || op == Operator::Div {
                    float_of(a)
                } else {
                    a.dtype
                };
                float_operator(op)
                    .and_then(|f| a.map(dtype, |x| f(x, b)))
                    .map(Py::Tensor)
            }
            (_, a, Py::Tensor(b) | Py::Parameter(b)) if a.as_f64().is_some() => {
                let a = a.as_f64().unwrap_or(0.0);
                let dtype = if matches!(left, Py::Float(_)) || op == Operator::Div {
                    float_of(b)
                } else {
                    b.dtype
                };
                float_operator(op)
                    .and_then(|f| b.map(dtype, |x| f(a, x)))
                    .map(Py::Tensor)
            }
            _ => match (left.as_int(), right.as_int(), left.as_f64(), right.as_f64()) {
                (Some(a), Some(b), ..)
                    if op != Operator::Div
                        && !(op == Operator::Pow && b < 0)
                        && !(b == 0 && matches!(op, Operator::FloorDiv | Operator::Mod)) =>
                {
                    int_operator(op, a, b).map(Py::Int)
                }
                (_, _, Some(_), Some(b))
                    if b == 0.0 && matches!(op, Operator::Div | Operator::Mod | Operator::FloorDiv) =>
                {
                    return self.fail(file, "division by zero", node);
                }
                (_, _, Some(a), Some(b)) => float_operator(op).map(|f| Py::Float(f(a, b))),
                _ => None,
            },
        };
        match value {
            Some(value) => Ok(value),
            None => self.beyond(file, "this operator", node),
        }
    }

    fn element(&mut self, file: &SourceFile, container: &Py, index: &Py, node: &impl Ranged) -> Result<Py> {
        if let Py::Dict(items) = container {
            let found = items
                .borrow()
                .iter()
                .find(|(key, _)| key.equals(index))
                .map(|(_, value)| value.clone());
            return match found {
                Some(value) => Ok(value),
                None => self.fail(file, format!("KeyError: {}", index.text()), node),
            };
        }
        if let (Py::Object(object), Py::Str(name)) = (container, index)
            && let Some(attribute) = object.borrow().attributes.get(&**name)
        {
            return Ok(attribute.value.clone());
        }
        let (Some(items), Some(at)) = (container.items(), index.as_int()) else {
            return self.beyond(file, "this subscript", node);
        };
        let at = if at < 0 { at + items.len() as i64 } else { at };
        match usize::try_from(at).ok().and_then(|at| items.get(at)) {
            Some(item) => Ok(item.clone()),
            None => self.fail(file, "index out of range", node),
        }
    }

    fn slice(&mut self, file: &SourceFile, container: &Py, bounds: [Option<i64>; 3], node: &impl Ranged) -> Result<Py> {
        let Some(items) = container.items() else {
            return self.beyond(file, "this slice", node);
        };
        let (length, step) = (items.len() as i64, bounds[2].unwrap_or(1));
        if step == 0 {
            return self.fail(file, "slice step cannot be zero", node);
        }
        let least = if step < 0 { -1 } else { 0 };
        let clamp = |at: i64| (if at < 0 { at + length } else { at }).clamp(least, length + least);
        let (first, end) = if step > 0 { (0, length) } else { (length - 1, -1) };
        let (mut at, end) = (bounds[0].map_or(first, clamp), bounds[1].map_or(end, clamp));
        let mut picked = Vec::new();
        while (step > 0 && at < end) || (step < 0 && at > end) {
            picked.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
            at = at.saturating_add(step);
        }
        Ok(match container {
            Py::Tuple(_) => Py::tuple(picked),
            Py::Str(_) => Py::str(picked.iter().map(Py::text).collect::<String>()),
            _ => Py::list(picked),
        })
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

pub(super) fn float_of(tensor: &HostTensor) -> frazil_ir::DType {
    if tensor.dtype.is_floating_point() {
        tensor.dtype
    } else {
        frazil_ir::DType::Float
    }
}

fn compared(op: CmpOp, left: &Py, right: &Py) -> Option<bool> {
    let order = || match (left, right) {
        (Py::Str(a), Py::Str(b)) => Some(a.cmp(b)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    };
    Some(match op {
        CmpOp::Eq => left.equals(right),
        CmpOp::NotEq => !left.equals(right),
        CmpOp::Is => left.equals(right) && left.type_name() == right.type_name(),
        CmpOp::IsNot => !(left.equals(right) && left.type_name() == right.type_name()),
        CmpOp::Lt => order()?.is_lt(),
        CmpOp::LtE => order()?.is_le(),
        CmpOp::Gt => order()?.is_gt(),
        CmpOp::GtE => order()?.is_ge(),
        CmpOp::In => right.items()?.iter().any(|item| item.equals(left)),
        CmpOp::NotIn => !right.items()?.iter().any(|item| item.equals(left)),
    })
}

fn int_operator(op: Operator, a: i64, b: i64) -> Option<i64> {
    match op {
        Operator::Add => a.checked_add(b),
        Operator::Sub => a.checked_sub(b),
        Operator::Mult => a.checked_mul(b),
        Operator::FloorDiv if b != 0 => {
            let quotient = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) {
                quotient - 1
            } else {
                quotient
            })
        }
        Operator::Mod if b != 0 => {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            })
        }
        Operator::Pow => a.checked_pow(u32::try_from(b).ok()?),
        Operator::BitAnd => Some(a & b),
        Operator::BitOr => Some(a | b),
        Operator::BitXor => Some(a ^ b),
        Operator::LShift => a.checked_shl(u32::try_from(b).ok()?),
        Operator::RShift => a.checked_shr(u32::try_from(b).ok()?),
        _ => None,
    }
}

pub(super) fn float_operator(op: Operator) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        Operator::Add => |a, b| a + b,
        Operator::Sub => |a, b| a - b,
        Operator::Mult => |a, b| a * b,
        Operator::Div => |a, b| a / b,
        Operator::FloorDiv => |a: f64, b| (a / b).floor(),
        Operator::Mod => |a: f64, b| a - b * (a / b).floor(),
        Operator::Pow => f64::powf,
        _ => return None,
    })
}
