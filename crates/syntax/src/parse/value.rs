//! Reading of values: attributes of nodes, slots of objects, defaults of arguments.

use super::cursor::Cursor;
use super::tensor_text;
use super::types::{Nominal, parse_type};
use crate::diagnostics::{Parsed, Reported};
use frazil_ir::nesting::{Extent, MAX_VALUES, with_stack};
use frazil_ir::{
    AttributeValue, Constant, Context, Device, Diagnostic, DictConstant, EnumConstant, ListConstant, ObjectId,
    SymbolId, TensorData, TensorType, TupleConstant, TypeId, TypeKind, literal, types,
};
use indexmap::IndexMap;
use num_complex::Complex64;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The definitions to which references and names in a text refer.
#[derive(Default)]
pub(crate) struct Env {
    /// Nominal types by name.
    pub(crate) nominal: Nominal,
    /// Members of enumerations.
    pub(crate) enums: HashMap<SymbolId, IndexMap<SymbolId, Constant>>,
    /// Tensors by number: `tensor<n>`.
    pub(crate) tensors: HashMap<u32, Arc<TensorData>>,
    /// Shared lists, dictionaries and tuples by number, with their extents: `value<n>`.
    pub(crate) shared: HashMap<u32, (Constant, Extent)>,
    /// Objects by number: `object<n>`.
    pub(crate) objects: HashMap<u32, ObjectId>,
    /// All definitions in the text (kind and number), including those with errors.
    pub(crate) declared: HashSet<(&'static str, u32)>,
    /// Whether the text states the type of each value whose type differs from the expected one, as module files do. Annotated values and references are then
    /// kept unchanged. PyTorch's graphs state fewer types than their values have.
    pub(crate) exact: bool,
}

/// A parsed value.
pub(crate) enum Value {
    Constant(Constant),
    Type(TypeId),
    /// `{5}`: a tensor of one element, whose type is elsewhere in the text.
    Boxed(Constant),
    /// A value that is omitted in the text.
    Elided,
}

/// Reads an attribute's value. `wanted` is the type of the value, if it is known.
pub(crate) fn parse_attribute(
    cur: &mut Cursor<'_>,
    ctx: &Context,
    env: &Env,
    wanted: Option<TypeId>,
) -> Parsed<AttributeValue> {
    let start = cur.pos;
    cur.values = 0;
    let value = Values { cur, ctx, env }.attribute(wanted)?;
    let verbatim = || AttributeValue::Elided(cur.since(start).into());
    Ok(match value {
        Attribute::Value(Value::Constant(c)) => AttributeValue::Constant(match wanted {
            Some(ty) if !env.exact => fit(ctx, c, ty),
            _ => c,
        }),
        Attribute::Value(Value::Type(ty)) => AttributeValue::Type(ty),
        Attribute::Types(types) => AttributeValue::Types(types),
        Attribute::Value(Value::Boxed(number)) => {
            match tensor_text::boxed(ctx, &number, wanted).filter(|t| tensor_text::is_exact(t, cur.since(start))) {
                Some(t) => AttributeValue::Constant(Constant::Tensor(Arc::new(t))),
                None => verbatim(),
            }
        }
        Attribute::Value(Value::Elided) => verbatim(),
    })
}

/// Reads a value of type `wanted`, in which nothing may be elided.
pub(crate) fn parse_constant(
    cur: &mut Cursor<'_>,
    ctx: &Context,
    env: &Env,
    wanted: Option<TypeId>,
) -> Parsed<Constant> {
    cur.skip_space();
    let start = cur.pos;
    (cur.deepest, cur.values) = (0, 0);
    match (Values { cur, ctx, env }).value(wanted)? {
        Value::Constant(c) => Ok(match wanted {
            Some(ty) if !env.exact => fit(ctx, c, ty),
            _ => c,
        }),
        Value::Boxed(number) => match tensor_text::boxed(ctx, &number, wanted) {
            Some(t) => Ok(Constant::Tensor(Arc::new(t))),
            None => Err(bad(cur, start, "this number does not fit its tensor type")),
        },
        Value::Type(_) => Err(bad(cur, start, "a type is no value")),
        Value::Elided => {
            let span = cur.span_from(start);
            Err(cur.sink.report(
                Diagnostic::error(
                    "elided-constant",
                    "this value was left out of the text",
                    span,
                    "needed here",
                )
                .with_help("print the module without eliding constants"),
            ))
        }
    }
}

fn bad(cur: &mut Cursor<'_>, start: usize, message: &str) -> Reported {
    let span = cur.span_from(start);
    cur.sink.error("bad-literal", message, span, "this value")
}

enum Attribute {
    Value(Value),
    Types(Vec<TypeId>),
}

struct Values<'p, 'a> {
    cur: &'p mut Cursor<'a>,
    ctx: &'p Context,
    env: &'p Env,
}

impl Values<'_, '_> {
    fn attribute(&mut self, wanted: Option<TypeId>) -> Parsed<Attribute> {
        if self.cur.next_is(b"types[]") {
            // `[]` is an empty list of values.
            self.cur.pos += b"types[]".len();
            return Ok(Attribute::Types(Vec::new()));
        }
        if self.cur.peek() == b'[' && tensor_text::find(self.cur.rest()).is_none() {
            let start = self.cur.pos;
            self.cur.pos += 1;
            self.cur.skip_space();
            // A list of types is not a value; other lists are.
            if self.at_type() {
                let mut types = Vec::new();
                loop {
                    types.push(parse_type(self.cur, self.ctx, &self.env.nominal)?);
                    if !self.cur.eat(b',') {
                        break;
                    }
                }
                self.cur.expect(b']', "behind the types")?;
                return Ok(Attribute::Types(types));
            }
            self.cur.pos = start;
        }
        if self.cur.peek() == b'(' && self.at_type() {
            let ty = parse_type(self.cur, self.ctx, &self.env.nominal)?;
            return Ok(Attribute::Value(Value::Type(ty)));
        }
        self.value(wanted).map(Attribute::Value)
    }

    /// Returns whether the next token starts a type rather than a value.
    fn at_type(&mut self) -> bool {
        let start = self.cur.pos;
        // A tuple of types begins with its first type.
        while self.cur.eat(b'(') {}
        self.cur.skip_space();
        let name = self.cur.name();
        let next = self.cur.peek();
        self.cur.pos = start;
        match name {
            "" | "True" | "False" | "None" | "inf" | "nan" | "annotate" | "object" | "tensor" | "value"
            | "function" => false,
            "torch.device" => false,
            _ if name.starts_with(|c: char| c.is_ascii_digit() || c == '.') => false,
            // A member of an enumeration looks like a class.
            _ => {
                next == b'['
                    || next == b'?'
                    || !name.contains('.')
                    || self.env.nominal.contains_key(&self.ctx.symbol(name))
            }
        }
    }

    fn value(&mut self, wanted: Option<TypeId>) -> Parsed<Value> {
        let (ctx, env) = (self.ctx, self.env);
        self.cur.values += 1;
        self.cur.nested(|cur| Values { cur, ctx, env }.value_here(wanted))
    }

    fn value_here(&mut self, wanted: Option<TypeId>) -> Parsed<Value> {
        if let Some(value) = self.tensor_text(wanted) {
            return Ok(value);
        }
        self.cur.skip_space();
        let start = self.cur.pos;
        Ok(match self.cur.peek() {
            b'"' => {
                let text = Constant::Str(Arc::from(&*self.cur.string()?));
                Value::Constant(self.fitted(text, wanted))
            }
            b'[' => return self.list(wanted),
            b'(' => return self.tuple(wanted),
            b'{' => return self.braces(wanted),
            b'<' => {
                self.cur.pos += 1;
                let word = self.cur.word();
                if !matches!(word, "Tensor" | "Tensors" | "Graph" | "Graphs") {
                    return Err(bad(self.cur, start, "expected `<Tensor>`"));
                }
                self.cur.expect(b'>', "behind the word")?;
                Value::Elided
            }
            b'-' | b'+' | b'.' | b'0'..=b'9' => {
                let number = self.number()?;
                Value::Constant(self.fitted(number, wanted))
            }
            _ => return self.word(start, wanted),
        })
    }

    /// Reads a tensor in the form in which PyTorch prints small tensors. Does not advance if the text is none.
    fn tensor_text(&mut self, wanted: Option<TypeId>) -> Option<Value> {
        // Cheap tests first: most values are scalars.
        if !matches!(
            self.cur.peek(),
            b' ' | b'-' | b'0'..=b'9' | b'(' | b'C' | b'[' | b'i' | b'n'
        ) {
            return None;
        }
        let (text, dims) = tensor_text::find(self.cur.rest())?;
        self.cur.pos += text.len();
        let tensor = tensor_text::read(text, dims).filter(|t| tensor_text::is_exact(t, text));
        let wanted = match wanted.map(|ty| self.ctx.type_kind(strip(self.ctx, ty))) {
            Some(TypeKind::Tensor(t)) => t,
            _ => TensorType::ANY,
        };
        Some(match tensor {
            Some(t) => Value::Constant(Constant::Tensor(tensor_text::fit(self.ctx, Arc::new(t), &wanted))),
            None => Value::Elided,
        })
    }

    /// Reads an integer, a real or a complex number.
    fn number(&mut self) -> Parsed<Constant> {
        let start = self.cur.pos;
        let text = self.cur.number();
        // Most numbers are integers, which end with their digits.
        if !matches!(self.cur.peek(), b'j' | b'+' | b'-')
            && let Ok(whole) = text.parse()
        {
            return Ok(Constant::Int(whole));
        }
        let bad_number = |cur: &mut Cursor<'_>| {
            let span = cur.span_from(start);
            let text = cur.since(start).to_owned();
            cur.sink.error(
                "bad-number",
                format!("`{text}` is no number that fits 64 bits"),
                span,
                "this number",
            )
        };
        let real = |text: &str| match text.contains("nan") {
            true => literal::nan(text),
            false => text.parse::<f64>().ok(),
        };
        let Some(first) = real(text) else {
            return Err(bad_number(self.cur));
        };
        match self.cur.peek() {
            b'j' => {
                self.cur.pos += 1;
                return Ok(Constant::Complex(Complex64::new(0.0, first)));
            }
            b'+' | b'-' => {
                let sign = self.cur.pos;
                let imaginary = self.cur.number();
                let imaginary = real(imaginary);
                if let (Some(imaginary), b'j') = (imaginary, self.cur.peek()) {
                    self.cur.pos += 1;
                    return Ok(Constant::Complex(Complex64::new(first, imaginary)));
                }
                self.cur.pos = sign;
            }
            _ => {}
        }
        if text.contains(['.', 'e', 'E', 'n', 'i']) {
            return Ok(Constant::Float(first));
        }
        match text.parse() {
            Ok(i) => Ok(Constant::Int(i)),
            Err(_) => Err(bad_number(self.cur)),
        }
    }

    fn word(&mut self, start: usize, wanted: Option<TypeId>) -> Parsed<Value> {
        let name = self.cur.name();
        let constant = match name {
            "None" => Constant::None,
            "True" => Constant::Bool(true),
            "False" => Constant::Bool(false),
            "inf" | "nan" => {
                self.cur.pos = start;
                let number = self.number()?;
                self.fitted(number, wanted)
            }
            "annotate" => return self.annotated(),
            "torch.device" => {
                self.cur.expect(b'(', "before the device")?;
                let at = self.cur.pos;
                let text = self.cur.string()?;
                self.cur.expect(b')', "behind the device")?;
                match Device::parse(&text) {
                    Some(d) => Constant::Device(d),
                    None => return Err(bad(self.cur, at, "there is no such device")),
                }
            }
            "object" if self.cur.peek() == b'(' => {
                while !matches!(self.cur.peek(), b')' | b'\n' | 0) {
                    self.cur.pos += 1;
                }
                self.cur.expect(b')', "behind the address")?;
                return Ok(Value::Elided);
            }
            "object" if self.cur.peek() == b'<' => self.reference(start, "object")?,
            "tensor" if self.cur.peek() == b'<' => self.reference(start, "tensor")?,
            "value" if self.cur.peek() == b'<' => self.reference(start, "value")?,
            "function" if self.cur.peek() == b'<' => {
                self.cur.pos += 1;
                let function = self.cur.expect_name("a function's qualified name")?;
                self.cur.expect(b'>', "behind the name")?;
                Constant::Function(self.ctx.symbol(function))
            }
            "" => {
                self.cur.pos = start;
                return Err(self.cur.unexpected("a value"));
            }
            _ => return self.enum_or_type(start, name),
        };
        Ok(Value::Constant(constant))
    }

    /// Returns the scalar converted to type `wanted`, if [`Env::exact`] is set and the type can represent it; otherwise unchanged.
    fn fitted(&self, scalar: Constant, wanted: Option<TypeId>) -> Constant {
        match wanted {
            Some(ty) if self.env.exact => fit_scalar(self.ctx, &scalar, ty).unwrap_or(scalar),
            _ => scalar,
        }
    }

    /// Reads a member of an enumeration (`__torch__.Color.RED`) or a type.
    fn enum_or_type(&mut self, start: usize, name: &str) -> Parsed<Value> {
        if let Some((class, member)) = name.rsplit_once('.')
            && self.cur.peek() != b'['
        {
            let (class, member) = (self.ctx.symbol(class), self.ctx.symbol(member));
            if let Some(members) = self.env.enums.get(&class) {
                let Some(value) = members.get(&member) else {
                    let known: Vec<_> = members.keys().map(|k| self.ctx.name(*k)).collect();
                    let span = self.cur.span_from(start);
                    let diagnostic = Diagnostic::error(
                        "bad-literal",
                        format!("`{}` has no member `{}`", self.ctx.name(class), self.ctx.name(member)),
                        span,
                        "no such member",
                    );
                    return Err(self
                        .cur
                        .sink
                        .report(diagnostic.with_help(format!("it has {}", known.join(", ")))));
                };
                return Ok(Value::Constant(Constant::Enum(Arc::new(EnumConstant {
                    class,
                    name: self.ctx.name(member).into(),
                    value: value.clone(),
                }))));
            }
            // The printed form does not contain the member's value.
            if !self.env.nominal.contains_key(&self.ctx.symbol(name)) {
                return Ok(Value::Elided);
            }
        }
        self.cur.pos = start;
        parse_type(self.cur, self.ctx, &self.env.nominal).map(Value::Type)
    }

    /// Reads a reference: `object<3>`, `tensor<3>`, `value<3>`.
    fn reference(&mut self, start: usize, kind: &'static str) -> Parsed<Constant> {
        self.cur.pos += 1;
        let number = self.cur.integer("a number")?;
        self.cur.expect(b'>', "behind the number")?;
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let found = match kind {
            "object" => self.env.objects.get(&number).map(|o| Constant::Object(*o)),
            "tensor" => self.env.tensors.get(&number).map(|t| Constant::Tensor(t.clone())),
            _ => match self.env.shared.get(&number) {
                Some((value, extent)) => {
                    self.cur.reach(extent.levels)?;
                    self.cur.values = self.cur.values.saturating_add(extent.values);
                    if self.cur.values > MAX_VALUES {
                        let span = self.cur.span_from(start);
                        let message =
                            format!("a value holds at most {MAX_VALUES} values, shared ones counted at each place");
                        return Err(self
                            .cur
                            .sink
                            .error("too-many-values", message, span, "too many with this one"));
                    }
                    Some(value.clone())
                }
                None => None,
            },
        };
        found.ok_or_else(|| {
            if self.env.declared.contains(&(kind, number)) && self.cur.sink.has_errors() {
                // An error in its definition has been reported.
                return Reported;
            }
            let span = self.cur.span_from(start);
            self.cur.sink.report(
                Diagnostic::error(
                    "unknown-reference",
                    format!("there is no {kind}<{number}>"),
                    span,
                    "refers to nothing",
                )
                .with_help(format!("a module file defines it with a line `{kind}<{number}> = ...`")),
            )
        })
    }

    /// Reads `annotate(List[int], [])`.
    fn annotated(&mut self) -> Parsed<Value> {
        self.cur.expect(b'(', "behind `annotate`")?;
        let ty = parse_type(self.cur, self.ctx, &self.env.nominal)?;
        self.cur.expect(b',', "behind the type")?;
        if self.cur.peek() == b' ' {
            self.cur.pos += 1;
        }
        // The annotation does not count as a level, since a text would have more levels than its values.
        let value = match self.cur.rest().starts_with("annotate") {
            true => self.value(Some(ty))?,
            false => self.value_here(Some(ty))?,
        };
        self.cur.expect(b')', "behind the value")?;
        Ok(match value {
            Value::Constant(c) if !self.env.exact => Value::Constant(fit(self.ctx, c, ty)),
            Value::Boxed(_) => Value::Elided,
            other => other,
        })
    }

    /// Reads values up to the bracket `close`; `None` if one of them is elided.
    fn items(&mut self, close: u8, wanted: impl Fn(usize) -> Option<TypeId>) -> Parsed<Option<Vec<Constant>>> {
        self.cur.pos += 1;
        let mut items = Vec::new();
        let mut complete = true;
        loop {
            // A tensor's text may begin with significant blanks.
            let start = self.cur.pos;
            if self.cur.eat(close) {
                return Ok(complete.then_some(items));
            }
            self.cur.pos = start;
            if self.cur.peek() == b' ' && !items.is_empty() {
                self.cur.pos += 1;
            }
            let start = self.cur.pos;
            match self.value(wanted(items.len()))? {
                Value::Constant(c) => items.push(c),
                Value::Type(_) if complete => return Err(bad(self.cur, start, "a type is no value")),
                // Types may follow a class, which looks like a member of an enumeration.
                Value::Type(_) | Value::Boxed(_) | Value::Elided => {
                    complete = false;
                    items.push(Constant::None);
                }
            }
            if !self.cur.eat(b',') {
                self.cur.expect(close, "behind the values")?;
                return Ok(complete.then_some(items));
            }
        }
    }

    fn list(&mut self, wanted: Option<TypeId>) -> Parsed<Value> {
        let element = wanted.and_then(|ty| match self.ctx.type_kind(strip(self.ctx, ty)) {
            TypeKind::List(e) => Some(e),
            _ => None,
        });
        let Some(items) = self.items(b']', |_| element)? else {
            return Ok(Value::Elided);
        };
        let is_number = |c: &Constant| matches!(c, Constant::Int(_) | Constant::Float(_));
        let is_real = |c: &Constant| matches!(c, Constant::Float(_));
        if element.is_none() && items.iter().all(is_number) && items.iter().any(is_real) {
            // Large whole doubles are printed without a dot; a list of mixed types would be annotated.
            let items = items.into_iter().map(|c| fit(self.ctx, c, types::FLOAT)).collect();
            return Ok(Value::Constant(Constant::list(types::FLOAT, items)));
        }
        let element = element.unwrap_or_else(|| common_type(self.ctx, &items));
        Ok(Value::Constant(Constant::list(element, items)))
    }

    fn tuple(&mut self, wanted: Option<TypeId>) -> Parsed<Value> {
        let elements = match wanted.map(|ty| self.ctx.type_kind(strip(self.ctx, ty))) {
            Some(TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es)) => self.ctx.types(es),
            _ => &[],
        };
        let Some(items) = self.items(b')', |i| elements.get(i).copied())? else {
            return Ok(Value::Elided);
        };
        Ok(Value::Constant(match wanted {
            Some(ty) if self.env.exact && !elements.is_empty() && elements.len() == items.len() => {
                let ty = strip(self.ctx, ty);
                Constant::Tuple(Arc::new(TupleConstant { ty, items }))
            }
            _ => Constant::tuple(self.ctx, items),
        }))
    }

    /// Reads `{"a": 1}`, a dictionary, or `{5}`, a tensor of one element.
    fn braces(&mut self, wanted: Option<TypeId>) -> Parsed<Value> {
        let start = self.cur.pos;
        self.cur.pos += 1;
        let (key, element) = match wanted.map(|ty| self.ctx.type_kind(strip(self.ctx, ty))) {
            Some(TypeKind::Dict(k, v)) => (Some(k), Some(v)),
            _ => (None, None),
        };
        let mut entries = Vec::new();
        let mut complete = true;
        // `{(1,2)}` is a complex element.
        if self.cur.peek() == b'(' {
            let rest = self.cur.rest();
            if let Some(end) = rest.find(")}")
                && !rest[..end].contains(['"', '\n', ':'])
            {
                self.cur.pos += end + 2;
                return Ok(Value::Elided);
            }
        }
        loop {
            if self.cur.eat(b'}') {
                break;
            }
            let k = self.value(key)?;
            if entries.is_empty() && self.cur.eat(b'}') {
                return match k {
                    Value::Constant(number) => Ok(Value::Boxed(number)),
                    _ => Err(bad(self.cur, start, "a tensor of one element holds a number")),
                };
            }
            self.cur.expect(b':', "behind the key")?;
            if self.cur.peek() == b' ' {
                self.cur.pos += 1;
            }
            let v = self.value(element)?;
            match (k, v) {
                (Value::Constant(k), Value::Constant(v)) => entries.push((k, v)),
                _ => {
                    complete = false;
                    entries.push((Constant::None, Constant::None));
                }
            }
            if !self.cur.eat(b',') {
                self.cur.expect(b'}', "behind the entries")?;
                break;
            }
        }
        if !complete {
            return Ok(Value::Elided);
        }
        let common = |constants: Vec<Constant>| common_type(self.ctx, &constants);
        let key = key.unwrap_or_else(|| common(entries.iter().map(|e| e.0.clone()).collect()));
        let value = element.unwrap_or_else(|| common(entries.iter().map(|e| e.1.clone()).collect()));
        Ok(Value::Constant(Constant::Dict(Arc::new(DictConstant {
            key,
            value,
            entries,
        }))))
    }
}

/// Returns the element type of an optional type; any other type unchanged.
fn strip(ctx: &Context, ty: TypeId) -> TypeId {
    match ctx.type_kind(ty) {
        TypeKind::Optional(e) => e,
        _ => ty,
    }
}

/// Returns the type of a list with these items and without annotation: the type of the elements, `Tensor` for an empty list, as in TorchScript.
pub(crate) fn common_type(ctx: &Context, items: &[Constant]) -> TypeId {
    let mut element_types = items.iter().map(|c| match c {
        Constant::Tensor(_) => types::TENSOR,
        c => c.ty(ctx),
    });
    let Some(first) = element_types.next() else {
        return types::TENSOR;
    };
    element_types
        .try_fold(first, |joined, ty| types::unify(ctx, joined, ty))
        .unwrap_or(types::ANY)
}

/// Converts `constant` to a value of type `ty`, if both have the same text: `1` for a bool or a float, a string for a device. `None` if no conversion is
/// necessary.
pub(crate) fn fit_scalar(ctx: &Context, constant: &Constant, ty: TypeId) -> Option<Constant> {
    Some(match (ctx.type_kind(strip(ctx, ty)), constant) {
        (TypeKind::Bool, Constant::Int(i @ (0 | 1))) => Constant::Bool(*i == 1),
        (TypeKind::Float, Constant::Int(i)) => Constant::Float(*i as f64),
        (TypeKind::Complex, Constant::Int(i)) => Constant::Complex(Complex64::new(*i as f64, 0.0)),
        (TypeKind::Complex, Constant::Float(f)) => Constant::Complex(Complex64::new(*f, 0.0)),
        (TypeKind::Device, Constant::Str(text)) => Constant::Device(Device::parse(text)?),
        _ => return None,
    })
}

/// Converts a constant to type `ty`, recursively through lists and tuples: values with the same text (`1` for a bool or a float, a string
/// for a device) get the stated type. Values that do not fit are kept, for the verifier to report.
pub(crate) fn fit(ctx: &Context, constant: Constant, ty: TypeId) -> Constant {
    let fit_all = |items: &[Constant], ty: &dyn Fn(usize) -> Option<TypeId>| -> Vec<Constant> {
        items
            .iter()
            .enumerate()
            .map(|(i, c)| match ty(i) {
                Some(ty) => with_stack(|| fit(ctx, c.clone(), ty)),
                None => c.clone(),
            })
            .collect()
    };
    if let Some(scalar) = fit_scalar(ctx, &constant, ty) {
        return scalar;
    }
    match (ctx.type_kind(ty), constant) {
        (_, Constant::None) => Constant::None,
        (TypeKind::Optional(e), c) => fit(ctx, c, e),
        (TypeKind::List(element), Constant::List(l)) => {
            if element == l.element
                && !matches!(
                    ctx.type_kind(element),
                    TypeKind::Float | TypeKind::Bool | TypeKind::Complex | TypeKind::Device
                )
            {
                return Constant::List(l);
            }
            let items = fit_all(&l.items, &|_| Some(element));
            Constant::List(Arc::new(ListConstant { element, items }))
        }
        (TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es), Constant::Tuple(t)) => {
            let es = ctx.types(es);
            if es.len() != t.items.len() {
                return Constant::Tuple(t);
            }
            let items = fit_all(&t.items, &|i| es.get(i).copied());
            Constant::Tuple(Arc::new(TupleConstant { ty, items }))
        }
        (TypeKind::Dict(key, value), Constant::Dict(d)) => Constant::Dict(Arc::new(DictConstant {
            key,
            value,
            entries: d
                .entries
                .iter()
                .map(|(k, v)| with_stack(|| (fit(ctx, k.clone(), key), fit(ctx, v.clone(), value))))
                .collect(),
        })),
        (_, c) => c,
    }
}
