//! The parser of PyTorch's schema notation: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

use super::{AliasInfo, AliasSet, Argument, FunctionSchema, TypeHint};
use crate::{Constant, Context, Device, SymbolId, TypeId, TypeKind, symbols, types};

/// A syntax error in a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {offset} of schema `{text}`")]
pub struct SchemaError {
    /// The syntax that was expected at the error.
    pub expected: &'static str,
    /// Offset of the error in the schema's text, in bytes.
    pub offset: usize,
    /// The text of the schema.
    pub text: String,
}

/// Parses one schema.
///
/// # Errors
/// If `text` does not follow the notation.
pub fn parse_schema(ctx: &Context, text: &str) -> Result<FunctionSchema, SchemaError> {
    let mut p = Parser { ctx, text, at: 0 };
    let schema = p.schema()?;
    p.space();
    if p.at < text.len() {
        Err(p.expected("the end of the schema"))
    } else {
        Ok(schema)
    }
}

struct Parser<'a> {
    ctx: &'a Context,
    text: &'a str,
    at: usize,
}

/// A type in a schema with its annotations.
struct Annotated {
    ty: TypeId,
    broadcast: Option<u32>,
    alias: Option<AliasInfo>,
    element_alias: Option<AliasInfo>,
    hint: TypeHint,
}

/// Maximum length of the list to which a single number can be converted (`int[2]`).
const MAX_LENGTH: u32 = 64;

type Result<T, E = SchemaError> = std::result::Result<T, E>;

impl<'a> Parser<'a> {
    fn expected(&self, expected: &'static str) -> SchemaError {
        SchemaError {
            expected,
            offset: self.at,
            text: self.text.to_owned(),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn need(&mut self, token: &'static str) -> Result<()> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.expected(token))
        }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn word(&mut self) -> Result<&'a str> {
        match self.take_while(|c| c.is_alphanumeric() || c == '_') {
            "" => Err(self.expected("a name")),
            word => Ok(word),
        }
    }

    fn schema(&mut self) -> Result<FunctionSchema> {
        let full = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '.'));
        if full.is_empty() {
            return Err(self.expected("an operator name"));
        }
        // The overload follows the first dot behind the namespace: `aten::add.Tensor`.
        let start = full.find("::").map_or(0, |i| i + 2);
        let (name, overload) = match full[start..].split_once('.') {
            Some((name, overload)) => (&full[..start + name.len()], overload),
            None => (full, ""),
        };
        self.need("(")?;
        let mut schema = FunctionSchema {
            name: self.ctx.symbol(name),
            overload: self.ctx.symbol(overload),
            arguments: Vec::new(),
            returns: Vec::new(),
            is_vararg: false,
            is_varret: false,
        };
        let mut keyword_only = false;
        if !self.eat(")") {
            loop {
                if self.eat("...") {
                    schema.is_vararg = true;
                } else if self.eat("*") {
                    keyword_only = true;
                } else {
                    schema.arguments.push(self.argument(keyword_only)?);
                }
                if !self.eat(",") {
                    break;
                }
            }
            self.need(")")?;
        }
        self.need("->")?;
        if self.eat("...") {
            schema.is_varret = true;
        } else if self.eat("(") {
            while !self.eat(")") {
                schema.returns.push(self.result()?);
                if !self.eat(",") {
                    self.need(")")?;
                    break;
                }
            }
        } else {
            schema.returns.push(self.result()?);
        }
        Ok(schema)
    }

    fn argument(&mut self, keyword_only: bool) -> Result<Argument> {
        let t = self.annotated(0)?;
        let name = self.word()?;
        let default = match self.eat("=") {
            true => Some(self.default(t.ty, t.broadcast)?),
            false => None,
        };
        Ok(Argument {
            name: self.ctx.symbol(name),
            default,
            ..t.into_argument(keyword_only)
        })
    }

    fn result(&mut self) -> Result<Argument> {
        let t = self.annotated(0)?;
        self.space();
        let named = self.rest().starts_with(|c: char| c.is_alphabetic() || c == '_');
        let name = if named {
            self.ctx.symbol(self.word()?)
        } else {
            symbols::EMPTY
        };
        Ok(Argument {
            name,
            ..t.into_argument(false)
        })
    }

    fn annotated(&mut self, depth: u32) -> Result<Annotated> {
        if depth > 16 {
            return Err(self.expected("a type nested less deeply"));
        }
        let (mut ty, hint) = self.base_type(depth)?;
        let mut t = Annotated {
            ty,
            broadcast: None,
            alias: self.alias()?,
            element_alias: None,
            hint,
        };
        loop {
            if self.eat("[") {
                let length = self.take_while(|c| c.is_ascii_digit());
                t.broadcast = length.parse().ok();
                self.need("]")?;
                ty = self.ctx.list_of(ty);
                // Annotations so far apply to the elements.
                if let Some(inner) = t.alias.take() {
                    t.element_alias = Some(inner);
                }
            } else if self.eat("?") {
                ty = self.ctx.optional_of(ty);
            } else {
                break;
            }
            if let Some(alias) = self.alias()? {
                t.alias = Some(alias);
            }
        }
        t.ty = ty;
        Ok(t)
    }

    fn base_type(&mut self, depth: u32) -> Result<(TypeId, TypeHint)> {
        let ctx = self.ctx;
        if self.eat("(") {
            let mut elements = Vec::new();
            while !self.eat(")") {
                elements.push(self.annotated(depth + 1)?.ty);
                if !self.eat(",") {
                    self.need(")")?;
                    break;
                }
            }
            return Ok((ctx.tuple_of(&elements), TypeHint::None));
        }
        let name = match self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) {
            "" => return Err(self.expected("a type")),
            name => name,
        };
        let simple = match name {
            "Tensor" => types::TENSOR,
            "int" | "SymInt" | "DeviceIndex" => types::INT,
            "float" | "SymFloat" => types::FLOAT,
            "bool" | "SymBool" => types::BOOL,
            "complex" => types::COMPLEX,
            "Scalar" | "number" => types::NUMBER,
            "str" | "Dimname" => types::STR,
            "NoneType" => types::NONE,
            "Device" => types::DEVICE,
            "Generator" => types::GENERATOR,
            "Any" => types::ANY,
            "AnyClassType" => types::ANY_CLASS,
            "AnyEnumType" => types::ANY_ENUM,
            "list" => types::ANY_LIST,
            "tuple" => types::ANY_TUPLE,
            "ScalarType" => return Ok((types::INT, TypeHint::ScalarType)),
            "Layout" => return Ok((types::INT, TypeHint::Layout)),
            "MemoryFormat" => return Ok((types::INT, TypeHint::MemoryFormat)),
            "Stream" => ctx.type_of_kind(TypeKind::Stream),
            "Storage" => ctx.type_of_kind(TypeKind::Storage),
            "QScheme" => ctx.type_of_kind(TypeKind::QScheme),
            "Capsule" => ctx.type_of_kind(TypeKind::Capsule),
            "Dict" => {
                self.need("(")?;
                let key = self.annotated(depth + 1)?.ty;
                self.need(",")?;
                let value = self.annotated(depth + 1)?.ty;
                self.need(")")?;
                ctx.dict_of(key, value)
            }
            "Future" | "Await" | "RRef" => {
                self.need("(")?;
                let element = self.annotated(depth + 1)?.ty;
                self.need(")")?;
                ctx.type_of_kind(match name {
                    "Future" => TypeKind::Future(element),
                    "Await" => TypeKind::Await(element),
                    _ => TypeKind::RRef(element),
                })
            }
            _ if name.contains('.') => ctx.class(name),
            // Lower-case words are type variables: `t`, `t1`, `tVal`.
            _ if name.starts_with(char::is_lowercase) => ctx.type_of_kind(TypeKind::Var(ctx.symbol(name))),
            _ => ctx.class(name),
        };
        Ok((simple, TypeHint::None))
    }

    /// Parses an alias annotation: `(a!)`, `(a -> *)`, `(b|a)`, `(*)`. `None` for other parentheses: of a tuple or an argument list.
    fn alias(&mut self) -> Result<Option<AliasInfo>> {
        let Some(inside) = self
            .rest()
            .strip_prefix('(')
            .and_then(|r| r.split_once(')'))
            .map(|(i, _)| i)
        else {
            return Ok(None);
        };
        let (before, after) = match inside.split_once("->") {
            Some((before, after)) => (before, after),
            None => (inside, ""),
        };
        let (before, is_write) = match before.trim_end().strip_suffix('!') {
            Some(rest) => (rest, true),
            None => (before, false),
        };
        let mut info = AliasInfo {
            is_write,
            ..AliasInfo::default()
        };
        for (text, sets) in [(before, &mut info.before), (after, &mut info.after)] {
            for set in text.split('|').map(str::trim).filter(|s| !s.is_empty()) {
                sets.push(match set {
                    "*" => AliasSet::Wildcard,
                    name if name.chars().all(char::is_alphanumeric) => AliasSet::Named(self.ctx.symbol(name)),
                    _ => return Err(self.expected("an alias annotation")),
                });
            }
        }
        self.at += inside.len() + 2;
        Ok(Some(info))
    }

    /// Parses a default of type `ty`; `length` is the length of a list for which a single number may be given.
    fn default(&mut self, ty: TypeId, length: Option<u32>) -> Result<Constant> {
        let inner = match self.ctx.type_kind(ty) {
            TypeKind::Optional(e) => e,
            _ => ty,
        };
        if self.eat("[") {
            let element = match self.ctx.type_kind(inner) {
                TypeKind::List(e) => e,
                _ => types::ANY,
            };
            let mut items = Vec::new();
            while !self.eat("]") {
                items.push(self.default(element, None)?);
                if !self.eat(",") {
                    self.need("]")?;
                    break;
                }
            }
            return Ok(Constant::list(element, items));
        }
        self.space();
        if self.rest().starts_with('"') {
            return self.string();
        }
        let word = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+'));
        let value = match word {
            "None" => Some(Constant::None),
            "True" => Some(Constant::Bool(true)),
            "False" => Some(Constant::Bool(false)),
            // Enumerations that are numbers in graphs.
            "Mean" => Some(Constant::Int(1)),
            "contiguous_format" => Some(Constant::Int(0)),
            "strided" => Some(Constant::Int(0)),
            "cpu" if inner == types::DEVICE => Some(Constant::Device(Device::CPU)),
            _ => match (self.ctx.type_kind(inner), word.parse::<i64>()) {
                (TypeKind::List(element), Ok(n)) => {
                    // `int[2] dilation=1`: a number for a list of that length.
                    let length = length.filter(|n| *n <= MAX_LENGTH).unwrap_or(1);
                    Some(Constant::list(element, vec![Constant::Int(n); length as usize]))
                }
                (TypeKind::Float, Ok(n)) => Some(Constant::Float(n as f64)),
                (_, Ok(n)) => Some(Constant::Int(n)),
                (_, Err(_)) => word.parse::<f64>().ok().map(Constant::Float),
            },
        };
        value.ok_or_else(|| self.expected("a default value"))
    }

    fn string(&mut self) -> Result<Constant> {
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(Constant::str(out));
                }
                '\\' => out.push(match chars.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, 't')) => '\t',
                    Some((_, 'f')) => '\x0c',
                    Some((_, 'v')) => '\x0b',
                    Some((_, 'r')) => '\r',
                    Some((_, c)) => c,
                    None => break,
                }),
                c => out.push(c),
            }
        }
        Err(self.expected("a closing quote"))
    }
}

impl Annotated {
    fn into_argument(self, keyword_only: bool) -> Argument {
        Argument {
            name: SymbolId::new_const(0),
            ty: self.ty,
            broadcast: self.broadcast,
            default: None,
            keyword_only,
            alias: self.alias,
            element_alias: self.element_alias,
            hint: self.hint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let ctx = Context::new();
        let schema = parse_schema(&ctx, text).unwrap();
        schema.display(&ctx).to_string()
    }

    #[test]
    fn schemas_parse() {
        assert_eq!(
            shown("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
            "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
        );
        assert_eq!(
            shown("aten::format(str self, ...) -> str"),
            "aten::format(str self, ...) -> str"
        );
        assert_eq!(
            shown("aten::popitem.complex(Dict(complex, t)(a!) self) -> ((complex, t))"),
            "aten::popitem.complex(Dict(complex, t) self) -> ((complex, t))"
        );
        assert_eq!(
            shown("prim::ConstantChunk(...) -> ..."),
            "prim::ConstantChunk(...) -> ..."
        );
    }

    #[test]
    fn annotations_are_read() {
        let ctx = Context::new();
        let parse = |text| parse_schema(&ctx, text).unwrap();
        let add = parse("aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
        assert!(add.is_mutable());
        assert_eq!(add.arguments[0].alias, add.returns[0].alias);
        let split = parse("aten::split(Tensor(a -> *) self, int n, int dim=0) -> Tensor(a)[]");
        assert_eq!(
            split.arguments[0].alias.as_ref().unwrap().after.as_slice(),
            [AliasSet::Wildcard]
        );
        assert!(split.returns[0].alias.is_none() && split.returns[0].element_alias.is_some());
        let append = parse("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)");
        assert!(append.arguments[0].alias.as_ref().unwrap().is_write && append.arguments[0].element_alias.is_none());
        let conv = parse(
            "aten::f(SymInt[2] stride=1, int[2]? dim=None, str m=\"a\\n\", float e=1e-08, ScalarType? d=None) -> ()",
        );
        assert_eq!(conv.arguments[0].broadcast, Some(2));
        assert_eq!(conv.arguments[0].default.as_ref().unwrap().as_ints(), Some(vec![1, 1]));
        assert_eq!(conv.arguments[2].default.as_ref().unwrap().as_str(), Some("a\n"));
        assert_eq!(conv.arguments[4].hint, TypeHint::ScalarType);
        assert!(conv.returns.is_empty());
    }

    #[test]
    fn mistakes_are_placed() {
        let ctx = Context::new();
        let e = parse_schema(&ctx, "aten::x(Tensor self").unwrap_err();
        assert_eq!((e.expected, e.offset), (")", 19));
        assert_eq!(parse_schema(&ctx, "aten::x() ->").unwrap_err().expected, "a type");
        assert_eq!(
            parse_schema(&ctx, "aten::x() -> int junk junk").unwrap_err().expected,
            "the end of the schema"
        );
        let deep = format!("aten::x({}", "(".repeat(100_000));
        assert!(parse_schema(&ctx, &deep).is_err());
    }
}
