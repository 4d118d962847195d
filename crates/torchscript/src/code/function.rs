//! Printing of functions: signatures, and the printer that iterates over the nodes of a function's graphs.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use frazil_ir::schema::{Argument, Catalogue, FunctionSchema};
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{
    BlockId, CompilationUnit, Constant, Context, Function, Graph, NodeId, SourceRange, TypeId, TypeKind, ValueId,
    symbols, types,
};

use super::constants::{ConstantTable, write_constant};
use super::dependencies::Dependencies;
use super::error::CodeError;
use super::inline::{index, inlined_nodes};
use super::names::{Names, base_name, identifier_of};
use super::statement::Step;
use super::text::CodeText;

/// Inputs of the printer besides the printed function.
#[derive(Clone, Copy)]
pub(super) struct PrinterContext<'a> {
    pub(super) ctx: &'a Context,
    /// The unit that contains the classes to which types refer; `None` for a graph by itself.
    pub(super) unit: Option<&'a CompilationUnit>,
    pub(super) catalogue: &'a Catalogue,
    /// Whether the printed text must compile, so that constructs which the compiler does not accept are errors.
    pub(super) importable: bool,
}

/// Results of the printer besides the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) constants: ConstantTable,
    pub(super) dependencies: Dependencies,
    /// The oldest file format in which all printed operators have the same meaning as in the graph.
    pub(super) min_version: u64,
}

/// A printed file: the text so far, and the names in use.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) body: CodeText,
    pub(super) names: Names,
}

/// The text by which a use of a value is printed.
#[derive(Clone)]
pub(super) enum Use {
    /// The name of a variable that has the value.
    Name(Rc<str>),
    /// The expression that computes the value, which is printed at its only use.
    Expression(Rc<CodeText>),
}

impl Use {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Use::Name(name) => name,
            Use::Expression(text) => text.as_str(),
        }
    }
}

/// The printer's state for one graph: the function's own, or that of a nested function.
pub(super) struct GraphState<'g> {
    pub(super) graph: &'g Graph,
    inlined: Vec<bool>,
    names: HashMap<ValueId, Rc<str>>,
    expressions: HashMap<ValueId, Rc<CodeText>>,
    /// Values of optional and union types that have an annotated declaration.
    pub(super) declared: HashSet<ValueId>,
    /// For each node, the number of leading operands whose expressions have already been printed as statements.
    pub(super) split: HashMap<NodeId, usize>,
}

impl<'g> GraphState<'g> {
    fn new(graph: &'g Graph) -> GraphState<'g> {
        GraphState {
            graph,
            inlined: inlined_nodes(graph),
            names: HashMap::new(),
            expressions: HashMap::new(),
            declared: HashSet::new(),
            split: HashMap::new(),
        }
    }

    pub(super) fn is_inlined(&self, node: NodeId) -> bool {
        self.inlined.get(index(node)).copied().unwrap_or(false)
    }

    pub(super) fn set_name(&mut self, value: ValueId, name: Rc<str>) {
        self.names.insert(value, name);
    }

    pub(super) fn set_expression(&mut self, value: ValueId, text: Rc<CodeText>) {
        self.expressions.insert(value, text);
    }

    pub(super) fn has_expression(&self, value: ValueId) -> bool {
        self.expressions.contains_key(&value)
    }
}

/// Index in [`FunctionPrinter::graphs`].
pub(super) type GraphIndex = usize;

/// Prints one function into a file.
pub(super) struct FunctionPrinter<'p> {
    pub(super) context: PrinterContext<'p>,
    pub(super) tables: &'p mut Tables,
    pub(super) file: &'p mut File,
    /// The graphs of the function and of the nested functions reached so far.
    pub(super) graphs: Vec<GraphState<'p>>,
    /// Work list of the printer. The last step is next.
    pub(super) steps: Vec<Step>,
    pub(super) level: usize,
    /// Source range of the node that is being printed.
    pub(super) range: Option<SourceRange>,
}

type Result<T, E = CodeError> = std::result::Result<T, E>;

impl<'p> FunctionPrinter<'p> {
    /// Prints `def name(...) -> ...:` and the body. `annotate_first` says whether the type of the first argument is printed; for a method by itself it is not.
    pub(super) fn print(
        context: PrinterContext<'p>,
        tables: &'p mut Tables,
        file: &'p mut File,
        function: &'p Function,
        annotate_first: bool,
        level: usize,
    ) -> Result<()> {
        file.names.start_function();
        let mut printer = FunctionPrinter {
            context,
            tables,
            file,
            graphs: vec![GraphState::new(&function.graph)],
            steps: Vec::new(),
            level,
            range: None,
        };
        printer.header(function, annotate_first)?;
        printer.open_body(0)?;
        printer.run()
    }

    fn header(&mut self, function: &Function, annotate_first: bool) -> Result<()> {
        let ctx = self.context.ctx;
        let name = ctx.name(function.name);
        let derived;
        let schema = if function.schema.is_vararg && function.schema.arguments.is_empty() {
            derived = schema_of_graph(&function.graph);
            &derived
        } else {
            &function.schema
        };
        let inputs = function.graph.inputs();
        let fail = |why: String| CodeError::Function {
            name: name.to_owned(),
            why,
        };
        if inputs.len() != schema.arguments.len() {
            return Err(fail(format!(
                "its graph takes {} values, its signature says {}",
                inputs.len(),
                schema.arguments.len()
            )));
        }
        self.indent();
        self.push("def ");
        self.push(name.rsplit('.').next().unwrap_or(name));
        self.push("(");
        for (i, (argument, &input)) in schema.arguments.iter().zip(inputs).enumerate() {
            self.depend(argument.ty);
            let name = self.file.names.unique(&identifier_of(ctx.name(argument.name)));
            self.push(if i > 0 { ",\n    " } else { "" });
            self.push(&name);
            if i > 0 || annotate_first {
                self.push(": ");
                self.push_type(argument.ty);
                self.graphs[0].declared.insert(input);
            }
            if let Some(default) = &argument.default {
                let text = self.constant_text(default)?;
                self.push("=");
                self.push(&text);
            }
            self.graphs[0].set_name(input, name);
        }
        let Some(result) = schema.returns.first() else {
            return Err(fail("it returns nothing".into()));
        };
        self.push(") -> ");
        self.push_type(result.ty);
        self.push(":\n");
        self.depend(result.ty);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        while let Some(step) = self.steps.pop() {
            self.step(step)?;
        }
        Ok(())
    }

    // --- graphs and values

    pub(super) fn graph(&self, graph: GraphIndex) -> &'p Graph {
        self.graphs[graph].graph
    }

    pub(super) fn add_graph(&mut self, graph: &'p Graph) -> GraphIndex {
        self.graphs.push(GraphState::new(graph));
        self.graphs.len() - 1
    }

    /// Returns the text by which a use of `value` is printed.
    pub(super) fn use_of(&self, graph: GraphIndex, value: ValueId) -> Result<Use> {
        let state = &self.graphs[graph];
        // A variable is preferred: it says that the expression has been evaluated already.
        if let Some(name) = state.names.get(&value) {
            return Ok(Use::Name(Rc::clone(name)));
        }
        if let Some(text) = state.expressions.get(&value) {
            return Ok(Use::Expression(Rc::clone(text)));
        }
        let why = "an operand is used before it is defined".to_owned();
        match state.graph.defining_node(value) {
            Some(node) => Err(CodeError::node(state.graph, node, why)),
            None => Err(CodeError::Function {
                name: "graph".into(),
                why,
            }),
        }
    }

    /// Assigns new variable names to `values`.
    pub(super) fn name_values(&mut self, graph: GraphIndex, values: &[ValueId]) {
        for &value in values {
            let base = base_name(self.graph(graph), value).map(identifier_of);
            let name = self.file.names.unique(base.as_deref().unwrap_or("_"));
            self.graphs[graph].set_name(value, name);
        }
    }

    /// Sets the source range of the text printed next to that of `node`.
    pub(super) fn locate(&mut self, graph: GraphIndex, node: NodeId) {
        self.range = self.graph(graph).source_range(node).filter(|r| !r.is_of_text());
    }

    /// Returns the operands of `node`.
    pub(super) fn operands(&self, graph: GraphIndex, node: NodeId) -> Vec<ValueId> {
        self.graph(graph).operands(node).collect()
    }

    pub(super) fn results(&self, graph: GraphIndex, block: BlockId) -> Vec<ValueId> {
        self.graph(graph).results(block).collect()
    }

    // --- types and constants

    pub(super) fn kind_of_type(&self, ty: TypeId) -> TypeKind {
        self.context.ctx.type_kind(ty)
    }

    pub(super) fn type_text(&self, ty: TypeId) -> String {
        display_type(self.context.ctx, ty, TypeStyle::Annotation).to_string()
    }

    pub(super) fn depend(&mut self, ty: TypeId) {
        self.tables
            .dependencies
            .add_type(self.context.ctx, self.context.unit, ty);
    }

    pub(super) fn constant_text(&mut self, value: &Constant) -> Result<String> {
        let mut text = String::new();
        write_constant(self.context.ctx, &mut self.tables.constants, value, &mut text)?;
        Ok(text)
    }

    // --- output

    pub(super) fn push(&mut self, text: &str) {
        self.file.body.push(self.range, text);
    }

    pub(super) fn push_type(&mut self, ty: TypeId) {
        let text = self.type_text(ty);
        self.push(&text);
    }

    pub(super) fn indent(&mut self) {
        for _ in 0..self.level {
            self.push("  ");
        }
    }

    pub(super) fn push_use(&mut self, graph: GraphIndex, value: ValueId) -> Result<()> {
        match self.use_of(graph, value)? {
            Use::Name(name) => self.push(&name),
            Use::Expression(text) => self.file.body.append(&text),
        }
        Ok(())
    }

    /// Appends the texts of the values, separated by commas.
    pub(super) fn push_list(&mut self, graph: GraphIndex, values: &[ValueId]) -> Result<()> {
        for (i, &value) in values.iter().enumerate() {
            self.push(if i > 0 { ", " } else { "" });
            self.push_use(graph, value)?;
        }
        Ok(())
    }
}

/// Returns a signature for a graph without a signature. Arguments have the names of the graph's inputs, and types have no shapes.
fn schema_of_graph(graph: &Graph) -> FunctionSchema {
    let ctx = graph.ctx();
    let argument = |name, ty| Argument {
        name,
        ty: unshaped(ctx, ty),
        broadcast: None,
        default: None,
        keyword_only: false,
        alias: None,
        element_alias: None,
        hint: frazil_ir::schema::TypeHint::None,
    };
    let inputs = graph.inputs().iter().enumerate().map(|(i, &input)| {
        let name = base_name(graph, input).map_or_else(|| format!("argument_{i}"), str::to_owned);
        argument(ctx.symbol(&name), graph.ty(input))
    });
    let outputs = graph.outputs().map(|output| argument(symbols::EMPTY, graph.ty(output)));
    FunctionSchema {
        name: symbols::EMPTY,
        overload: symbols::EMPTY,
        arguments: inputs.collect(),
        returns: outputs.collect(),
        is_vararg: false,
        is_varret: false,
    }
}

/// Returns the type with `Tensor` in place of every refined tensor type, as annotations have it.
fn unshaped(ctx: &Context, ty: TypeId) -> TypeId {
    if ctx.is_tensor(ty) { types::TENSOR } else { ty }
}
