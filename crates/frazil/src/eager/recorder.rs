//! Recording of the calls of a traced function as nodes of a graph.

use super::warning::{TracerWarning, WarningKind};
use crate::source_trace::operands::type_of;
use frazil_ir::{
    Builder, Constant, Context, DType, Device, Dim, Function, Graph, InsertPoint, SourceRange, SymbolId, TensorType,
    TypeId, TypeKind, ValueId, ValueName, symbols, types,
};
use frazil_runtime::export::Exporter;
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Operator, Value, Variant};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

/// A graph that grows with every call.
pub(crate) struct Recorder {
    pub(super) ctx: Arc<Context>,
    pub(super) graph: Graph,
    /// The value of each variable, by the variable's address; the variable is kept so that its address is not reused.
    values: HashMap<usize, (ValueId, TensorCell)>,
    /// Values by name.
    names: HashMap<String, ValueId>,
    /// One more than the last number that was assigned to a name, as PyTorch counts.
    numbers: HashMap<String, Option<u32>>,
    /// Dotted paths of parameters and buffers, by the address of their variable.
    attributes: HashMap<usize, String>,
    /// Submodules that have been accessed, by path; the root's is "".
    objects: HashMap<String, ValueId>,
    /// Classes of the root and of submodules, by path.
    classes: HashMap<String, TypeId>,
    exporter: Exporter,
    /// Functions that are recorded as calls, by name.
    pub functions: IndexMap<SymbolId, Function>,
    pub warnings: Vec<TracerWarning>,
    /// Records in-place operators as the variants that return new tensors.
    pub(super) force_outplace: bool,
    /// Source location of the calls, if it is not taken from Rust: a file and a line, or none.
    place: Option<Option<(String, u32)>>,
    pub(super) failure: Option<frazil_runtime::export::ExportError>,
}

impl Recorder {
    /// Returns a recorder of a function with these inputs; of a method, if there are classes.
    pub fn new(ctx: &Arc<Context>, classes: HashMap<String, TypeId>, force_outplace: bool) -> Recorder {
        let mut graph = Graph::new(Arc::clone(ctx));
        let mut objects = HashMap::new();
        if let Some(&root) = classes.get("") {
            let this = graph.add_input(root);
            graph.name_value(this, "self");
            objects.insert(String::new(), this);
        }
        Recorder {
            ctx: Arc::clone(ctx),
            graph,
            values: HashMap::new(),
            names: HashMap::new(),
            numbers: HashMap::new(),
            attributes: HashMap::new(),
            objects,
            classes,
            exporter: Exporter::new(),
            functions: IndexMap::new(),
            warnings: Vec::new(),
            force_outplace,
            place: None,
            failure: None,
        }
    }

    /// Adds an input of the graph for a variable.
    pub fn input(&mut self, cell: &TensorCell, name: &str) {
        let value = self.graph.add_input(type_of(&self.ctx, &cell.get()));
        self.name_value(value, name);
        self.define(cell, value);
    }

    /// Registers a variable as an attribute of the module.
    pub fn attribute(&mut self, cell: &TensorCell, path: &str) {
        self.attributes.insert(cell.address(), path.to_owned());
    }

    /// Returns the current value of a variable, if one is recorded.
    pub(super) fn known(&self, cell: &TensorCell) -> Option<ValueId> {
        self.values.get(&cell.address()).map(|(value, _)| *value)
    }

    /// Names the current value of a variable.
    pub fn name(&mut self, cell: &TensorCell, name: &str) {
        if let Some(value) = self.known(cell) {
            self.name_value(value, name);
        }
    }

    /// Names a value. As in PyTorch, a value that already has the name gets a numbered one, and numbers may have gaps.
    fn name_value(&mut self, value: ValueId, name: &str) {
        if let Some(old) = self.names.insert(name.to_owned(), value).filter(|&old| old != value) {
            let (base, number) = ValueName::split(name);
            let last = self.numbers.entry(base.to_owned()).or_default();
            let mut number = number
                .unwrap_or(1)
                .max(last.map_or(1, |last: u32| last.saturating_add(1)));
            while self.names.contains_key(&format!("{base}.{number}")) && number < u32::MAX {
                number += 1;
            }
            *last = Some(number.saturating_add(1));
            let replaced = format!("{base}.{number}");
            self.graph.name_value(old, &replaced);
            self.names.insert(replaced, old);
        }
        self.graph.name_value(value, name);
    }

    /// Warns that a tensor's elements are used outside of the trace.
    pub fn leaves(&mut self, _cell: &TensorCell, kind: &str, place: &Location<'_>) {
        self.warn(
            WarningKind::Value,
            place,
            format!(
                "a tensor becomes a {kind}: the graph does not know where it comes from, has it as a constant, and may be wrong for other inputs"
            ),
        );
    }

    fn warn(&mut self, kind: WarningKind, place: &Location<'_>, text: String) {
        let place = match &self.place {
            None => format!("{}:{}", place.file(), place.line()),
            Some(None) => String::new(),
            Some(Some((file, line))) => format!("{file}:{line}"),
        };
        self.warnings.push(TracerWarning { kind, place, text });
    }

    /// Records the size of a dimension as a tensor.
    pub fn size(&mut self, of: &TensorCell, dim: i64, size: &TensorCell, place: &Location<'_>) {
        let range = self.range(place);
        let tensor = self.tensor(of, range);
        let ty = self.ctx.type_of_kind(TypeKind::Tensor(TensorType {
            dtype: Some(DType::Long),
            device: Some(Device::CPU),
            sizes: Some(self.ctx.dim_list(&[] as &[Dim])),
            strides: Some(self.ctx.dim_list(&[])),
            ..TensorType::ANY
        }));
        let (kind, convert) = (self.ctx.symbol("aten::size"), symbols::PRIM_NUM_TO_TENSOR);
        let mut builder = self.builder(range);
        let dim = builder.constant(dim);
        let number = builder.op(kind, &[tensor, dim], types::INT);
        builder.set_range(None);
        let value = builder.op(convert, &[number], ty);
        self.define(size, value);
    }

    pub(super) fn plain(&mut self, value: &Value, range: Option<SourceRange>) -> ValueId {
        let constant = self.exporter.constant(value).unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            Constant::None
        });
        // As in PyTorch, omitted arguments have no source location.
        let range = range.filter(|_| !matches!(constant, Constant::None));
        self.builder(range).constant(constant)
    }

    /// Returns the current value of a variable: a recorded one, an attribute, or else a constant.
    pub(super) fn tensor(&mut self, cell: &TensorCell, range: Option<SourceRange>) -> ValueId {
        if let Some(value) = self.known(cell) {
            return value;
        }
        let value = match self.attributes.get(&cell.address()).cloned() {
            Some(path) => self.get_attribute(&path),
            None => self.plain(&Value::Tensor(cell.clone()), range),
        };
        self.define(cell, value);
        value
    }

    fn get_attribute(&mut self, path: &str) -> ValueId {
        let (owner, name) = path.rsplit_once('.').unwrap_or(("", path));
        let object = self.object(owner);
        let name = self.ctx.symbol(name);
        self.builder(None).get_attr(object, name, types::TENSOR)
    }

    /// Returns the submodule at a path, read from its nearest parent that has been read.
    fn object(&mut self, path: &str) -> ValueId {
        let mut known = path;
        while !self.objects.contains_key(known) && !known.is_empty() {
            known = known.rsplit_once('.').map_or("", |(owner, _)| owner);
        }
        let mut at = known.to_owned();
        // The root exists from the beginning: there are attributes only if there is a root.
        let mut object = self.objects.get(known).copied().unwrap_or_else(|| self.plain_none());
        for name in path[known.len()..].split('.').filter(|name| !name.is_empty()) {
            at = crate::script_module::join(&at, name);
            let ty = self.classes.get(&at).copied().unwrap_or(types::ANY);
            let name = self.ctx.symbol(name);
            object = self.builder(None).get_attr(object, name, ty);
            self.objects.insert(at.clone(), object);
        }
        object
    }

    fn plain_none(&mut self) -> ValueId {
        self.builder(None).constant(Constant::None)
    }

    /// Records a call that has run.
    pub fn call(&mut self, operator: &Operator, operands: &[ValueId], results: &[Value], place: &Location<'_>) {
        let is_traced = |v: &Value| matches!(v, Value::Tensor(_) | Value::List(_));
        if !results.is_empty() && !results.iter().any(is_traced) {
            return;
        }
        let name = operator.schema().name;
        let out_of_place = self
            .ctx
            .name(name)
            .strip_suffix('_')
            .filter(|_| self.force_outplace && operator.variant() == Variant::InPlace);
        let kind = out_of_place.map_or(name, |name| self.ctx.symbol(name));
        let range = self.range(place);
        self.results(kind, operands, results, range);
    }

    /// Records a call of a function without tracing its body.
    pub fn call_function(&mut self, function: &Function, args: &[TensorCell], results: &[Value], place: &Location<'_>) {
        let range = self.range(place);
        let ty = self.ctx.type_of_kind(TypeKind::Function(function.name));
        let mut operands = vec![
            self.builder(range)
                .constant_typed(Constant::Function(function.name), ty),
        ];
        for arg in args {
            operands.push(self.tensor(arg, range));
        }
        self.functions.insert(function.name, function.clone());
        self.results(symbols::PRIM_CALL_FUNCTION, &operands, results, range);
    }

    fn results(&mut self, kind: SymbolId, operands: &[ValueId], results: &[Value], range: Option<SourceRange>) {
        let ctx = Arc::clone(&self.ctx);
        let types: Vec<TypeId> = results.iter().map(|v| type_of_value(&ctx, v)).collect();
        let node = self.builder(range).node(kind, operands, &types);
        let outputs = self.graph.node_outputs(node).to_vec();
        for (value, output) in results.iter().zip(outputs) {
            match value {
                Value::Tensor(cell) => self.define(cell, output),
                Value::List(list) => {
                    let items = list.items();
                    let types: Vec<TypeId> = items.iter().map(|v| type_of_value(&ctx, v)).collect();
                    let unpack = self.builder(None).node(symbols::PRIM_LIST_UNPACK, &[output], &types);
                    let outputs = self.graph.node_outputs(unpack).to_vec();
                    for (item, output) in items.iter().zip(outputs) {
                        if let Value::Tensor(cell) = item {
                            self.define(cell, output);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Warns if an in-place operator, which may be recorded out of place, writes to memory that other variables refer to. As in PyTorch, all existing
    /// variables are counted, including the written one.
    pub(super) fn warn_of_shared_write(&mut self, values: &[Value], operator: SymbolId, place: &Location<'_>) {
        let ctx = Arc::clone(&self.ctx);
        let name = ctx.name(operator).rsplit(':').next().unwrap_or_default();
        if !name.ends_with('_') || name.ends_with("__") {
            return;
        }
        let Some(target) = values.first().and_then(Value::as_tensor) else {
            return;
        };
        let refers = |(_, cell): &&(ValueId, TensorCell)| cell.is_shared() && cell.get().shares_storage(&target);
        let references = self.values.values().filter(refers).count();
        if references > 1 {
            let assignment = if name == "copy_" {
                " (possibly due to an assignment)"
            } else {
                ""
            };
            self.warn(
                WarningKind::SharedWrite,
                place,
                format!(
                    "There are {references} live references to the data region being modified when tracing in-place operator {name}{assignment}. The graph may \
                     have a new tensor in place of the written one, and then the other references do not have the change"
                ),
            );
        }
    }

    fn define(&mut self, cell: &TensorCell, value: ValueId) {
        self.values.insert(cell.address(), (value, cell.clone()));
    }

    pub(super) fn builder(&mut self, range: Option<SourceRange>) -> Builder<'_> {
        let root = self.graph.root();
        let mut builder = Builder::new(&mut self.graph, InsertPoint::End(root));
        builder.set_range(range);
        builder
    }

    pub(super) fn range(&self, place: &Location<'_>) -> Option<SourceRange> {
        let (file, line) = match &self.place {
            None => (place.file(), place.line()),
            Some(place) => place.as_ref().map(|(file, line)| (file.as_str(), *line))?,
        };
        Some(SourceRange {
            file: self.ctx.symbol(file),
            line,
            column: 0,
            length: 0,
        })
    }

    /// Sets the source location of the following calls.
    pub fn set_place(&mut self, place: Option<(&str, u32)>) {
        self.place = Some(place.map(|(file, line)| (file.to_owned(), line)));
    }
}

fn type_of_value(ctx: &Context, value: &Value) -> TypeId {
    match value {
        Value::Tensor(cell) => type_of(ctx, &cell.get()),
        other => other.ty(ctx),
    }
}
