//! Implementation of [`Host`] for tracing. While [`walk`] executes the function, each value is paired with its representation in the traced graph.

use super::{MAX_NODES, Noted, Result, Traced, Tracing};
use frazil_ir::{Constant, Graph, SymbolId, TypeId, TypeKind, types};
use frazil_runtime::interp::walk::{At, GraphPlan, Host, Nesting, Operands, Outputs, walk};
use frazil_runtime::interp::{ErrorKind, ExecError, MissingOperator};
use frazil_runtime::op::Operator;
use frazil_runtime::registry::Lookup;
use frazil_runtime::value::ObjectValue;
use frazil_runtime::{Registry, Value, is_instance};
use std::sync::Arc;

impl Host for Tracing<'_> {
    type Value = Traced;
    type Error = String;

    fn nesting(&mut self) -> &mut Nesting {
        &mut self.nesting
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn too_deep(&self, message: String) -> String {
        format!("calls nest too deeply to be traced: {message}")
    }

    fn take_step(&mut self) -> Result<()> {
        self.nodes += 1;
        match self.nodes > MAX_NODES {
            true => Err(format!("the traced function runs more than {MAX_NODES} operations")),
            false => Ok(()),
        }
    }

    fn located(&self, error: String, _: At<'_>) -> String {
        error
    }

    fn known(&mut self, Traced(value, _): Traced) -> Result<Option<Value>> {
        Ok(Some(value))
    }

    fn undecided(&mut self, at: At<'_>, found: Option<Value>) -> Result<()> {
        let kind = at.graph.kind_name(at.node);
        let found = found.unwrap_or_default();
        Err(format!("{kind} needs a condition, not {found:?}"))
    }

    fn type_of(&self, Traced(value, _): &Traced) -> Option<TypeId> {
        Some(match value {
            Value::Tensor(_) => types::TENSOR,
            other => other.ty(&self.ctx),
        })
    }

    fn is_instance(&mut self, _: At<'_>, Traced(value, _): &Traced, ty: TypeId) -> Result<Option<bool>> {
        let holds = is_instance(&self.ctx, Some(&self.module.unit), value, ty, &|_| None);
        holds.map(Some).ok_or_else(|| {
            let ty = types::display_type(&self.ctx, ty, types::TypeStyle::Ir);
            format!("isinstance with {ty} needs a definition of that interface")
        })
    }

    fn operator(&mut self, at: At<'_>, op: &Operator, operands: Operands<Traced>) -> Result<Outputs<Traced>> {
        let inputs: Vec<(Value, Noted)> = operands.into_iter().map(Into::into).collect();
        self.note_operator(at, op, &inputs)
    }

    fn missing(&mut self, _: At<'_>, all: &[MissingOperator]) -> Result<()> {
        Err(ExecError::new(ErrorKind::Missing(all.to_vec())).to_string())
    }

    fn unresolved(&mut self, at: At<'_>, _: &Lookup, _: &[TypeId]) -> Result<()> {
        Err(format!(
            "no overload of {} takes these operands",
            at.graph.kind_name(at.node)
        ))
    }

    fn attribute(&mut self, _: At<'_>, Traced(object, _): Traced, name: SymbolId) -> Result<Traced> {
        let (object, slot) = self.slot(&object, name)?;
        if let Some(&training) = self.training.get(&object.address())
            && self.ctx.name(name) == "training"
        {
            return Ok(Value::Bool(training).into());
        }
        Ok(object.slot(slot).unwrap_or_default().into())
    }

    fn set_attribute(
        &mut self,
        _: At<'_>,
        Traced(object, _): Traced,
        name: SymbolId,
        Traced(value, _): Traced,
    ) -> Result<()> {
        let (object, slot) = self.slot(&object, name)?;
        object.set_slot(slot, value);
        Ok(())
    }

    fn item(&mut self, at: At<'_>, container: Traced, index: Traced) -> Result<Traced> {
        self.unnoted(at, &[container, index])
    }

    fn create(&mut self, _: At<'_>, class: SymbolId) -> Result<Traced> {
        let slots = self.module.unit.class(class).map_or(0, |class| class.attributes.len());
        Ok(Value::Object(ObjectValue::new(class, vec![Value::None; slots])).into())
    }

    fn call_method(&mut self, at: At<'_>, name: SymbolId, operands: Operands<Traced>) -> Result<Traced> {
        self.method(at, name, operands.into_iter().map(Into::into).collect())
    }

    fn call_function(&mut self, At { graph, node }: At<'_>, operands: Operands<Traced>) -> Result<Traced> {
        let mut operands = operands.into_iter();
        let Some(Traced(Value::Function(name), _)) = operands.next() else {
            return Err("a call of something that is no function".to_owned());
        };
        let Some(id) = self.module.unit.find_function(name) else {
            return Err(format!("there is no function '{}'", self.ctx.name(name)));
        };
        let args: Vec<(Value, Noted)> = operands.map(Into::into).collect();
        let value = match self.is_python(id) {
            true => self.function(id, args)?,
            false => {
                let ty = self.ctx.type_of_kind(TypeKind::Function(name));
                let function = self.builder().constant_typed(Constant::Function(name), ty);
                self.call(graph, node, id, &[function], &args)?
            }
        };
        Ok(value.into())
    }

    fn enter(&mut self, at: At<'_>, object: Traced) -> Result<Traced> {
        let name = self.ctx.symbol("__enter__");
        self.method(at, name, vec![object.into()])
    }

    fn exit(&mut self, at: At<'_>, object: Traced) -> Result<Traced> {
        let name = self.ctx.symbol("__exit__");
        let mut args = vec![object.into()];
        args.extend(std::iter::repeat_n((Value::None, Noted::Constant), 3));
        self.method(at, name, args)
    }

    fn print(&mut self, at: At<'_>, operands: Operands<Traced>) -> Result<()> {
        self.unnoted(at, &operands).map(drop)
    }

    fn warn(&mut self, at: At<'_>, operands: Operands<Traced>) -> Result<()> {
        self.unnoted(at, &operands).map(drop)
    }

    fn raise(&mut self, _: At<'_>, Traced(message, _): Traced, _: Traced) -> String {
        match message.as_str() {
            Some(text) => format!("the traced function raises: {text}"),
            None => "the traced function raises".to_owned(),
        }
    }

    fn part(&mut self, _: At<'_>, graph: &Arc<Graph>, operands: Operands<Traced>) -> Result<Vec<Traced>> {
        let plan = GraphPlan::new(graph, &self.registry, &mut self.importer, Some(self.module));
        walk(self, graph, &plan, operands)
    }

    fn fork(&mut self, at: At<'_>, _: &Arc<Graph>, operands: Operands<Traced>) -> Result<Traced> {
        self.unnoted(at, &operands)
    }

    fn wait(&mut self, at: At<'_>, future: Traced) -> Result<Traced> {
        self.unnoted(at, &[future])
    }
}
