//! From kernel specs to MLIR.
//!
//! Each kernel becomes a module with one function for each of its phases, `void name(ptr buffers, i64 begin, i64 end)`: it
//! runs the phase's tasks `begin..end` on the buffers whose addresses `buffers` lists. Beside it the module declares the functions of libm that it calls.

pub mod builder;
mod conv;
mod depthwise;
mod epilogue;
pub mod expr;
mod gemm;
mod loops;
pub mod math;
mod pool;
mod reorder;
mod window;
mod winograd;

use crate::compile::phase_name;
use crate::kernel::{GemmB, KernelSpec};
use crate::target::{Machine, Target};
use builder::{Emitter, Int, Val};
use melior::Context;
use melior::ir::attribute::{StringAttribute, TypeAttribute};
use melior::ir::operation::OperationBuilder;
use melior::ir::r#type::FunctionType;
use melior::ir::{
    Block, BlockLike, BlockRef, Identifier, Location, Module, Region, RegionLike, Type, Value, ValueLike,
};

/// A kernel's spec that has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Its scalar expression has none.
    #[error(transparent)]
    Expr(#[from] expr::UnsupportedExpr),
    /// The spec contradicts itself.
    #[error("kernel {kernel}: {reason}")]
    InvalidSpec {
        /// The kernel's name.
        kernel: String,
        /// What is wrong.
        reason: String,
    },
}

/// What a kernel emitter works with: the current block, the buffers, and the range of tasks.
pub struct Kernel<'c> {
    /// The emitter, at the start of the function.
    pub e: Emitter<'c>,
    /// Address of each buffer.
    pub buffers: Vec<Val<'c>>,
    begin: Val<'c>,
    end: Val<'c>,
}

impl<'c> Kernel<'c> {
    /// Emits the loop over the tasks. `body` is given the task's number.
    fn for_each_task(&mut self, body: impl FnOnce(&mut Emitter<'c>, &[Val<'c>], Int<'c>)) {
        let Kernel { e, buffers, begin, end } = self;
        e.for_each(Int::Dyn(*begin), Int::Dyn(*end), 1, |e, task| body(e, buffers, task));
    }
}

/// The image, tile of channels and block of rows of `task`, of as many as `[images, tiles, row_blocks]` says.
///
/// With `rows_first` an image is divided into a few parts, each of which is done with all of its channels before the next: of two, four, ...
/// threads each then has the rows in this kernel that it had in the one before, and finds them in its cache. More parts would read the
/// weights more often.
fn image_task<'c>(
    e: &mut Emitter<'c>,
    task: Int<'c>,
    [images, tiles, row_blocks]: [i64; 3],
    rows_first: bool,
) -> [Int<'c>; 3] {
    let most = e.target.machine.partition.image_parts;
    let divides = |parts: &i64| row_blocks % parts == 0;
    let parts = match rows_first {
        true => (2..=most).rev().find(divides).unwrap_or(row_blocks),
        false => 1,
    };
    let each = row_blocks / parts;
    let at = e.delinearize(task, &[images, parts, tiles, each]);
    let row_block = e.linear([(each, at[1]), (1, at[3])], 0);
    [at[0], at[2], row_block]
}

/// The number of parts into which the next weights are split for prefetching: a power of two, 1 when prefetching is not worthwhile. Each of the
/// `passes` passes over the current weights prefetches one part; one step of a pass prefetches at most `lines` cache lines.
fn prefetch_parts(machine: &Machine, passes: i64, lines: i64) -> i64 {
    let most = passes.min(lines).min(machine.partition.prefetch_parts).max(1);
    1 << most.ilog2()
}

/// Emits `spec` for `target` as a module whose functions are called `name` and, for further phases, [`phase_name`].
pub fn emit_kernel<'c>(
    context: &'c Context,
    name: &str,
    spec: &KernelSpec,
    target: &'c Target,
) -> Result<Module<'c>, EmitError> {
    check(name, spec)?;
    let location = Location::unknown(context);
    let module = Module::new(location);
    let mut externals = std::collections::BTreeMap::new();
    for phase in 0..spec.phases().len() {
        emit_phase(
            (context, target),
            &module,
            &phase_name(name, phase),
            spec,
            &mut externals,
        );
    }
    for (symbol, ty) in externals {
        let function = OperationBuilder::new("func.func", location)
            .add_attributes(&[
                (
                    Identifier::new(context, "sym_name"),
                    StringAttribute::new(context, &symbol).into(),
                ),
                (Identifier::new(context, "function_type"), TypeAttribute::new(ty).into()),
                (
                    Identifier::new(context, "sym_visibility"),
                    StringAttribute::new(context, "private").into(),
                ),
            ])
            .add_regions([Region::new()])
            .build()
            .expect("only result type inference, which is not used, can fail");
        module.body().append_operation(function);
    }
    Ok(module)
}

fn emit_phase<'c>(
    (context, target): (&'c Context, &'c Target),
    module: &Module<'c>,
    name: &str,
    spec: &KernelSpec,
    externals: &mut std::collections::BTreeMap<String, Type<'c>>,
) {
    let location = Location::unknown(context);
    let ptr = melior::dialect::llvm::r#type::pointer(context, 0);
    let i64: Type = melior::ir::r#type::IntegerType::new(context, 64).into();
    let arguments = [ptr, i64, i64];
    let region = Region::new();
    let block = region.append_block(Block::new(&arguments.map(|t| (t, location))));
    // SAFETY: the block and its arguments belong to the region, which becomes part of the module that outlives the emitter.
    let (block, arguments) = unsafe {
        let value = |i: usize| -> Val<'c> {
            let v: Value = block.argument(i).expect("three arguments").into();
            Val::from_raw(v.to_raw())
        };
        (
            BlockRef::<'c, 'c>::from_raw(block.to_raw()),
            [value(0), value(1), value(2)],
        )
    };
    let mut e = Emitter::new(context, block, target);
    let buffers = (0..spec.buffer_count() as i64)
        .map(|i| {
            let address = e.offset(arguments[0], i, 8);
            e.load(address, ptr, 8)
        })
        .collect();
    let mut kernel = Kernel {
        e,
        buffers,
        begin: arguments[1],
        end: arguments[2],
    };
    // A product with a number that is not normal takes as long as a hundred others, and there are many where a softmax has gone over scores
    // with -100 for what is masked. In a sum they do not count. Products with constant weights, which do not meet those, save the
    // time that changing modes takes.
    let contracts = matches!(spec, KernelSpec::Gemm(k) if k.b != GemmB::Packed);
    let modes = contracts.then(|| kernel.e.take_denormals_for_zeros()).flatten();
    match spec {
        KernelSpec::Gemm(k) => gemm::emit(&mut kernel, k),
        KernelSpec::Conv(k) => match k.winograd {
            None => conv::emit(&mut kernel, k),
            Some(w) => winograd::emit(&mut kernel, k, w),
        },
        KernelSpec::WinogradWeights(k) => winograd::emit_weights(&mut kernel, k),
        KernelSpec::Depthwise(k) => depthwise::emit(&mut kernel, k),
        KernelSpec::Pool(k) => pool::emit(&mut kernel, k),
        KernelSpec::Reorder(k) => reorder::emit(&mut kernel, k),
        KernelSpec::CopyChannels(k) => reorder::emit_copy(&mut kernel, k),
        KernelSpec::Loops(k) => loops::emit(&mut kernel, k),
        // It has no phases.
        KernelSpec::Host(_) => {}
    }
    kernel.e.restore_modes(modes);
    kernel.e.op("func.return", &[], &[], &[], Vec::new());
    externals.append(&mut kernel.e.externals);
    let function = OperationBuilder::new("func.func", location)
        .add_attributes(&[
            (
                Identifier::new(context, "sym_name"),
                StringAttribute::new(context, name).into(),
            ),
            (
                Identifier::new(context, "function_type"),
                TypeAttribute::new(FunctionType::new(context, &[ptr, i64, i64], &[]).into()).into(),
            ),
        ])
        .add_regions([region])
        .build()
        .expect("only result type inference, which is not used, can fail");
    module.body().append_operation(function);
}

/// Refuses specs that the emitters would get wrong.
fn check(name: &str, spec: &KernelSpec) -> Result<(), EmitError> {
    if let Some(epilogue) = spec.epilogue() {
        expr::check(&epilogue.expr)?;
        let inputs = epilogue.expr.input_count();
        if inputs > epilogue.operands.len() + 1 {
            let reason = format!("the epilogue reads {inputs} values of {}", epilogue.operands.len() + 1);
            return Err(EmitError::InvalidSpec {
                kernel: name.to_owned(),
                reason,
            });
        }
    }
    if let KernelSpec::Loops(k) = spec {
        loops::check(k).map_err(|reason| EmitError::InvalidSpec {
            kernel: name.to_owned(),
            reason,
        })?;
        for stage in &k.stages {
            stage.expressions().try_for_each(expr::check)?;
        }
    }
    Ok(())
}
