//! Printing of expressions: the right-hand sides of statements.

use std::sync::Arc;

use frazil_ir::schema::FunctionSchema;
use frazil_ir::{AttributeValue, Constant, NodeId, TypeId, TypeKind, ValueId, literal, symbols, types};

use super::constants::{is_vague, typed};
use super::dependencies::Dependency;
use super::error::CodeError;
use super::function::{FunctionPrinter, GraphIndex, Use};
use super::names::is_identifier;
use super::text::CodeText;

type Result<T, E = CodeError> = std::result::Result<T, E>;

/// Operators that are printed as calls of Python's builtin functions.
const PYTHON_FUNCTIONS: &[(&str, &str)] = &[
    ("aten::Bool", "bool"),
    ("aten::Float", "float"),
    ("aten::Int", "int"),
    ("aten::sorted", "sorted"),
    ("aten::str", "str"),
    ("prim::Print", "print"),
];

/// Operators whose name in code differs from the node's kind.
const RENAMED: &[(&str, &str)] = &[
    ("aten::backward", "torch.autograd.backward"),
    ("aten::grad", "torch.autograd.grad"),
];

impl FunctionPrinter<'_> {
    /// Returns the expression whose value is the outputs of `node`.
    pub(super) fn right_hand_side(&mut self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let g = self.graph(graph);
        let kind = g.kind_name(node);
        if let Some((_, function)) = PYTHON_FUNCTIONS.iter().find(|(operator, _)| *operator == kind) {
            let mut out = self.text(function);
            self.list(&mut out, graph, &self.operands(graph, node), ["(", ")"])?;
            return Ok(out);
        }
        match kind {
            "prim::Constant" => self.constant(graph, node),
            "prim::Uninitialized" => Ok(self.text(&format!("uninitialized({})", self.output_type(graph, node)?))),
            "aten::ScalarImplicit" | "aten::FloatImplicit" | "aten::IntImplicit" | "aten::ComplexImplicit" => {
                self.typed_form(graph, node, "annotate", "")
            }
            "prim::unchecked_cast" | "prim::unchecked_unwrap_optional" => {
                self.typed_form(graph, node, "unchecked_cast", "")
            }
            "prim::tolist" => self.typed_form(graph, node, "annotate", ".tolist()"),
            "aten::__getitem__" if g.operand_count(node) == 2 => self.item(graph, node),
            "prim::TupleConstruct" => self.tuple(graph, node),
            "prim::TupleIndex" => {
                let [tuple, index] = self.exactly(graph, node)?;
                let mut out = self.parenthesised(graph, tuple)?;
                self.list(&mut out, graph, &[index], ["[", "]"])?;
                Ok(out)
            }
            "prim::TupleSlice" => self.tuple_slice(graph, node),
            "prim::ListConstruct" => self.list_display(graph, node),
            "prim::DictConstruct" => self.dict_display(graph, node),
            "prim::CreateObject" => {
                let class = self.output_type(graph, node)?;
                Ok(self.text(&format!("{class}.__new__({class})")))
            }
            "prim::GetAttr" => self.get_attribute(graph, node),
            "prim::CallFunction" => self.call_function(graph, node),
            "prim::CallMethod" => self.call_method(graph, node),
            "aten::_unwrap_optional" => self.unwrap_optional(graph, node),
            "prim::isinstance" => self.isinstance(graph, node),
            "prim::EnumValue" | "prim::EnumName" => {
                let [member] = self.exactly(graph, node)?;
                let mut out = self.parenthesised(graph, member)?;
                out.push(self.range, if kind == "prim::EnumName" { ".name" } else { ".value" });
                Ok(out)
            }
            _ if kind.starts_with('^') => self.python_function(graph, node),
            _ => self.operator_call(graph, node),
        }
    }

    // --- pieces

    fn text(&self, text: &str) -> CodeText {
        let mut out = CodeText::default();
        out.push(self.range, text);
        out
    }

    pub(super) fn append_use(&self, out: &mut CodeText, graph: GraphIndex, value: ValueId) -> Result<()> {
        match self.use_of(graph, value)? {
            Use::Name(name) => out.push(self.range, &name),
            Use::Expression(text) => out.append(&text),
        }
        Ok(())
    }

    /// Appends the values in brackets, separated by commas.
    fn list(&self, out: &mut CodeText, graph: GraphIndex, values: &[ValueId], [open, close]: [&str; 2]) -> Result<()> {
        out.push(self.range, open);
        for (i, &value) in values.iter().enumerate() {
            out.push(self.range, if i > 0 { ", " } else { "" });
            self.append_use(out, graph, value)?;
        }
        out.push(self.range, close);
        Ok(())
    }

    fn parenthesised(&self, graph: GraphIndex, value: ValueId) -> Result<CodeText> {
        let mut out = self.text("(");
        self.append_use(&mut out, graph, value)?;
        out.push(self.range, ")");
        Ok(out)
    }

    /// Returns the operands of `node`. Fails unless there are exactly `N`.
    fn exactly<const N: usize>(&self, graph: GraphIndex, node: NodeId) -> Result<[ValueId; N]> {
        let operands = self.operands(graph, node);
        <[ValueId; N]>::try_from(operands.as_slice()).map_err(|_| {
            let why = format!("it has {} operands instead of {N}", operands.len());
            CodeError::node(self.graph(graph), node, why)
        })
    }

    fn type_of_output(&self, graph: GraphIndex, node: NodeId) -> Result<TypeId> {
        let g = self.graph(graph);
        let output = g.output(node);
        output
            .map(|output| g.ty(output))
            .ok_or_else(|| CodeError::node(g, node, "it does not have one result"))
    }

    fn output_type(&self, graph: GraphIndex, node: NodeId) -> Result<String> {
        Ok(self.type_text(self.type_of_output(graph, node)?))
    }

    /// Returns the expression `form(Type, operand)` for `node`.
    fn typed_form(&self, graph: GraphIndex, node: NodeId, form: &str, suffix: &str) -> Result<CodeText> {
        let Some(operand) = self.graph(graph).operand(node, 0) else {
            return Err(CodeError::node(self.graph(graph), node, "it has no operand"));
        };
        let mut out = self.text(&format!("{form}({}, ", self.output_type(graph, node)?));
        self.append_use(&mut out, graph, operand)?;
        out.push(self.range, suffix);
        out.push(self.range, ")");
        Ok(out)
    }

    // --- constants and containers

    fn constant(&mut self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let g = self.graph(graph);
        let ty = self.type_of_output(graph, node)?;
        if let Some(AttributeValue::Elided(text)) = g.attribute(node, symbols::ATTR_VALUE) {
            let index = self.tables.constants.add_elided(text);
            return Ok(self.text(&format!("CONSTANTS.c{index}")));
        }
        let value = g
            .constant_of(node)
            .ok_or_else(|| CodeError::node(g, node, "it has no value"))?;
        let text = match value {
            Constant::Function(name) => {
                self.tables.dependencies.add(Dependency::Function(name));
                self.context.ctx.name(name).to_owned()
            }
            value => {
                let value = typed(self.context.ctx, &value, ty);
                self.constant_text(&value)?
            }
        };
        Ok(self.text(&text))
    }

    fn tuple(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let ty = self.type_of_output(graph, node)?;
        let name = match self.kind_of_type(ty) {
            TypeKind::NamedTuple(name, ..) => self.context.ctx.name(name),
            _ => "",
        };
        let operands = self.operands(graph, node);
        let mut out = self.text(name);
        let close = if operands.len() == 1 { ",)" } else { ")" };
        self.list(&mut out, graph, &operands, ["(", close])?;
        Ok(out)
    }

    fn tuple_slice(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let g = self.graph(graph);
        let bound = |name: &str| {
            let name = self.context.ctx.find_symbol(name)?;
            g.attribute(node, name)?.as_constant()?.as_int()
        };
        let (Some(tuple), Some(begin), Some(end)) = (g.operand(node, 0), bound("beg"), bound("end")) else {
            return Err(CodeError::node(g, node, "it takes a tuple, `beg` and `end`"));
        };
        let mut out = self.parenthesised(graph, tuple)?;
        out.push(self.range, &format!("[{begin}:{end}]"));
        Ok(out)
    }

    /// Returns the expression `[a, b]`, annotated if the elements do not determine the type.
    fn list_display(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let ty = self.type_of_output(graph, node)?;
        let TypeKind::List(element) = self.kind_of_type(ty) else {
            return Err(CodeError::node(self.graph(graph), node, "its result is no list"));
        };
        let operands = self.operands(graph, node);
        let vague = operands.is_empty() || is_vague(self.context.ctx, element);
        let mut out = CodeText::default();
        if vague {
            out.push(self.range, &format!("annotate({}, ", self.type_text(ty)));
        }
        self.list(&mut out, graph, &operands, ["[", "]"])?;
        out.push(self.range, if vague { ")" } else { "" });
        Ok(out)
    }

    /// Returns the expression `{k: v}`, annotated if the entries do not determine the type.
    fn dict_display(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let ty = self.type_of_output(graph, node)?;
        let TypeKind::Dict(key, value) = self.kind_of_type(ty) else {
            return Err(CodeError::node(self.graph(graph), node, "its result is no dictionary"));
        };
        let operands = self.operands(graph, node);
        let ctx = self.context.ctx;
        let vague = operands.is_empty() || is_vague(ctx, key) || is_vague(ctx, value);
        let mut out = CodeText::default();
        if vague {
            out.push(self.range, &format!("annotate({}, ", self.type_text(ty)));
        }
        out.push(self.range, "{");
        for (i, pair) in operands.chunks(2).enumerate() {
            let &[key, value] = pair else {
                let why = "a key has no value";
                return Err(CodeError::node(self.graph(graph), node, why));
            };
            out.push(self.range, if i > 0 { ", " } else { "" });
            self.append_use(&mut out, graph, key)?;
            out.push(self.range, ": ");
            self.append_use(&mut out, graph, value)?;
        }
        out.push(self.range, if vague { "})" } else { "}" });
        Ok(out)
    }

    /// Returns the expression `x[i]`, with parentheses around `x` unless it is a variable.
    fn item(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let [container, index] = self.exactly(graph, node)?;
        let container = self.use_of(graph, container)?;
        let mut out = match container.as_str() {
            name if is_identifier(name) => self.text(name),
            other => self.text(&format!("({other})")),
        };
        self.list(&mut out, graph, &[index], ["[", "]"])?;
        Ok(out)
    }

    // --- objects and calls

    fn get_attribute(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let [object] = self.exactly(graph, node)?;
        let name = self.name_attribute(graph, node)?;
        if is_identifier(name) {
            let mut out = CodeText::default();
            self.append_use(&mut out, graph, object)?;
            out.push(self.range, ".");
            out.push(self.range, name);
            return Ok(out);
        }
        let mut out = self.text("getattr(");
        self.append_use(&mut out, graph, object)?;
        let mut quoted = String::from(", ");
        literal::quoted(name, false, &mut quoted);
        quoted.push(')');
        out.push(self.range, &quoted);
        Ok(out)
    }

    fn name_attribute(&self, graph: GraphIndex, node: NodeId) -> Result<&str> {
        let g = self.graph(graph);
        let name = g.attribute_symbol(node, symbols::ATTR_NAME);
        name.map(|name| self.context.ctx.name(name))
            .ok_or_else(|| CodeError::node(g, node, "it has no `name`"))
    }

    /// Appends the arguments of a call, each followed by a comma.
    fn arguments(&self, out: &mut CodeText, graph: GraphIndex, arguments: &[ValueId]) -> Result<()> {
        out.push(self.range, "(");
        for &argument in arguments {
            self.append_use(out, graph, argument)?;
            out.push(self.range, ", ");
        }
        out.push(self.range, ")");
        Ok(())
    }

    fn call_function(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let operands = self.operands(graph, node);
        let [function, arguments @ ..] = operands.as_slice() else {
            return Err(CodeError::node(self.graph(graph), node, "it has no function"));
        };
        let mut out = CodeText::default();
        self.append_use(&mut out, graph, *function)?;
        self.arguments(&mut out, graph, arguments)?;
        Ok(out)
    }

    fn call_method(&mut self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let operands = self.operands(graph, node);
        let [object, arguments @ ..] = operands.as_slice() else {
            return Err(CodeError::node(self.graph(graph), node, "it has no object"));
        };
        let mut out = self.parenthesised(graph, *object)?;
        out.push(self.range, ".");
        out.push(self.range, self.name_attribute(graph, node)?);
        self.arguments(&mut out, graph, arguments)?;
        match self.kind_of_type(self.graph(graph).ty(*object)) {
            TypeKind::Class(class) | TypeKind::Interface(class) => {
                self.tables.dependencies.add(Dependency::Class(class));
                Ok(out)
            }
            _ => Err(CodeError::node(self.graph(graph), node, "its object is of no class")),
        }
    }

    /// Returns a call of a Python function (`@torch.jit.ignore`), which archives cannot contain.
    fn python_function(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        if self.context.importable {
            return Err(CodeError::node(
                self.graph(graph),
                node,
                "Python functions cannot be exported",
            ));
        }
        let mut out = self.text(self.graph(graph).kind_name(node));
        self.list(&mut out, graph, &self.operands(graph, node), ["(", ")"])?;
        Ok(out)
    }

    // --- types

    fn unwrap_optional(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let [value] = self.exactly(graph, node)?;
        let mut out = self.text("torch._unwrap_optional(");
        // What `None` would be says the annotation.
        let is_none = self.graph(graph).ty(value) == types::NONE;
        if is_none {
            let ty = self.context.ctx.optional_of(self.type_of_output(graph, node)?);
            out.push(self.range, &format!("annotate({}, ", self.type_text(ty)));
        }
        self.append_use(&mut out, graph, value)?;
        out.push(self.range, if is_none { "))" } else { ")" });
        Ok(out)
    }

    fn isinstance(&self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let [value] = self.exactly(graph, node)?;
        let Some(AttributeValue::Types(types)) = self.graph(graph).attribute(node, symbols::ATTR_TYPES) else {
            return Err(CodeError::node(self.graph(graph), node, "it has no `types`"));
        };
        let mut out = self.text("isinstance(");
        self.append_use(&mut out, graph, value)?;
        let names: Vec<String> = types.iter().map(|&ty| self.type_text(ty)).collect();
        out.push(
            self.range,
            &match names.as_slice() {
                [one] => format!(", {one})"),
                many => format!(", ({}))", many.join(", ")),
            },
        );
        Ok(out)
    }

    // --- operators

    /// Prints a call such as `torch.add(x, y)` or `ops.prim.dtype(x)`. Arguments with default values are left out; names are printed where they are required.
    fn operator_call(&mut self, graph: GraphIndex, node: NodeId) -> Result<CodeText> {
        let g = self.graph(graph);
        let kind = g.kind_name(node);
        if let Some(attribute) = g.attributes(node).first() {
            let name = self.context.ctx.name(attribute.name);
            return Err(CodeError::node(
                g,
                node,
                format!("a call has no place for its attribute `{name}`"),
            ));
        }
        let is_open = |schema: &Arc<FunctionSchema>| schema.is_varret;
        let found = self.context.catalogue.resolve(g, node).found();
        if self.context.importable && !g.node_outputs(node).is_empty() && found.is_some_and(|s| is_open(&s)) {
            let why = "source cannot call it: its schema does not say how many results it has";
            return Err(CodeError::node(g, node, why));
        }
        let mut out = CodeText::default();
        match (
            RENAMED.iter().find(|(operator, _)| *operator == kind),
            kind.split_once("::"),
        ) {
            (Some((_, name)), _) => out.push(self.range, name),
            (None, Some(("aten", name))) => {
                out.push(self.range, "torch.");
                out.push(self.range, name);
            }
            (None, Some((namespace, name))) => out.push(self.range, &format!("ops.{namespace}.{name}")),
            (None, None) => return Err(CodeError::node(g, node, "its name has no namespace")),
        }
        out.push(self.range, "(");
        for (i, (keyword, value)) in self.written_arguments(graph, node).into_iter().enumerate() {
            out.push(self.range, if i > 0 { ", " } else { "" });
            if let Some(keyword) = keyword {
                out.push(self.range, self.context.ctx.name(keyword));
                out.push(self.range, "=");
            }
            self.append_use(&mut out, graph, value)?;
        }
        out.push(self.range, ")");
        Ok(out)
    }
}
