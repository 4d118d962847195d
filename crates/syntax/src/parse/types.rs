//! Reading of types, in the notation of printed graphs (`Float(2, 3)[]?`) and of annotations (`List[Optional[Tensor]]`).

use super::cursor::Cursor;
use crate::diagnostics::{Parsed, Reported};
use frazil_ir::nesting::MAX_NESTING;
use frazil_ir::{Context, DType, Device, Diagnostic, Dim, SymbolId, TensorType, TypeId, TypeKind, types};
use std::collections::HashMap;

/// The nominal types that a text defines, by qualified name. Names that are missing here denote classes.
pub(crate) type Nominal = HashMap<SymbolId, TypeId>;

/// Reads a type in either notation.
pub(crate) fn parse_type(cur: &mut Cursor<'_>, ctx: &Context, nominal: &Nominal) -> Parsed<TypeId> {
    cur.apart(|cur| Types { cur, ctx, nominal }.deeper())
}

struct Types<'p, 'a> {
    cur: &'p mut Cursor<'a>,
    ctx: &'p Context,
    nominal: &'p Nominal,
}

impl Types<'_, '_> {
    fn ty(&mut self) -> Parsed<TypeId> {
        let mut ty = self.base()?;
        // An optional of an optional is the same type, so marks are counted too.
        let mut marks = 0;
        loop {
            // Lists of lists are nested too, and so are the types of names.
            if marks > MAX_NESTING || self.ctx.type_nesting(ty) > MAX_NESTING {
                return Err(self.cur.too_deep());
            }
            match self.cur.peek() {
                b'[' => {
                    let start = self.cur.pos;
                    self.cur.pos += 1;
                    self.cur.skip_blanks();
                    if self.cur.peek() != b']' {
                        self.cur.pos = start;
                        return Ok(ty);
                    }
                    self.cur.pos += 1;
                    ty = self.ctx.list_of(ty);
                }
                b'?' => {
                    self.cur.pos += 1;
                    ty = self.ctx.optional_of(ty);
                }
                _ => return Ok(ty),
            }
            marks += 1;
        }
    }

    fn deeper(&mut self) -> Parsed<TypeId> {
        let (ctx, nominal) = (self.ctx, self.nominal);
        self.cur.nested(|cur| Types { cur, ctx, nominal }.ty())
    }

    fn base(&mut self) -> Parsed<TypeId> {
        self.cur.skip_space();
        if self.cur.peek() == b'(' {
            let elements = self.list(b'(', b')')?;
            return Ok(self.ctx.tuple_of(&elements));
        }
        let start = self.cur.pos;
        let name = self.cur.name();
        if name.is_empty() {
            return Err(self.cur.unexpected("a type"));
        }
        Ok(match name {
            "Tensor" => return self.tensor(None, false),
            "int" => types::INT,
            "float" => types::FLOAT,
            "bool" => types::BOOL,
            "complex" => types::COMPLEX,
            "str" => types::STR,
            "Scalar" | "number" => types::NUMBER,
            "NoneType" | "None" => types::NONE,
            "Device" => types::DEVICE,
            "Any" => types::ANY,
            "Generator" => types::GENERATOR,
            "Stream" => self.ctx.type_of_kind(TypeKind::Stream),
            "Storage" => self.ctx.type_of_kind(TypeKind::Storage),
            "QScheme" => self.ctx.type_of_kind(TypeKind::QScheme),
            "Capsule" => self.ctx.type_of_kind(TypeKind::Capsule),
            "list" => types::ANY_LIST,
            "tuple" => types::ANY_TUPLE,
            "AnyClassType" => types::ANY_CLASS,
            "AnyEnumType" => types::ANY_ENUM,
            "Function" => match self.angled()? {
                Some(name) => self.ctx.type_of_kind(TypeKind::Function(name)),
                None => types::FUNCTION,
            },
            "Enum" if self.cur.peek() == b'<' => {
                let name = self.angled()?.unwrap_or(frazil_ir::symbols::EMPTY);
                self.ctx.type_of_kind(TypeKind::Enum(name))
            }
            "InterfaceType" if self.cur.peek() == b'<' => {
                let name = self.angled()?.unwrap_or(frazil_ir::symbols::EMPTY);
                self.ctx.type_of_kind(TypeKind::Interface(name))
            }
            "Future" => {
                let e = self.wrapped()?;
                self.ctx.type_of_kind(TypeKind::Future(e))
            }
            "RRef" => {
                let e = self.wrapped()?;
                self.ctx.type_of_kind(TypeKind::RRef(e))
            }
            "Await" => {
                let e = self.wrapped()?;
                self.ctx.type_of_kind(TypeKind::Await(e))
            }
            "List" => {
                let e = self.wrapped()?;
                self.ctx.list_of(e)
            }
            "Optional" => {
                let e = self.wrapped()?;
                self.ctx.optional_of(e)
            }
            "Dict" => {
                let (open, close) = self.brackets()?;
                match self.list(open, close)?.as_slice() {
                    [k, v] => self.ctx.dict_of(*k, *v),
                    other => return Err(self.arity(start, "Dict", 2, other.len())),
                }
            }
            "Tuple" => {
                let (open, close) = self.brackets()?;
                // `Tuple[()]` is the empty one.
                let empty = self.cur.rest().starts_with("[()]");
                let elements = self.list(open, close)?;
                self.ctx.tuple_of(if empty { &[] } else { &elements })
            }
            "Union" => {
                let (open, close) = self.brackets()?;
                let elements = self.list(open, close)?;
                self.ctx.type_of_kind(TypeKind::Union(self.ctx.type_list(&elements)))
            }
            "NamedTuple" => return self.named_tuple(),
            _ => return self.named(start, name),
        })
    }

    /// Reads the rest of a type that starts with `name`: a refined tensor, a class, or a type variable.
    fn named(&mut self, start: usize, name: &str) -> Parsed<TypeId> {
        if let Some(dtype) = DType::from_type_name(name) {
            if self.cur.peek() == b'(' {
                return self.tensor(Some(dtype), true);
            }
            let span = self.cur.span_from(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-tensor-type",
                    format!("`{name}` has no sizes"),
                    span,
                    "a tensor type goes on with `(`",
                )
                .with_help(format!(
                    "write `{name}(2, 3)`, `{name}(*, *)`, or `{name}Tensor` when the rank is unknown"
                )),
            ));
        }
        if let Some(dtype) = name.strip_suffix("Tensor").and_then(DType::from_type_name) {
            return self.tensor(Some(dtype), false);
        }
        let symbol = self.ctx.symbol(name);
        if let Some(&ty) = self.nominal.get(&symbol) {
            return Ok(ty);
        }
        if name.contains('.') {
            return Ok(self.ctx.type_of_kind(TypeKind::Class(symbol)));
        }
        if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Ok(self.ctx.type_of_kind(TypeKind::Var(symbol)));
        }
        let span = self.cur.span_from(start);
        let mut diagnostic =
            Diagnostic::error("unknown-type", format!("there is no type `{name}`"), span, "not a type");
        let known = [
            "Tensor",
            "int",
            "float",
            "bool",
            "complex",
            "str",
            "Scalar",
            "NoneType",
            "Device",
            "Any",
            "Dict",
            "List",
            "Optional",
            "Tuple",
            "Union",
            "Future",
            "Generator",
            "Function",
        ];
        let all = known.into_iter().chain(DType::ALL.into_iter().map(DType::type_name));
        if let Some(near) = super::suggest::nearest(name, all) {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        } else {
            diagnostic = diagnostic.with_help("a class is written with its qualified name: `__torch__.Net`");
        }
        Err(self.cur.sink.report(diagnostic))
    }

    fn arity(&mut self, start: usize, what: &str, wanted: usize, found: usize) -> Reported {
        let span = self.cur.span_from(start);
        self.cur.sink.error(
            "unknown-type",
            format!("`{what}` takes {wanted} types, not {found}"),
            span,
            "in this type",
        )
    }

    /// Reads `<name>`, if the next token is `<`.
    fn angled(&mut self) -> Parsed<Option<SymbolId>> {
        if self.cur.peek() != b'<' {
            return Ok(None);
        }
        self.cur.pos += 1;
        let name = self.cur.expect_name("a qualified name")?;
        self.cur.expect(b'>', "behind the name")?;
        Ok(Some(self.ctx.symbol(name)))
    }

    /// Reads an opening bracket: a round one in printed graphs, a square one in annotations. Returns the bracket and its closing one.
    fn brackets(&mut self) -> Parsed<(u8, u8)> {
        match self.cur.peek() {
            b'(' => Ok((b'(', b')')),
            b'[' => Ok((b'[', b']')),
            _ => Err(self.cur.unexpected("`[` or `(`")),
        }
    }

    fn wrapped(&mut self) -> Parsed<TypeId> {
        let start = self.cur.pos;
        let (open, close) = self.brackets()?;
        match self.list(open, close)?.as_slice() {
            [one] => Ok(*one),
            other => Err(self.arity(start, "this", 1, other.len())),
        }
    }

    fn list(&mut self, open: u8, close: u8) -> Parsed<Vec<TypeId>> {
        self.cur.expect(open, "before the types")?;
        let mut out = Vec::new();
        if self.cur.eat(close) {
            return Ok(out);
        }
        loop {
            out.push(self.deeper()?);
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(close, "behind the types")?;
        Ok(out)
    }

    /// Reads the fields of a `NamedTuple`: `(a : int, b : Tensor)`. The printed form has no name.
    fn named_tuple(&mut self) -> Parsed<TypeId> {
        let name = self.angled()?.unwrap_or(frazil_ir::symbols::EMPTY);
        self.cur.expect(b'(', "before the fields")?;
        let (mut names, mut fields) = (Vec::new(), Vec::new());
        if !self.cur.eat(b')') {
            loop {
                let field = self.cur.expect_name("a field's name")?;
                self.cur.expect(b':', "behind the field's name")?;
                names.push(self.ctx.symbol(field));
                fields.push(self.deeper()?);
                if !self.cur.eat(b',') {
                    break;
                }
            }
            self.cur.expect(b')', "behind the fields")?;
        }
        Ok(self.ctx.type_of_kind(TypeKind::NamedTuple(
            name,
            self.ctx.symbol_list(&names),
            self.ctx.type_list(&fields),
        )))
    }

    /// Reads the rest of a tensor type: sizes if `ranked`, and other properties.
    fn tensor(&mut self, dtype: Option<DType>, ranked: bool) -> Parsed<TypeId> {
        let mut t = TensorType {
            dtype,
            ..TensorType::ANY
        };
        // A `(` after a space belongs to something else.
        let has_list = self.cur.peek() == b'(';
        let start = self.cur.pos;
        let mut ranked = ranked;
        if has_list {
            self.cur.pos += 1;
            let (mut dims, mut strides) = (Vec::new(), Vec::new());
            self.cur.skip_space();
            if dtype.is_none()
                && self.cur.peek().is_ascii_lowercase()
                && matches!(self.cur.peek_at(1), b'!' | b')' | b' ' | b'|')
            {
                return Err(self.alias(start));
            }
            if self.cur.peek() == b')' {
                self.cur.pos += 1;
                ranked |= dtype.is_none();
            } else {
                loop {
                    self.dim_or_property(&mut t, &mut dims, &mut strides)?;
                    if !self.cur.eat(b',') {
                        break;
                    }
                }
                self.cur.expect(b')', "behind the tensor type")?;
            }
            ranked |= !dims.is_empty();
            if ranked {
                if t.strides.is_none() && !strides.is_empty() {
                    t.strides = Some(self.ctx.dim_list(&strides));
                }
                let strides = t.strides.map(|s| self.ctx.dims(s).len());
                if strides.is_some_and(|n| n != dims.len()) {
                    let span = self.cur.span_from(start);
                    let message = format!("{} sizes and {} strides", dims.len(), strides.unwrap_or(0));
                    return Err(self.cur.sink.error(
                        "bad-tensor-type",
                        message,
                        span,
                        "as many strides as sizes are wanted",
                    ));
                }
                t.sizes = Some(self.ctx.dim_list(&dims));
                if dims.is_empty() && t.strides.is_none() && (t.device.is_some() || t.requires_grad.is_some()) {
                    t.strides = t.sizes;
                }
            }
        } else if dtype.is_none() && self.cur.peek() == b'!' {
            return Err(self.alias(start));
        }
        // PyTorch's printed types only state whether a tensor is definitely undefined.
        if self.cur.rest().starts_with("[Undefined]") {
            self.cur.pos += "[Undefined]".len();
            t.undefined = Some(true);
        } else if t != TensorType::ANY {
            t.undefined = Some(false);
        }
        Ok(self.ctx.type_of_kind(TypeKind::Tensor(t)))
    }

    fn alias(&mut self, start: usize) -> Reported {
        self.cur.skip_line();
        let line_end = self.cur.pos;
        self.cur.pos = start;
        while self.cur.pos < line_end && !matches!(self.cur.peek(), b')' | b',') {
            self.cur.pos += 1;
        }
        let span = self.cur.span_from(start);
        self.cur.sink.report(
            Diagnostic::error(
                "alias-annotation",
                "types of values have no alias annotations",
                span,
                "belongs into an operator's schema",
            )
            .with_help("write `Tensor`"),
        )
    }

    fn dim_or_property(&mut self, t: &mut TensorType, dims: &mut Vec<Dim>, strides: &mut Vec<Dim>) -> Parsed<()> {
        self.cur.skip_space();
        let start = self.cur.pos;
        let twice = |cur: &mut Cursor<'_>, what: &str| {
            let span = cur.span_from(start);
            Err(cur.sink.error(
                "bad-tensor-type",
                format!("`{what}` is given twice"),
                span,
                "the second time",
            ))
        };
        if self.cur.eat_word("strides") {
            self.cur.expect(b'=', "behind `strides`")?;
            self.cur.expect(b'[', "before the strides")?;
            let mut list = Vec::new();
            if !self.cur.eat(b']') {
                loop {
                    list.push(self.dim()?);
                    if !self.cur.eat(b',') {
                        break;
                    }
                }
                self.cur.expect(b']', "behind the strides")?;
            }
            if t.strides.replace(self.ctx.dim_list(&list)).is_some() {
                return twice(self.cur, "strides");
            }
            return Ok(());
        }
        if self.cur.eat_word("requires_grad") {
            self.cur.expect(b'=', "behind `requires_grad`")?;
            let n = self.cur.integer("0 or 1")?;
            if t.requires_grad.replace(n != 0).is_some() {
                return twice(self.cur, "requires_grad");
            }
            return Ok(());
        }
        if self.cur.eat_word("device") {
            self.cur.expect(b'=', "behind `device`")?;
            self.cur.skip_space();
            let at = self.cur.pos;
            self.cur.name();
            if self.cur.peek() == b':' && self.cur.peek_at(1).is_ascii_digit() {
                self.cur.pos += 1;
                self.cur.number();
            }
            let name = self.cur.since(at);
            let Some(device) = Device::parse(name) else {
                let span = self.cur.span_from(at);
                return Err(self.cur.sink.report(
                    Diagnostic::error(
                        "bad-tensor-type",
                        format!("there is no device `{name}`"),
                        span,
                        "not a device",
                    )
                    .with_help("devices are `cpu`, `cuda`, `cuda:1`, `meta`"),
                ));
            };
            if t.device.replace(device).is_some() {
                return twice(self.cur, "device");
            }
            return Ok(());
        }
        if t.strides.is_some() || t.device.is_some() || t.requires_grad.is_some() {
            return Err(self
                .cur
                .unexpected("`strides=`, `requires_grad=` or `device=` (sizes come first)"));
        }
        dims.push(self.dim()?);
        // The old form `size:stride`.
        if self.cur.peek() == b':' {
            self.cur.pos += 1;
            strides.push(self.dim()?);
        }
        Ok(())
    }

    fn dim(&mut self) -> Parsed<Dim> {
        self.cur.skip_space();
        match self.cur.peek() {
            b'*' => {
                self.cur.pos += 1;
                Ok(Dim::Unknown)
            }
            b'S' if self.cur.rest().starts_with("SS(") => {
                self.cur.pos += 3;
                let n = self.cur.integer("the symbol's number")?;
                self.cur.expect(b')', "behind the symbol's number")?;
                Ok(Dim::Symbolic(n))
            }
            _ => {
                let n = self.cur.integer("a size: a number, `*` or `SS(-1)`")?;
                Ok(Dim::Known(n))
            }
        }
    }
}
