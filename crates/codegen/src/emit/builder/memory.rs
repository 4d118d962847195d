//! Addresses, loads and stores.

use super::{Emitter, Int, Val};
use melior::ir::attribute::{DenseI32ArrayAttribute, IntegerAttribute, TypeAttribute};
use melior::ir::{Attribute, Type, ValueLike};

impl<'c> Emitter<'c> {
    /// Returns the address that is `index` elements of `element_bytes` bytes after `base`.
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

    /// Loads a value whose address is a multiple of `alignment` bytes.
    pub fn load(&mut self, address: Val<'c>, ty: Type<'c>, alignment: i64) -> Val<'c> {
        let alignment = IntegerAttribute::new(self.i64(), alignment).into();
        self.op("llvm.load", &[address], &[ty], &[("alignment", alignment)], Vec::new())[0]
    }

    /// Stores a value at an address that is a multiple of `alignment` bytes.
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

    /// Returns the mask of the first `count` of `lanes` lanes.
    pub fn mask(&mut self, count: Int<'c>, lanes: i64) -> Val<'c> {
        let (numbers, count) = (self.lane_numbers(lanes), self.in_lanes(count, lanes));
        self.cmpi("slt", numbers, count, Some(lanes))
    }

    /// Returns the mask of `count` lanes from `first` on, in a vector of `lanes` lanes. Some or all of them may be outside of the vector.
    pub fn mask_from(&mut self, first: Int<'c>, count: i64, lanes: i64) -> Val<'c> {
        let (numbers, first) = (self.lane_numbers(lanes), self.in_lanes(first, lanes));
        let after = self.binary("arith.subi", numbers, first);
        let count = self.constant(&format!("dense<{count}> : vector<{lanes}xi32>"));
        // One unsigned comparison tests both ends.
        self.cmpi("ult", after, count, Some(lanes))
    }

    /// Returns the vector 0, 1, 2, ... of i32.
    fn lane_numbers(&mut self, lanes: i64) -> Val<'c> {
        let numbers: Vec<String> = (0..lanes).map(|i| i.to_string()).collect();
        self.constant(&format!("dense<[{}]> : vector<{lanes}xi32>", numbers.join(", ")))
    }

    /// Broadcasts a small integer to all lanes, as i32.
    fn in_lanes(&mut self, number: Int<'c>, lanes: i64) -> Val<'c> {
        let number = self.int(number);
        let i32 = self.ty("i32");
        let number = self.op1("arith.trunci", &[number], i32);
        self.broadcast(number, lanes)
    }

    /// Loads the f32 lanes of `mask`; the others are zero.
    pub fn load_masked(&mut self, address: Val<'c>, mask: Val<'c>, lanes: i64) -> Val<'c> {
        let zero = self.f32_constant(0.0, Some(lanes));
        self.load_masked_or(address, mask, zero, 4)
    }

    /// Loads the lanes of `mask`; the other lanes are those of `other`.
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

    /// Stores the f32 lanes of `mask`, which often contains all lanes.
    ///
    /// Without AVX-512, a store with a mask is slow: AMD's processors execute `vmaskmovps` as 20 and more instructions, and LLVM emits a branch for each lane where
    /// there is no such instruction. So the code tests whether the mask contains all lanes, as in most tiles of a kernel whose sizes are arguments.
    pub fn store_masked(&mut self, value: Val<'c>, address: Val<'c>, mask: Val<'c>) {
        if self.target.has_avx512() {
            self.store_masked_at(value, address, mask, 4);
            return;
        }
        let i1 = self.ty("i1");
        let all = self.op1("llvm.intr.vector.reduce.and", &[mask], i1);
        self.if_else(
            all,
            &[],
            |e| {
                e.store(value, address, 4);
                Vec::new()
            },
            |e| {
                e.store_masked_at(value, address, mask, 4);
                Vec::new()
            },
        );
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

    /// Prefetches the cache line at `address`, with MLIR's locality `level`: 3 for L1, 2 for L2.
    pub fn prefetch(&mut self, address: Val<'c>, level: i64) {
        let number = |e: &Emitter<'c>, n: i64| e.attr(&format!("{n} : i32"));
        let attributes = [
            ("rw", number(self, 0)),
            ("hint", number(self, level)),
            ("cache", number(self, 1)),
        ];
        self.op("llvm.intr.prefetch", &[address], &[], &attributes, Vec::new());
    }

    /// Returns `address` in a form that LLVM keeps in a register: addresses in the following loops are computed as offsets from it. Otherwise, loop strength
    /// reduction considers all loops together and may allocate a pointer for each address of a register tile, which are more than there are registers.
    /// Whether it does depends on the sizes, without an evident rule.
    pub fn base(&mut self, address: Val<'c>) -> Val<'c> {
        let ptr = self.ptr();
        self.op("llvm.intr.launder.invariant.group", &[address], &[ptr], &[], Vec::new())[0]
    }

    /// Allocates `bytes` bytes on the stack, aligned to 64 bytes, for the whole function.
    pub fn stack(&mut self, bytes: impl Into<Int<'c>>) -> Val<'c> {
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
}
