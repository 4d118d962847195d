//! Statements and control flow.
//!
//! The walk over blocks uses an explicit list of steps instead of recursion, because blocks can be nested arbitrarily deeply.

use std::rc::Rc;

use frazil_ir::{AttributeValue, BlockId, Constant, NodeId, TypeKind, ValueId, symbols};

use super::error::CodeError;
use super::function::{FunctionPrinter, GraphIndex, Use};
use super::split::is_long;
use super::text::CodeText;

type Result<T, E = CodeError> = std::result::Result<T, E>;

/// A pending step of the printer.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Prints the remaining nodes of a block, starting with the given node.
    Nodes(GraphIndex, Option<NodeId>),
    /// Prints the `else` branch of an `if`, after the first branch.
    Else(GraphIndex, NodeId),
    /// Ends an `if`, after both branches.
    EndIf(GraphIndex, NodeId),
    /// Ends a loop, after its body.
    EndLoop(GraphIndex, NodeId, LoopForm),
    /// Ends the body of a function: prints its result.
    EndBody(GraphIndex),
    /// Ends an indented suite that started at the given byte offset of the text.
    EndSuite(usize),
    /// Ends a nested function, and prints the node that calls it by the given name.
    EndNested(GraphIndex, NodeId, Rc<str>),
}

/// The kind of statement that represents a `prim::Loop`.
#[derive(Clone, Debug)]
pub(super) enum LoopForm {
    /// `for i in range(n)`, a loop without early exit.
    For,
    /// `while`, a loop without a counter.
    While,
    /// `while` with a counter of the given name. Passes create such loops, which have both a trip count and a condition.
    Counted(Rc<str>),
}

impl FunctionPrinter<'_> {
    pub(super) fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Nodes(_, None) => Ok(()),
            Step::Nodes(graph, Some(node)) => {
                self.steps.push(Step::Nodes(graph, self.graph(graph).next(node)));
                self.node(graph, node)
            }
            Step::Else(graph, node) => self.else_side(graph, node),
            Step::EndIf(graph, node) => self.end_if(graph, node),
            Step::EndLoop(graph, node, form) => self.end_loop(graph, node, &form),
            Step::EndBody(graph) => self.end_body(graph),
            Step::EndSuite(start) => {
                if self.file.body.len() == start {
                    self.indent();
                    self.push("pass\n");
                }
                Ok(())
            }
            Step::EndNested(graph, node, name) => {
                self.locate(graph, node);
                let function = match self.graph(graph).kind_name(node) {
                    "prim::awaitable" => "awaitable",
                    _ => "fork",
                };
                let mut call = CodeText::default();
                call.push(self.range, &format!("{function}({name})"));
                self.definition(graph, node, &call)
            }
        }
    }

    /// Starts the body of a function: prints the constants of `graph` that are too long for an expression, and schedules the steps for its nodes and result.
    pub(super) fn open_body(&mut self, graph: GraphIndex) -> Result<()> {
        self.level += 1;
        for constant in self.constants_in_order_of_use(graph) {
            self.locate(graph, constant);
            self.register(graph, constant);
            self.expression(graph, constant)?;
        }
        let root = self.graph(graph).root();
        self.steps.push(Step::EndBody(graph));
        self.range = None;
        self.block(graph, root, self.graph(graph).results(root).len() > 0);
        Ok(())
    }

    fn end_body(&mut self, graph: GraphIndex) -> Result<()> {
        let root = self.graph(graph).root();
        let results = self.results(graph, root);
        self.locate(graph, self.graph(graph).return_node(root));
        self.register(graph, self.graph(graph).return_node(root));
        if self.context.importable && results.len() != 1 {
            return Err(CodeError::Function {
                name: "graph".into(),
                why: format!("it returns {} values, only one is allowed", results.len()),
            });
        }
        if !results.is_empty() {
            self.indent();
            self.push("return ");
            self.push_list(graph, &results)?;
            self.push("\n");
        }
        self.level -= 1;
        Ok(())
    }

    /// Returns the constants that nodes of the graph use, each once, in the order of their uses in the text.
    fn constants_in_order_of_use(&self, graph: GraphIndex) -> Vec<NodeId> {
        let g = self.graph(graph);
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::new();
        let mut note = |node: NodeId| {
            for operand in g.operands(node) {
                let constant = g
                    .defining_node(operand)
                    .filter(|&n| g.kind(n) == symbols::PRIM_CONSTANT);
                found.extend(constant.filter(|&constant| seen.insert(constant)));
            }
        };
        // Blocks that are being gone through: the next node, and the block.
        let mut open = vec![(g.first(g.root()), g.root())];
        while let Some((next, block)) = open.last_mut() {
            let Some(node) = *next else {
                note(g.return_node(*block));
                open.pop();
                continue;
            };
            *next = g.next(node);
            note(node);
            open.extend(g.node_blocks(node).iter().rev().map(|&inner| (g.first(inner), inner)));
        }
        found
    }

    /// Schedules the nodes of `block` before all other steps. `goes_on` is true if another statement follows in the same suite.
    fn block(&mut self, graph: GraphIndex, block: BlockId, goes_on: bool) {
        if !goes_on {
            // A block may have nodes and no lines: constants are printed where they are used.
            self.steps.push(Step::EndSuite(self.file.body.len()));
        }
        self.steps.push(Step::Nodes(graph, self.graph(graph).first(block)));
    }

    fn node(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        self.locate(graph, node);
        self.register(graph, node);
        let g = self.graph(graph);
        if g.kind(node) == symbols::PRIM_CONSTANT {
            return Ok(());
        }
        match g.kind_name(node) {
            "prim::If" => self.if_statement(graph, node),
            "prim::Loop" => self.loop_statement(graph, node),
            "prim::TupleUnpack" | "prim::ListUnpack" => self.unpack(graph, node),
            "prim::SetAttr" => self.set_attribute(graph, node),
            "prim::fork" => self.nested(graph, node, "__forked_function"),
            "prim::awaitable" => self.nested(graph, node, "__awaitable_function"),
            "prim::Closure" => self.closure(graph, node),
            "prim::Enter" => self.enter(graph, node),
            "prim::Exit" => {
                let empty = g.previous(node).is_some_and(|n| g.kind_name(n) == "prim::Enter");
                if empty {
                    self.indent();
                    self.push("pass\n");
                }
                self.level = self.level.saturating_sub(1);
                Ok(())
            }
            "prim::ModuleContainerIndex" => self.container_item(graph, node),
            _ => self.expression(graph, node),
        }
    }

    /// Registers the classes to which `node` refers as dependencies.
    fn register(&mut self, graph: GraphIndex, node: NodeId) {
        let g = self.graph(graph);
        for value in g.operands(node) {
            self.depend(g.ty(value));
        }
        for &value in g.node_outputs(node) {
            self.depend(g.ty(value));
        }
        for attribute in g.attributes(node) {
            match &attribute.value {
                AttributeValue::Type(ty) => self.depend(*ty),
                AttributeValue::Types(types) => types.iter().for_each(|&ty| self.depend(ty)),
                _ => {}
            }
        }
    }

    /// Prints a node without blocks as a statement, or stores its expression for the only use of its output.
    fn expression(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let text = self.right_hand_side(graph, node)?;
        let long = is_long(text.len(), self.level);
        let state = &mut self.graphs[graph];
        let is_constant = state.graph.kind(node) == symbols::PRIM_CONSTANT;
        let output = state.graph.output(node).filter(|_| state.is_inlined(node));
        match output {
            // A long constant gets a line of its own; other expressions have to keep their order.
            Some(output) if !(is_constant && long) => {
                state.set_expression(output, Rc::new(text));
                if long { self.split_long(graph, output) } else { Ok(()) }
            }
            _ => self.definition(graph, node, &text),
        }
    }

    /// Prints the statement `a, b = text`, where `a` and `b` are the outputs of `node`.
    pub(super) fn definition(&mut self, graph: GraphIndex, node: NodeId, text: &CodeText) -> Result<()> {
        let outputs = self.graph(graph).node_outputs(node);
        self.name_values(graph, outputs);
        self.indent();
        if !outputs.is_empty() {
            self.push_list(graph, outputs)?;
            self.push(" = ");
        }
        self.file.body.append(text);
        self.push("\n");
        Ok(())
    }

    /// Prints the statement `a, b = x, y`.
    fn assignment(&mut self, graph: GraphIndex, targets: &[ValueId], values: &[ValueId]) -> Result<()> {
        if targets.is_empty() {
            return Ok(());
        }
        self.indent();
        self.push_list(graph, targets)?;
        // Python has no annotations in assignments to several variables.
        if let &[target] = targets
            && !self.graphs[graph].has_expression(target)
            && self.is_optional(graph, target)
            && self.graphs[graph].declared.insert(target)
        {
            self.push(" : ");
            self.push_type(self.graph(graph).ty(target));
        }
        self.push(" = ");
        self.push_list(graph, values)?;
        self.push("\n");
        Ok(())
    }

    fn is_optional(&self, graph: GraphIndex, value: ValueId) -> bool {
        let kind = self.kind_of_type(self.graph(graph).ty(value));
        matches!(kind, TypeKind::Optional(_) | TypeKind::Union(_))
    }

    fn if_statement(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let g = self.graph(graph);
        let (Some(condition), &[then, _]) = (g.operand(node, 0), g.node_blocks(node)) else {
            return Err(CodeError::node(g, node, "it takes a condition and two blocks"));
        };
        let outputs = g.node_outputs(node);
        self.name_values(graph, outputs);
        self.indent();
        self.push("if ");
        self.push_use(graph, condition)?;
        self.push(":\n");
        self.level += 1;
        self.steps.push(Step::Else(graph, node));
        self.block(graph, then, !outputs.is_empty());
        Ok(())
    }

    fn else_side(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        self.end_side(graph, node, 0)?;
        self.indent();
        self.push("else:\n");
        self.level += 1;
        self.steps.push(Step::EndIf(graph, node));
        let g = self.graph(graph);
        if let Some(&side) = g.node_blocks(node).get(1) {
            self.block(graph, side, !g.node_outputs(node).is_empty());
        }
        Ok(())
    }

    fn end_if(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        self.end_side(graph, node, 1)
    }

    fn end_side(&mut self, graph: GraphIndex, node: NodeId, side: usize) -> Result<()> {
        self.locate(graph, node);
        let g = self.graph(graph);
        if let Some(&block) = g.node_blocks(node).get(side) {
            let results = self.results(graph, block);
            self.assignment(graph, g.node_outputs(node), &results)?;
        }
        self.level -= 1;
        Ok(())
    }

    fn loop_statement(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let g = self.graph(graph);
        let operands = self.operands(graph, node);
        let ([trip_count, condition, initial @ ..], &[body]) = (operands.as_slice(), g.node_blocks(node)) else {
            return Err(CodeError::node(
                g,
                node,
                "it takes a trip count, a condition and a block",
            ));
        };
        let (outputs, parameters) = (g.node_outputs(node), g.parameters(body));
        let &[counter, ref carried @ ..] = parameters else {
            return Err(CodeError::node(g, node, "its block has no counter"));
        };
        if outputs.len() != initial.len() || carried.len() != initial.len() || g.results(body).len() != parameters.len()
        {
            return Err(CodeError::node(g, node, "the numbers of carried values differ"));
        }
        self.name_values(graph, outputs);
        // One variable stands for the value before, in and after the loop.
        for (&parameter, &output) in carried.iter().zip(outputs) {
            let variable = self.use_of(graph, output)?;
            let mut text = CodeText::default();
            text.push(self.range, variable.as_str());
            self.graphs[graph].set_expression(parameter, Rc::new(text));
        }
        for (&output, &value) in outputs.iter().zip(initial) {
            self.indent();
            self.push_use(graph, output)?;
            let declare = if self.is_optional(graph, output) {
                self.graphs[graph].declared.insert(output)
            } else {
                g.ty(output) != g.ty(value)
            };
            if declare {
                self.push(": ");
                self.push_type(g.ty(output));
            }
            self.push(" = ");
            self.push_use(graph, value)?;
            self.push("\n");
        }
        let form = self.loop_form(graph, node, body, counter);
        let goes_on = match form {
            LoopForm::For => {
                self.name_values(graph, &[counter]);
                self.indent();
                self.push("for ");
                self.push_use(graph, counter)?;
                self.push(" in range(");
                self.push_use(graph, *trip_count)?;
                self.push("):\n");
                !carried.is_empty()
            }
            LoopForm::While => {
                // The counter is unused: its value stands for the condition, which needs a variable.
                self.name_values(graph, &[counter]);
                self.assignment(graph, &[counter], &[*condition])?;
                self.indent();
                self.push("while ");
                self.push_use(graph, counter)?;
                self.push(":\n");
                true
            }
            LoopForm::Counted(ref condition_name) => {
                self.name_values(graph, &[counter]);
                self.start_counting(graph, counter, *trip_count, *condition, condition_name)?;
                true
            }
        };
        self.level += 1;
        self.steps.push(Step::EndLoop(graph, node, form));
        self.block(graph, body, goes_on);
        Ok(())
    }

    fn loop_form(&mut self, graph: GraphIndex, node: NodeId, body: BlockId, counter: ValueId) -> LoopForm {
        let g = self.graph(graph);
        let constant = |value: Option<ValueId>| value.and_then(|value| g.constant(value));
        let is_true = |value: Option<ValueId>| match constant(value) {
            Some(Constant::Bool(b)) => b,
            Some(Constant::Int(i)) => i != 0,
            _ => false,
        };
        let endless = constant(g.operand(node, 0)).and_then(|c| c.as_int()) == Some(i64::MAX);
        if is_true(g.operand(node, 1)) && is_true(g.operand(g.return_node(body), 0)) {
            LoopForm::For
        } else if endless && !g.has_uses(counter) {
            LoopForm::While
        } else {
            LoopForm::Counted(self.file.names.unique("_"))
        }
    }

    /// Prints `i = 0`, and the condition of a loop that has both a counter and a condition.
    fn start_counting(
        &mut self,
        graph: GraphIndex,
        counter: ValueId,
        trip_count: ValueId,
        condition: ValueId,
        condition_name: &str,
    ) -> Result<()> {
        self.indent();
        self.push_use(graph, counter)?;
        self.push(" = 0\n");
        self.indent();
        self.push(condition_name);
        self.push(" = torch.__and__(torch.gt(");
        self.push_use(graph, trip_count)?;
        self.push(", 0), ");
        self.push_use(graph, condition)?;
        self.push(")\n");
        self.indent();
        self.push("while ");
        self.push(condition_name);
        self.push(":\n");
        Ok(())
    }

    fn end_loop(&mut self, graph: GraphIndex, node: NodeId, form: &LoopForm) -> Result<()> {
        self.locate(graph, node);
        let g = self.graph(graph);
        let &[body] = g.node_blocks(node) else { return Ok(()) };
        let results = self.results(graph, body);
        let parameters = g.parameters(body);
        match form {
            LoopForm::For => self.assignment(graph, &parameters[1..], &results[1..])?,
            LoopForm::While => self.assignment(graph, parameters, &results)?,
            LoopForm::Counted(condition) => {
                let next = self.file.names.unique("_");
                let go_on = self.file.names.unique("_");
                let trip_count = self.operands(graph, node)[0];
                self.indent();
                self.push(&format!("{next} = torch.add("));
                self.push_use(graph, parameters[0])?;
                self.push(", 1)\n");
                self.indent();
                self.push(&format!("{go_on} = torch.__and__(torch.lt({next}, "));
                self.push_use(graph, trip_count)?;
                self.push("), ");
                self.push_use(graph, results[0])?;
                self.push(")\n");
                self.indent();
                self.push(&format!("{condition}, "));
                self.push_list(graph, parameters)?;
                self.push(&format!(" = {go_on}, {next}"));
                for &result in &results[1..] {
                    self.push(", ");
                    self.push_use(graph, result)?;
                }
                self.push("\n");
            }
        }
        self.level -= 1;
        Ok(())
    }

    /// Prints the statement `a, b, = x`. The trailing comma distinguishes unpacking from assignment.
    fn unpack(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let g = self.graph(graph);
        let Some(whole) = g.operand(node, 0) else {
            return Err(CodeError::node(g, node, "it takes one operand"));
        };
        let outputs = g.node_outputs(node);
        self.name_values(graph, outputs);
        self.indent();
        if !outputs.is_empty() {
            self.push_list(graph, outputs)?;
            self.push(", = ");
        }
        self.push_use(graph, whole)?;
        self.push("\n");
        Ok(())
    }

    fn set_attribute(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let g = self.graph(graph);
        let name = g.attribute_symbol(node, symbols::ATTR_NAME);
        let (Some(object), Some(value), Some(name)) = (g.operand(node, 0), g.operand(node, 1), name) else {
            return Err(CodeError::node(g, node, "it takes an object, a value and a name"));
        };
        self.indent();
        self.push_use(graph, object)?;
        self.push(".");
        self.push(self.context.ctx.name(name));
        self.push(" = ");
        self.push_use(graph, value)?;
        self.push("\n");
        Ok(())
    }

    /// Prints a nested function without arguments, which reads the node's operands by their names in the outer
    /// function.
    fn nested(&mut self, graph: GraphIndex, node: NodeId, name: &str) -> Result<()> {
        let g = self.graph(graph);
        let Some(AttributeValue::Graph(inner)) = g.attribute(node, symbols::ATTR_SUBGRAPH) else {
            return Err(CodeError::node(g, node, "it has no graph"));
        };
        let operands = self.operands(graph, node);
        if operands.len() != inner.inputs().len() {
            return Err(CodeError::node(g, node, "its graph takes another number of values"));
        }
        let name = self.file.names.unique(name);
        self.indent();
        self.push("def ");
        self.push(&name);
        self.push("():\n");
        let nested = self.add_graph(inner);
        for (&input, operand) in inner.inputs().iter().zip(operands) {
            let mut text = CodeText::default();
            match self.use_of(graph, operand)? {
                Use::Name(name) => text.push(self.range, &name),
                Use::Expression(expression) => text.append(&expression),
            }
            self.graphs[nested].set_expression(input, Rc::new(text));
        }
        self.steps.push(Step::EndNested(graph, node, name));
        self.open_body(nested)
    }

    /// Prints a nested function with parameters of its own, which archives cannot contain.
    fn closure(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let g = self.graph(graph);
        if self.context.importable {
            return Err(CodeError::node(g, node, "closures cannot be exported"));
        }
        let (Some(output), Some(AttributeValue::Graph(inner))) =
            (g.output(node), g.attribute(node, symbols::ATTR_SUBGRAPH))
        else {
            return Err(CodeError::node(g, node, "it has no graph"));
        };
        self.name_values(graph, &[output]);
        self.indent();
        self.push("def ");
        self.push_use(graph, output)?;
        self.push("(");
        let nested = self.add_graph(inner);
        self.name_values(nested, inner.inputs());
        for (i, &input) in inner.inputs().iter().enumerate() {
            self.push(if i > 0 { ", " } else { "" });
            self.push_use(nested, input)?;
            self.push(": ");
            self.push_type(inner.ty(input));
        }
        self.push("):\n");
        self.open_body(nested)
    }

    /// Prints `with x as y:`. The nodes up to `prim::Exit` are its body.
    fn enter(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let g = self.graph(graph);
        let (Some(manager), Some(entered)) = (g.operand(node, 0), g.output(node)) else {
            return Err(CodeError::node(g, node, "it takes one operand and gives one result"));
        };
        self.indent();
        self.push("with ");
        self.push_use(graph, manager)?;
        if g.has_uses(entered) {
            self.name_values(graph, &[entered]);
            self.push(" as ");
            self.push_use(graph, entered)?;
        }
        self.push(":\n");
        self.level += 1;
        Ok(())
    }

    /// Prints the statement `x : Interface = modules[i]`.
    fn container_item(&mut self, graph: GraphIndex, node: NodeId) -> Result<()> {
        let g = self.graph(graph);
        let (Some(container), Some(key), Some(item)) = (g.operand(node, 0), g.operand(node, 1), g.output(node)) else {
            return Err(CodeError::node(g, node, "it takes a container and a key"));
        };
        self.name_values(graph, &[item]);
        self.indent();
        self.push_use(graph, item)?;
        self.push(" : ");
        self.push_type(g.ty(item));
        self.push(" = ");
        self.push_use(graph, container)?;
        self.push("[");
        self.push_use(graph, key)?;
        self.push("]\n");
        Ok(())
    }
}
