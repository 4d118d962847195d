//! The MLIR module of a kernel.

use super::builder::{Emitter, Val};
use super::family::{EmitError, EmitKernel, Emitters};
use super::function::KernelFunction;
use frazil_executor::program::phase_name;
use frazil_planner::kernel::{KernelCode, buffer_count};
use frazil_planner::target::Target;
use melior::Context;
use melior::ir::attribute::{StringAttribute, TypeAttribute};
use melior::ir::operation::OperationBuilder;
use melior::ir::r#type::FunctionType;
use melior::ir::{
    Block, BlockLike, BlockRef, Identifier, Location, Module, Region, RegionLike, Type, Value, ValueLike,
};

/// Emits `code` for `target` as a module whose functions are called `name` and, for further phases, [`phase_name`].
///
/// # Errors
/// If the kernel's family has no emitter, or the kernel contradicts itself.
pub fn emit_kernel<'c>(
    context: &'c Context,
    name: &str,
    code: &KernelCode,
    target: &'c Target,
    emitters: &Emitters,
) -> Result<Module<'c>, EmitError> {
    let spec = code.kernel();
    let kernel = emitters.check(name, spec)?;
    let location = Location::unknown(context);
    let module = Module::new(location);
    let mut externals = std::collections::BTreeMap::new();
    for phase in 0..spec.phases().len() {
        let function = phase_name(name, phase);
        let phase = (kernel, code.is_argument(), phase);
        emit_phase((context, target), &module, &function, phase, &mut externals);
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
    (kernel, is_argument, phase): (&dyn EmitKernel, &[bool], usize),
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
    let count = buffer_count(kernel) as i64;
    let entry = |e: &mut Emitter<'c>, i: i64| {
        let address = e.offset(arguments[0], i, 8);
        e.load(address, ptr, 8)
    };
    let buffers = (0..count).map(|i| entry(&mut e, i)).collect();
    // The numbers lie in one array, whose address follows those of the buffers.
    let array = is_argument.contains(&true).then(|| entry(&mut e, count));
    let mut next = 0;
    let numbers = is_argument.iter().map(|is| {
        let array = array.filter(|_| *is)?;
        let address = e.offset(array, next, 8);
        next += 1;
        Some(e.load(address, i64, 8))
    });
    let numbers = numbers.collect();
    let mut function = KernelFunction {
        e,
        buffers,
        numbers,
        next_number: 0,
        begin: arguments[1],
        end: arguments[2],
    };
    let wanted = kernel.takes_denormals_for_zeros();
    let modes = wanted.then(|| function.e.take_denormals_for_zeros()).flatten();
    kernel.emit(&mut function, phase);
    function.e.restore_modes(modes);
    function.e.op("func.return", &[], &[], &[], Vec::new());
    externals.append(&mut function.e.externals);
    let operation = OperationBuilder::new("func.func", location)
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
    module.body().append_operation(operation);
}
