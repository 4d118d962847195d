//! The overloads of an operator, as eager calls need them.

use frazil_ir::arguments::Parameter;
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Context, TypeId, TypeKind};
use frazil_runtime::import::Importer;
use frazil_runtime::{Operator, Registry, Value};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// The overloads of an operator.
pub(super) struct Family {
    pub(super) overloads: Vec<Overload>,
}

/// An overload, with the information that binding arguments needs.
pub(super) struct Overload {
    pub(super) schema: Arc<FunctionSchema>,
    pub(super) formals: Vec<Formal>,
    /// Number of leading arguments that may be given by position.
    pub(super) positional: usize,
    pub(super) output_types: SmallVec<[TypeId; 2]>,
    /// The operator, looked up at the first call.
    pub(super) operator: OnceLock<Option<Operator>>,
}

/// A formal argument of the schema.
pub(super) struct Formal {
    pub(super) name: Box<str>,
    pub(super) ty: TypeId,
    pub(super) is_tensor: bool,
    pub(super) is_keyword_only: bool,
    /// The default; `None` if the argument is required.
    pub(super) default: Option<Value>,
}

impl Parameter<&str> for Formal {
    fn is_named(&self, keyword: &&str) -> bool {
        *self.name == **keyword
    }

    fn is_keyword_only(&self) -> bool {
        self.is_keyword_only
    }

    fn has_default(&self) -> bool {
        self.default.is_some()
    }
}

impl Family {
    /// Returns the overloads of `operator`; `None` if there is no such operator.
    pub(super) fn find(registry: &Registry, operator: &str) -> Option<Family> {
        let name = registry.ctx().find_symbol(operator)?;
        let mut importer = Importer::new();
        let overloads = registry.catalogue().overloads(name);
        let overloads: Vec<_> = overloads
            .map(|schema| Overload::new(registry.ctx(), schema, &mut importer))
            .collect();
        (!overloads.is_empty()).then_some(Family { overloads })
    }
}

impl Overload {
    fn new(ctx: &Context, schema: Arc<FunctionSchema>, importer: &mut Importer) -> Overload {
        let formal = |a: &Argument| Formal {
            name: ctx.name(a.name).into(),
            ty: a.ty,
            is_tensor: matches!(ctx.type_kind(a.ty), TypeKind::Tensor(_)),
            is_keyword_only: a.keyword_only,
            default: a.default.as_ref().and_then(|d| importer.value(d, None).ok()),
        };
        let formals: Vec<Formal> = schema.arguments.iter().map(formal).collect();
        Overload {
            positional: schema.arguments.iter().take_while(|a| !a.keyword_only).count(),
            output_types: schema.returns.iter().map(|r| r.ty).collect(),
            operator: OnceLock::new(),
            formals,
            schema,
        }
    }
}
