//! Reading of classes and signatures in module files.

use super::parse::Parser;
use crate::diagnostics::Parsed;
use crate::parse::types::parse_type;
use crate::parse::value::parse_constant;
use frazil_ir::schema::{Argument, FunctionSchema, TypeHint};
use frazil_ir::{AttributeKind, ClassDef, ClassKind, Constant, EnumConstant, Span, SymbolId, symbols};
use std::sync::Arc;

/// A class with the names of its methods' functions, which are looked up after all functions have been read.
pub(super) struct ClassItem {
    pub(super) def: ClassDef,
    pub(super) methods: Vec<(SymbolId, SymbolId, Span)>,
}

impl Parser<'_, '_> {
    /// Reads the rest of a class item, after its keyword: ` __torch__.Net { ... }`.
    pub(super) fn class(&mut self, kind: ClassKind) -> Parsed<ClassItem> {
        let name = self.symbol("a class's qualified name")?;
        let mut class = ClassItem {
            def: ClassDef::new(name, kind),
            methods: Vec::new(),
        };
        self.cur.expect(b'{', "behind the class's name")?;
        while !self.cur.eat(b'}') {
            self.member(&mut class)?;
        }
        Ok(class)
    }

    fn member(&mut self, class: &mut ClassItem) -> Parsed<()> {
        self.cur.skip_space();
        let start = self.cur.pos;
        let word = self.cur.word();
        let attribute = match word {
            "attribute" => Some(AttributeKind::Plain),
            "parameter" => Some(AttributeKind::Parameter),
            "buffer" => Some(AttributeKind::Buffer),
            "constant" | "member" | "signature" | "method" | "forward_hook" | "forward_pre_hook" => None,
            _ => {
                self.cur.pos = start;
                return Err(self
                    .cur
                    .unexpected("a member (`attribute`, `parameter`, `method`, ...) or `}`"));
            }
        };
        self.cur.skip_space();
        let at = self.cur.pos;
        let name = self.symbol("the member's name")?;
        let span = self.cur.span_from(at);
        let def = &mut class.def;
        if let Some(kind) = attribute {
            self.cur.expect(b':', "behind the attribute's name")?;
            let ty = parse_type(self.cur, self.ctx, &self.env.nominal)?;
            if def.attributes.contains_key(&name) {
                let message = format!("the attribute `{}` is given twice", self.ctx.name(name));
                return Err(self
                    .cur
                    .sink
                    .error("duplicate-attribute", message, span, "the second time"));
            }
            def.add_attribute(name, ty, kind);
            return Ok(());
        }
        match word {
            "constant" => {
                self.cur.expect(b'=', "behind the constant's name")?;
                let value = parse_constant(self.cur, self.ctx, &self.env, None)?;
                def.constants.insert(name, value);
            }
            "member" => {
                self.cur.expect(b'=', "behind the member's name")?;
                let value = parse_constant(self.cur, self.ctx, &self.env, None)?;
                let member = EnumConstant {
                    class: def.name,
                    name: self.ctx.name(name).into(),
                    value,
                };
                def.constants.insert(name, Constant::Enum(Arc::new(member)));
            }
            "signature" => {
                let schema = self.schema(name)?;
                class.def.signatures.insert(name, schema);
            }
            "method" => {
                self.cur.expect(b'=', "behind the method's name")?;
                let at = self.cur.pos;
                let function = self.symbol("a function's qualified name")?;
                let span = self.cur.span_from(at);
                class.methods.push((name, function, span));
            }
            "forward_hook" => def.forward_hooks.push(name),
            _ => def.forward_pre_hooks.push(name),
        }
        Ok(())
    }

    /// Reads a signature: `(self : T, x : Tensor, *, n : int = 1, ...) -> (Tensor) as name`.
    pub(super) fn schema(&mut self, name: SymbolId) -> Parsed<FunctionSchema> {
        let (arguments, is_vararg) = self.arguments()?;
        self.cur.skip_space();
        if !self.cur.rest().starts_with("->") {
            return Err(self.cur.unexpected("`->` behind the arguments"));
        }
        self.cur.pos += 2;
        let (returns, is_varret) = self.arguments()?;
        let name = if self.cur.eat_word("as") {
            self.symbol("the schema's name")?
        } else {
            name
        };
        Ok(FunctionSchema {
            name,
            overload: symbols::EMPTY,
            arguments,
            returns,
            is_vararg,
            is_varret,
        })
    }

    /// Reads `(name : Type = default, *, Type, ...)`. Returns true if it ends with dots, which represent any further arguments.
    fn arguments(&mut self) -> Parsed<(Vec<Argument>, bool)> {
        self.cur.expect(b'(', "before the arguments")?;
        let mut out = Vec::new();
        if self.cur.eat(b')') {
            return Ok((out, false));
        }
        let mut keyword_only = false;
        let mut more = false;
        loop {
            self.cur.skip_space();
            if self.cur.next_is(b"...") {
                self.cur.pos += 3;
                more = true;
                break;
            }
            if self.cur.eat(b'*') {
                keyword_only = true;
            } else {
                out.push(self.argument(keyword_only)?);
            }
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b')', "behind the arguments")?;
        Ok((out, more))
    }

    fn argument(&mut self, keyword_only: bool) -> Parsed<Argument> {
        self.cur.skip_space();
        let start = self.cur.pos;
        // The colon behind a name distinguishes it from a type.
        let mut name = symbols::EMPTY;
        if self.cur.peek() == b'"' || !self.cur.name().is_empty() {
            self.cur.pos = start;
            let found = self.cur.any_name("a name")?;
            if self.cur.eat(b':') {
                name = self.ctx.symbol(&found);
            } else {
                self.cur.pos = start;
            }
        }
        let ty = self.ty()?;
        let broadcast = if self.cur.eat_word("broadcast") {
            let count = self.cur.integer("how many a single number stands for")?;
            u32::try_from(count).ok()
        } else {
            None
        };
        let default = if self.cur.eat(b'=') {
            Some(parse_constant(self.cur, self.ctx, &self.env, Some(ty))?)
        } else {
            None
        };
        Ok(Argument {
            name,
            ty,
            broadcast,
            default,
            keyword_only,
            alias: None,
            element_alias: None,
            hint: TypeHint::None,
        })
    }
}
