//! A small typed emitter of MLIR operations.
//!
//! Addresses are byte-exact `!llvm.ptr` arithmetic with the constant part kept apart, so that LLVM sees a base, an index and a
//! displacement; sizes and indices are `i64`; everything else is `arith`, `scf`, `vector` and `math`.

use melior::Context;
use melior::ir::attribute::{DenseI32ArrayAttribute, FlatSymbolRefAttribute, IntegerAttribute, TypeAttribute};
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
    /// The C functions that are called, and their types.
    pub externals: BTreeMap<String, Type<'c>>,
}

impl<'c> Emitter<'c> {
    /// An emitter into `entry`, a function's first block.
    pub fn new(context: &'c Context, entry: BlockRef<'c, 'c>) -> Emitter<'c> {
        Emitter {
            context,
            location: Location::unknown(context),
            block: entry,
            entry,
            constants: HashMap::new(),
            externals: BTreeMap::new(),
        }
    }

    /// The type whose MLIR notation is `text`.
    pub fn ty(&self, text: &str) -> Type<'c> {
        Type::parse(self.context, text).expect("types are spelled by the emitters")
    }

    /// The attribute whose MLIR notation is `text`.
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

    /// Appends an operation and gives its results.
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

    /// The constant with MLIR notation `text`, for example `1.0 : f32`. It is placed in the entry block, once.
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

    /// `x` as an `f32`, or as each element of a vector of that many lanes.
    pub fn f32_constant(&mut self, x: f32, lanes: Option<i64>) -> Val<'c> {
        match lanes {
            None => self.constant(&format!("0x{:08X} : f32", x.to_bits())),
            Some(n) => self.constant(&format!("dense<0x{:08X}> : vector<{n}xf32>", x.to_bits())),
        }
    }

    /// The `i64` value of `i`.
    pub fn int(&mut self, i: impl Into<Int<'c>>) -> Val<'c> {
        match i.into() {
            Int::Const(c) => self.constant(&format!("{c} : i64")),
            Int::Dyn(v) => v,
        }
    }

    fn int_op(&mut self, name: &str, a: Int<'c>, b: Int<'c>, fold: impl FnOnce(i64, i64) -> i64) -> Int<'c> {
        if let (Int::Const(a), Int::Const(b)) = (a, b) {
            return Int::Const(fold(a, b));
        }
        let (a, b) = (self.int(a), self.int(b));
        let ty = self.i64();
        Int::Dyn(self.op1(name, &[a, b], ty))
    }

    /// a + b
    pub fn add(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (a, Int::Const(0)) => a,
            (Int::Const(0), b) => b,
            (a, b) => self.int_op("arith.addi", a, b, |a, b| a + b),
        }
    }

    /// a − b
    pub fn sub(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (a, Int::Const(0)) => a,
            (a, b) => self.int_op("arith.subi", a, b, |a, b| a - b),
        }
    }

    /// a · b
    pub fn mul(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (_, Int::Const(0)) | (Int::Const(0), _) => Int::Const(0),
            (a, Int::Const(1)) => a,
            (Int::Const(1), b) => b,
            (a, b) => self.int_op("arith.muli", a, b, |a, b| a * b),
        }
    }

    /// The quotient of non-negative integers.
    pub fn div(&mut self, a: impl Into<Int<'c>>, b: i64) -> Int<'c> {
        match a.into() {
            a if b == 1 => a,
            a => self.int_op("arith.divui", a, Int::Const(b), |a, b| a / b),
        }
    }

    /// The remainder of non-negative integers.
    pub fn rem(&mut self, a: impl Into<Int<'c>>, b: i64) -> Int<'c> {
        match a.into() {
            _ if b == 1 => Int::Const(0),
            a => self.int_op("arith.remui", a, Int::Const(b), |a, b| a % b),
        }
    }

    /// The smaller, signed.
    pub fn min(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        self.int_op("arith.minsi", a.into(), b.into(), i64::min)
    }

    /// The larger, signed.
    pub fn max(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        self.int_op("arith.maxsi", a.into(), b.into(), i64::max)
    }

    /// Splits `index` into coordinates of a row-major box with these extents. The first coordinate is not reduced.
    pub fn delinearize(&mut self, index: Int<'c>, extents: &[i64]) -> Vec<Int<'c>> {
        let mut rest = index;
        let mut out = Vec::with_capacity(extents.len());
        for (i, &extent) in extents.iter().enumerate().rev() {
            if i == 0 {
                out.push(rest);
            } else {
                out.push(self.rem(rest, extent.max(1)));
                rest = self.div(rest, extent.max(1));
            }
        }
        out.reverse();
        out
    }

    /// Σ coefficient · index + offset
    pub fn linear(&mut self, terms: impl IntoIterator<Item = (i64, Int<'c>)>, offset: i64) -> Int<'c> {
        let mut sum = Int::Const(0);
        let mut constant = offset;
        for (c, i) in terms {
            match self.mul(i, c) {
                Int::Const(k) => constant += k,
                term => sum = self.add(sum, term),
            }
        }
        self.add(sum, constant)
    }

    /// `arith.cmpi`; `predicate` is MLIR's name of it, signed or equality.
    pub fn compare(&mut self, predicate: &str, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Val<'c> {
        let (a, b) = (self.int(a), self.int(b));
        self.cmpi(predicate, a, b, None)
    }

    /// `arith.cmpi` of integers or vectors of `lanes` integers.
    pub fn cmpi(&mut self, predicate: &str, a: Val<'c>, b: Val<'c>, lanes: Option<i64>) -> Val<'c> {
        const NAMES: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
        self.compare_op("arith.cmpi", &NAMES, predicate, a, b, lanes)
    }

    /// `arith.cmpf` of numbers or vectors of `lanes` numbers.
    pub fn cmpf(&mut self, predicate: &str, a: Val<'c>, b: Val<'c>, lanes: Option<i64>) -> Val<'c> {
        const NAMES: [&str; 16] = [
            "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
            "true",
        ];
        self.compare_op("arith.cmpf", &NAMES, predicate, a, b, lanes)
    }

    fn compare_op(
        &mut self,
        op: &str,
        names: &[&str],
        predicate: &str,
        a: Val<'c>,
        b: Val<'c>,
        lanes: Option<i64>,
    ) -> Val<'c> {
        let number = names
            .iter()
            .position(|n| *n == predicate)
            .expect("the emitters name known predicates");
        let attribute = IntegerAttribute::new(self.i64(), number as i64).into();
        let result = self.shaped("i1", lanes);
        self.op(op, &[a, b], &[result], &[("predicate", attribute)], Vec::new())[0]
    }

    /// The element type `text`, or the vector of `lanes` of it.
    pub fn shaped(&self, text: &str, lanes: Option<i64>) -> Type<'c> {
        match lanes {
            None => self.ty(text),
            Some(n) => self.ty(&format!("vector<{n}x{text}>")),
        }
    }

    /// `arith.select`
    pub fn select(&mut self, condition: Val<'c>, then: Val<'c>, other: Val<'c>) -> Val<'c> {
        let ty = then.r#type();
        self.op1("arith.select", &[condition, then, other], ty)
    }

    /// The scalar in all lanes.
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

    /// The address `index` elements of `element_bytes` bytes after `base`.
    pub fn offset(&mut self, base: Val<'c>, index: impl Into<Int<'c>>, element_bytes: i64) -> Val<'c> {
        let ptr = self.ptr();
        let element = Attribute::from(TypeAttribute::new(match element_bytes {
            4 => self.f32(),
            8 => self.i64(),
            2 => self.ty("i16"),
            _ => self.ty("i8"),
        }));
        match index.into() {
            Int::Const(0) => base,
            Int::Const(c) if i32::try_from(c).is_ok() => {
                let raw = DenseI32ArrayAttribute::new(self.context, &[c as i32]).into();
                let attributes = [("elem_type", element), ("rawConstantIndices", raw)];
                self.op("llvm.getelementptr", &[base], &[ptr], &attributes, Vec::new())[0]
            }
            index => {
                let index = self.int(index);
                let raw = DenseI32ArrayAttribute::new(self.context, &[i32::MIN]).into();
                let attributes = [("elem_type", element), ("rawConstantIndices", raw)];
                self.op("llvm.getelementptr", &[base, index], &[ptr], &attributes, Vec::new())[0]
            }
        }
    }

    /// [`Emitter::offset`] in f32 elements.
    pub fn f32_offset(&mut self, base: Val<'c>, index: impl Into<Int<'c>>) -> Val<'c> {
        self.offset(base, index, 4)
    }

    /// Loads a value that may lie at any multiple of `alignment` bytes.
    pub fn load(&mut self, address: Val<'c>, ty: Type<'c>, alignment: i64) -> Val<'c> {
        let alignment = IntegerAttribute::new(self.i64(), alignment).into();
        self.op("llvm.load", &[address], &[ty], &[("alignment", alignment)], Vec::new())[0]
    }

    /// Stores a value at any multiple of `alignment` bytes.
    pub fn store(&mut self, value: Val<'c>, address: Val<'c>, alignment: i64) {
        let alignment = IntegerAttribute::new(self.i64(), alignment).into();
        self.op(
            "llvm.store",
            &[value, address],
            &[],
            &[("alignment", alignment)],
            Vec::new(),
        );
    }

    /// Loads `lanes` f32.
    pub fn load_vector(&mut self, address: Val<'c>, lanes: i64) -> Val<'c> {
        let ty = self.f32_vector(lanes);
        self.load(address, ty, 4)
    }

    /// Loads one f32 into all of `lanes` lanes.
    pub fn load_broadcast(&mut self, address: Val<'c>, lanes: i64) -> Val<'c> {
        let ty = self.f32();
        let x = self.load(address, ty, 4);
        self.broadcast(x, lanes)
    }

    /// The mask of the first `count` of `lanes` lanes.
    pub fn mask(&mut self, count: Int<'c>, lanes: i64) -> Val<'c> {
        let iota: Vec<String> = (0..lanes).map(|i| i.to_string()).collect();
        let iota = self.constant(&format!("dense<[{}]> : vector<{lanes}xi32>", iota.join(", ")));
        let count = self.int(count);
        let i32 = self.ty("i32");
        let count = self.op1("arith.trunci", &[count], i32);
        let count = self.broadcast(count, lanes);
        self.cmpi("slt", iota, count, Some(lanes))
    }

    /// Loads the f32 lanes of `mask`; the others are zero.
    pub fn load_masked(&mut self, address: Val<'c>, mask: Val<'c>, lanes: i64) -> Val<'c> {
        let zero = self.f32_constant(0.0, Some(lanes));
        self.load_masked_or(address, mask, zero, 4)
    }

    /// Loads the lanes of `mask`; the others are `other`'s.
    pub fn load_masked_or(&mut self, address: Val<'c>, mask: Val<'c>, other: Val<'c>, alignment: i64) -> Val<'c> {
        let ty = other.r#type();
        let alignment = self.attr(&format!("{alignment} : i32"));
        self.op(
            "llvm.intr.masked.load",
            &[address, mask, other],
            &[ty],
            &[("alignment", alignment)],
            Vec::new(),
        )[0]
    }

    /// Stores the f32 lanes of `mask`.
    pub fn store_masked(&mut self, value: Val<'c>, address: Val<'c>, mask: Val<'c>) {
        self.store_masked_at(value, address, mask, 4);
    }

    /// Stores the lanes of `mask`, of any element type.
    pub fn store_masked_at(&mut self, value: Val<'c>, address: Val<'c>, mask: Val<'c>, alignment: i64) {
        let alignment = self.attr(&format!("{alignment} : i32"));
        self.op(
            "llvm.intr.masked.store",
            &[value, address, mask],
            &[],
            &[("alignment", alignment)],
            Vec::new(),
        );
    }

    /// `vector.reduction` of MLIR's kind `kind`. Floating-point lanes may be joined in any order.
    pub fn reduce_lanes(&mut self, kind: &str, vector: Val<'c>, floating_point: bool) -> Val<'c> {
        let result = self.element_of(vector);
        let mut attributes = vec![("kind", self.attr(&format!("#vector.kind<{kind}>")))];
        if floating_point {
            attributes.push(("fastmath", self.attr("#arith.fastmath<reassoc>")));
        }
        self.op("vector.reduction", &[vector], &[result], &attributes, Vec::new())[0]
    }

    /// Lane `lane` of a vector.
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

    /// `vector` with `value` in lane `lane`.
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

    /// True when `v` is an `arith.constant`.
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

    /// Asks for the cache line at `address` to be brought close: level 3 is L1, 2 is L2.
    pub fn prefetch(&mut self, address: Val<'c>, level: i64) {
        let number = |e: &Emitter<'c>, n: i64| e.attr(&format!("{n} : i32"));
        let attributes = [
            ("rw", number(self, 0)),
            ("hint", number(self, level)),
            ("cache", number(self, 1)),
        ];
        self.op("llvm.intr.prefetch", &[address], &[], &attributes, Vec::new());
    }

    /// `bytes` bytes on the stack, at a 64-byte boundary, for the whole function.
    pub fn stack(&mut self, bytes: i64) -> Val<'c> {
        let ptr = self.ptr();
        let count = self.int(bytes);
        let element = TypeAttribute::new(self.ty("i8")).into();
        let alignment = IntegerAttribute::new(self.i64(), 64).into();
        let saved = std::mem::replace(&mut self.block, self.entry);
        let attributes = [("elem_type", element), ("alignment", alignment)];
        let address = self.op("llvm.alloca", &[count], &[ptr], &attributes, Vec::new())[0];
        self.block = saved;
        address
    }

    /// Emits into a fresh block with arguments of these types.
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

    /// `for i in lo..hi step step` carrying `inits`; gives what the last iteration yields. A loop whose constant bounds allow one
    /// iteration at most is emitted without the loop.
    pub fn for_loop(
        &mut self,
        lo: impl Into<Int<'c>>,
        hi: impl Into<Int<'c>>,
        step: i64,
        inits: &[Val<'c>],
        body: impl FnOnce(&mut Self, Int<'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let (lo, hi) = (lo.into(), hi.into());
        if let (Int::Const(l), Int::Const(h)) = (lo, hi) {
            if h <= l {
                return inits.to_vec();
            }
            if h - l <= step {
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

    /// A loop that carries nothing.
    pub fn for_each(
        &mut self,
        lo: impl Into<Int<'c>>,
        hi: impl Into<Int<'c>>,
        step: i64,
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
