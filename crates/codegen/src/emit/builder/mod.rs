//! A small typed emitter of MLIR operations.
//!
//! Addresses are byte-exact `!llvm.ptr` arithmetic with the constant part kept apart, so that LLVM recognises a base, an index and a displacement; sizes and
//! indices are `i64`; everything else is `arith`, `scf`, `vector` and `math`.

mod avx512;
mod integer;
mod memory;

use frazil_planner::target::Target;
use melior::Context;
use melior::ir::attribute::FlatSymbolRefAttribute;
use melior::ir::operation::OperationBuilder;
use melior::ir::r#type::FunctionType;
use melior::ir::{
    Attribute, Block, BlockLike, BlockRef, Identifier, Location, Region, RegionLike, Type, TypeLike, Value, ValueLike,
};
use std::collections::{BTreeMap, HashMap};

/// An SSA value. It is valid as long as the module that is being emitted, which outlives the emitter.
pub type Val<'c> = Value<'c, 'c>;

/// An integer that may be known while emitting.
#[derive(Clone, Copy, Debug)]
pub enum Int<'c> {
    /// A constant.
    Const(i64),
    /// An `i64` value.
    Dyn(Val<'c>),
}

impl Int<'_> {
    /// Returns the integer, if it is known while emitting.
    pub fn known(self) -> Option<i64> {
        match self {
            Int::Const(n) => Some(n),
            Int::Dyn(_) => None,
        }
    }

    /// Returns true if it is known that this divides `other`.
    pub fn divides(self, other: Int<'_>) -> bool {
        self.known().zip(other.known()).is_some_and(|(a, b)| b % a == 0)
    }
}

impl From<i64> for Int<'_> {
    fn from(value: i64) -> Self {
        Int::Const(value)
    }
}

/// Emits operations at the end of a current block.
pub struct Emitter<'c> {
    context: &'c Context,
    location: Location<'c>,
    block: BlockRef<'c, 'c>,
    entry: BlockRef<'c, 'c>,
    constants: HashMap<String, Val<'c>>,
    /// The processor. Emitted vectors may be longer than its registers.
    pub target: &'c Target,
    /// The C functions that are called, and their types.
    pub externals: BTreeMap<String, Type<'c>>,
}

impl<'c> Emitter<'c> {
    /// Returns an emitter into `entry`, a function's first block, for `target`.
    pub fn new(context: &'c Context, entry: BlockRef<'c, 'c>, target: &'c Target) -> Emitter<'c> {
        Emitter {
            context,
            location: Location::unknown(context),
            block: entry,
            entry,
            constants: HashMap::new(),
            target,
            externals: BTreeMap::new(),
        }
    }

    /// Returns the type whose MLIR notation is `text`.
    pub fn ty(&self, text: &str) -> Type<'c> {
        Type::parse(self.context, text).expect("types are spelled by the emitters")
    }

    /// Returns the attribute whose MLIR notation is `text`.
    fn attr(&self, text: &str) -> Attribute<'c> {
        Attribute::parse(self.context, text).expect("attributes are spelled by the emitters")
    }

    /// `vector<lanes x f32>`
    pub fn f32_vector(&self, lanes: i64) -> Type<'c> {
        Type::vector(&[lanes as u64], self.f32())
    }

    /// `f32`
    pub fn f32(&self) -> Type<'c> {
        Type::float32(self.context)
    }

    /// `i64`
    pub fn i64(&self) -> Type<'c> {
        melior::ir::r#type::IntegerType::new(self.context, 64).into()
    }

    /// `!llvm.ptr`
    pub fn ptr(&self) -> Type<'c> {
        melior::dialect::llvm::r#type::pointer(self.context, 0)
    }

    /// Appends an operation and returns its results.
    pub fn op(
        &mut self,
        name: &str,
        operands: &[Val<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> Vec<Val<'c>> {
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(n, a)| (Identifier::new(self.context, n), *a))
            .collect();
        let operation = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build()
            .expect("only result type inference, which is not used, can fail");
        let operation = self.block.append_operation(operation);
        (0..results.len())
            .map(|i| {
                let value: Value = operation.result(i).expect("as many results as types").into();
                // SAFETY: the value lives as long as its operation, which the module owns; see `Val`.
                unsafe { Val::from_raw(value.to_raw()) }
            })
            .collect()
    }

    /// Appends an operation with one result.
    pub fn op1(&mut self, name: &str, operands: &[Val<'c>], result: Type<'c>) -> Val<'c> {
        self.op(name, operands, &[result], &[], Vec::new())[0]
    }

    /// Returns the constant with MLIR notation `text`, for example `1.0 : f32`. It is placed in the entry block, once.
    pub fn constant(&mut self, text: &str) -> Val<'c> {
        if let Some(&v) = self.constants.get(text) {
            return v;
        }
        let value = self.attr(text);
        let ty = self.ty(text.rsplit(" : ").next().unwrap_or(text));
        let operation = OperationBuilder::new("arith.constant", self.location)
            .add_results(&[ty])
            .add_attributes(&[(Identifier::new(self.context, "value"), value)])
            .build()
            .expect("only result type inference, which is not used, can fail");
        let operation = self.entry.insert_operation(0, operation);
        let result: Value = operation.result(0).expect("one result").into();
        // SAFETY: as in `op`.
        let v = unsafe { Val::from_raw(result.to_raw()) };
        self.constants.insert(text.to_owned(), v);
        v
    }

    /// Returns `x` as an `f32`, or as each element of a vector of that many lanes.
    pub fn f32_constant(&mut self, x: f32, lanes: Option<i64>) -> Val<'c> {
        match lanes {
            None => self.constant(&format!("0x{:08X} : f32", x.to_bits())),
            Some(n) => self.constant(&format!("dense<0x{:08X}> : vector<{n}xf32>", x.to_bits())),
        }
    }

    /// Returns the element type `text`, or the vector of `lanes` of it.
    pub fn shaped(&self, text: &str, lanes: Option<i64>) -> Type<'c> {
        match lanes {
            None => self.ty(text),
            Some(n) => self.ty(&format!("vector<{n}x{text}>")),
        }
    }

    /// Emits a call of an LLVM intrinsic for which MLIR has no operation, or only a scalar one.
    pub fn intrinsic(&mut self, name: &str, operands: &[Val<'c>], result: Type<'c>) -> Val<'c> {
        self.intrinsic_call(name, operands, &[result])[0]
    }

    fn intrinsic_call(&mut self, name: &str, operands: &[Val<'c>], results: &[Type<'c>]) -> Vec<Val<'c>> {
        let attributes = [
            ("intrin", self.attr(&format!("\"{name}\""))),
            (
                "operandSegmentSizes",
                self.attr(&format!("array<i32: {}, 0>", operands.len())),
            ),
            ("op_bundle_sizes", self.attr("array<i32>")),
        ];
        self.op("llvm.call_intrinsic", operands, results, &attributes, Vec::new())
    }

    /// Makes the processor treat denormal operands of the following operations as zero, if it can. Returns the argument for [`Emitter::restore_modes`].
    pub fn take_denormals_for_zeros(&mut self) -> Option<Val<'c>> {
        /// The denormals-are-zeros bit of MXCSR.
        const DAZ: i64 = 1 << 6;
        // Others than x86 compute with them at full speed.
        if !self.target.is_x86() {
            return None;
        }
        let (saved, changed) = (self.stack(4), self.stack(4));
        self.intrinsic_call("llvm.x86.sse.stmxcsr", &[saved], &[]);
        let i32 = self.ty("i32");
        let modes = self.load(saved, i32, 4);
        let bit = self.constant(&format!("{DAZ} : i32"));
        let modes = self.binary("arith.ori", modes, bit);
        self.store(modes, changed, 4);
        self.intrinsic_call("llvm.x86.sse.ldmxcsr", &[changed], &[]);
        Some(saved)
    }

    /// Reverts [`Emitter::take_denormals_for_zeros`].
    pub fn restore_modes(&mut self, saved: Option<Val<'c>>) {
        if let Some(saved) = saved {
            self.intrinsic_call("llvm.x86.sse.ldmxcsr", &[saved], &[]);
        }
    }

    /// Returns the bool `condition`, marked as rarely true for the layout of code.
    pub fn unlikely(&mut self, condition: Val<'c>) -> Val<'c> {
        let (i1, expected) = (self.ty("i1"), self.constant("0 : i1"));
        self.op1("llvm.intr.expect", &[condition, expected], i1)
    }

    /// `arith.select`
    pub fn select(&mut self, condition: Val<'c>, then: Val<'c>, other: Val<'c>) -> Val<'c> {
        let ty = then.r#type();
        self.op1("arith.select", &[condition, then, other], ty)
    }

    /// `b predicate a ? b : a`, but NaN if either operand is NaN: the comparison is false for a NaN in `a`, and a NaN in `b` is selected. For equal operands
    /// the result is `a`, which matters for zeros of different signs. If `b` is a constant, this is one instruction on x86. `arith.maximumf` also orders
    /// zeros, which takes four more instructions. The predicate is `ogt` or `olt`.
    pub fn nan_select(&mut self, predicate: &str, a: Val<'c>, b: Val<'c>, lanes: Option<i64>) -> Val<'c> {
        let chosen = match lanes {
            Some(n) if self.has_avx512(n) && self.element_of(a) == self.f32() => self.pick(predicate == "ogt", a, b, n),
            _ => {
                let take = self.cmpf(predicate, b, a, lanes);
                self.select(take, b, a)
            }
        };
        let nan = self.cmpf("uno", b, b, lanes);
        self.select(nan, b, chosen)
    }

    /// Broadcasts the scalar to all lanes.
    pub fn broadcast(&mut self, scalar: Val<'c>, lanes: i64) -> Val<'c> {
        let ty = Type::vector(&[lanes as u64], scalar.r#type());
        self.op1("vector.broadcast", &[scalar], ty)
    }

    /// a · b + c, in one instruction where the target has one.
    pub fn fma(&mut self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> Val<'c> {
        let ty = a.r#type();
        self.op1("vector.fma", &[a, b, c], ty)
    }

    /// An operation on two values of one type, with a result of that type.
    pub fn binary(&mut self, name: &str, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let ty = a.r#type();
        self.op1(name, &[a, b], ty)
    }

    /// `vector.reduction` of MLIR's kind `kind`. Floating-point lanes may be reassociated.
    pub fn reduce_lanes(&mut self, kind: &str, vector: Val<'c>, floating_point: bool) -> Val<'c> {
        let result = self.element_of(vector);
        let mut attributes = vec![("kind", self.attr(&format!("#vector.kind<{kind}>")))];
        if floating_point {
            attributes.push(("fastmath", self.attr("#arith.fastmath<reassoc>")));
        }
        self.op("vector.reduction", &[vector], &[result], &attributes, Vec::new())[0]
    }

    /// Returns lane `lane` of a vector.
    pub fn extract(&mut self, vector: Val<'c>, lane: i64) -> Val<'c> {
        let position = self.attr(&format!("array<i64: {lane}>"));
        let element = self.element_of(vector);
        self.op(
            "vector.extract",
            &[vector],
            &[element],
            &[("static_position", position)],
            Vec::new(),
        )[0]
    }

    /// Returns `vector` with `value` in lane `lane`.
    pub fn insert(&mut self, value: Val<'c>, vector: Val<'c>, lane: i64) -> Val<'c> {
        let position = self.attr(&format!("array<i64: {lane}>"));
        let ty = vector.r#type();
        self.op(
            "vector.insert",
            &[value, vector],
            &[ty],
            &[("static_position", position)],
            Vec::new(),
        )[0]
    }

    /// Returns a vector of lanes of `a` and `b`, selected by index; the lanes of `b` follow those of `a`.
    pub fn shuffle(&mut self, a: Val<'c>, b: Val<'c>, lanes: impl Iterator<Item = i64>) -> Val<'c> {
        let lanes: Vec<String> = lanes.map(|l| l.to_string()).collect();
        let mask = self.attr(&format!("array<i64: {}>", lanes.join(", ")));
        let ty = Type::vector(&[lanes.len() as u64], self.element_of(a));
        self.op("vector.shuffle", &[a, b], &[ty], &[("mask", mask)], Vec::new())[0]
    }

    /// Transposes a square matrix, whose rows are vectors with a power of two of lanes.
    pub fn transpose(&mut self, mut rows: Vec<Val<'c>>) -> Vec<Val<'c>> {
        let lanes = rows.len() as i64;
        let mut step = 1;
        while step < lanes {
            for i in (0..lanes).filter(|i| i & step == 0) {
                // The blocks beside the diagonal change places.
                let (a, b) = (rows[i as usize], rows[(i + step) as usize]);
                let upper = |l: i64| if l & step == 0 { l } else { lanes + l - step };
                let lower = |l: i64| if l & step == 0 { l + step } else { lanes + l };
                rows[i as usize] = self.shuffle(a, b, (0..lanes).map(upper));
                rows[(i + step) as usize] = self.shuffle(a, b, (0..lanes).map(lower));
            }
            step *= 2;
        }
        rows
    }

    fn element_of(&self, vector: Val<'c>) -> Type<'c> {
        let ty = vector.r#type();
        // SAFETY: the type belongs to the context, and is only asked for its element when it is a vector.
        unsafe {
            match mlir_sys::mlirTypeIsAVector(ty.to_raw()) {
                true => Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(ty.to_raw())),
                false => ty,
            }
        }
    }

    /// Returns true if `v` is an `arith.constant`.
    pub fn is_constant(&self, v: Val<'c>) -> bool {
        self.constants.values().any(|c| *c == v)
    }

    /// Calls the C function `name`; its declaration is recorded in [`Emitter::externals`].
    pub fn call(&mut self, name: &str, arguments: &[Val<'c>], result: Type<'c>) -> Val<'c> {
        let types: Vec<Type<'c>> = arguments.iter().map(|a| a.r#type()).collect();
        let function = FunctionType::new(self.context, &types, &[result]);
        self.externals.entry(name.to_owned()).or_insert(function.into());
        let callee = FlatSymbolRefAttribute::new(self.context, name).into();
        self.op("func.call", arguments, &[result], &[("callee", callee)], Vec::new())[0]
    }

    /// Emits into a new block with arguments of these types.
    fn region(&mut self, arguments: &[Type<'c>], emit: impl FnOnce(&mut Self, &[Val<'c>])) -> Region<'c> {
        let region = Region::new();
        let arguments: Vec<_> = arguments.iter().map(|t| (*t, self.location)).collect();
        let block = region.append_block(Block::new(&arguments));
        // SAFETY: the block is owned by the region, which becomes part of the module; see `Val`.
        let block: BlockRef<'c, 'c> = unsafe { BlockRef::from_raw(block.to_raw()) };
        let values: Vec<Val<'c>> = (0..arguments.len())
            .map(|i| {
                let v: Value = block.argument(i).expect("one argument a type").into();
                // SAFETY: as above.
                unsafe { Val::from_raw(v.to_raw()) }
            })
            .collect();
        let saved = std::mem::replace(&mut self.block, block);
        emit(self, &values);
        self.block = saved;
        region
    }

    /// `for i in lo..hi step step` with the loop-carried values `inits`; returns the values that the last iteration yields. A loop whose constant bounds
    /// allow one iteration at most is emitted without the loop.
    pub fn for_loop(
        &mut self,
        lo: impl Into<Int<'c>>,
        hi: impl Into<Int<'c>>,
        step: impl Into<Int<'c>>,
        inits: &[Val<'c>],
        body: impl FnOnce(&mut Self, Int<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let (lo, hi, step) = (lo.into(), hi.into(), step.into());
        if let (Int::Const(l), Int::Const(h)) = (lo, hi) {
            if h <= l {
                return inits.to_vec();
            }
            if matches!(step, Int::Const(step) if h - l <= step) {
                return body(self, lo, inits);
            }
        }
        let types: Vec<Type<'c>> = inits.iter().map(|v| v.r#type()).collect();
        let operands = [&[self.int(lo), self.int(hi), self.int(step)], inits].concat();
        let arguments = [&[self.i64()], types.as_slice()].concat();
        let region = self.region(&arguments, |e, args| {
            let results = body(e, Int::Dyn(args[0]), &args[1..]);
            e.op("scf.yield", &results, &[], &[], Vec::new());
        });
        self.op("scf.for", &operands, &types, &[], vec![region])
    }

    /// Emits a loop without loop-carried values.
    pub fn for_each(
        &mut self,
        lo: impl Into<Int<'c>>,
        hi: impl Into<Int<'c>>,
        step: impl Into<Int<'c>>,
        body: impl FnOnce(&mut Self, Int<'c>),
    ) {
        self.for_loop(lo, hi, step, &[], |e, i, _| {
            body(e, i);
            Vec::new()
        });
    }

    /// `if condition { then } else { other }` with results.
    pub fn if_else(
        &mut self,
        condition: Val<'c>,
        results: &[Type<'c>],
        then: impl FnOnce(&mut Self) -> Vec<Val<'c>>,
        other: impl FnOnce(&mut Self) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let then = self.region(&[], |e, _| {
            let values = then(e);
            e.op("scf.yield", &values, &[], &[], Vec::new());
        });
        let other = self.region(&[], |e, _| {
            let values = other(e);
            e.op("scf.yield", &values, &[], &[], Vec::new());
        });
        self.op("scf.if", &[condition], results, &[], vec![then, other])
    }

    /// `if condition { then }`
    pub fn if_then(&mut self, condition: Val<'c>, then: impl FnOnce(&mut Self)) {
        self.if_else(
            condition,
            &[],
            |e| {
                then(e);
                Vec::new()
            },
            |_| Vec::new(),
        );
    }
}
