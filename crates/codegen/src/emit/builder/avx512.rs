//! Instructions that only AVX-512 has.

use super::{Emitter, Val};

impl<'c> Emitter<'c> {
    /// Returns true when the target has AVX-512 and vectors of `lanes` f32 fill one or several of its registers, which the methods of this file
    /// require.
    pub fn has_avx512(&self, lanes: i64) -> bool {
        self.target.has_avx512() && lanes >= LANES && lanes.count_ones() == 1
    }

    /// p · 2^⌊n⌋, rounded once, for every n.
    pub fn scale(&mut self, p: Val<'c>, n: Val<'c>, lanes: i64) -> Val<'c> {
        self.by_register([p, n], lanes, &mut |e, [p, n]| {
            let (all, rounding) = (e.all(), e.rounding());
            e.register("llvm.x86.avx512.mask.scalef.ps.512", &[p, n, p, all, rounding])
        })
    }

    /// `x` where |x| ≤ 1, else 1 with the sign of `x`; 1 with any sign where `x` is NaN.
    pub fn at_most_one(&mut self, x: Val<'c>, lanes: i64) -> Val<'c> {
        self.by_register([x], lanes, &mut |e, [x]| {
            // The smaller magnitude, with the sign of the first.
            let least_magnitude = e.constant("2 : i32");
            let (one, all, rounding) = (e.f32_constant(1.0, Some(LANES)), e.all(), e.rounding());
            e.register(
                "llvm.x86.avx512.mask.range.ps.512",
                &[x, one, least_magnitude, x, all, rounding],
            )
        })
    }

    /// Looks up `table` for each lane: the entry with the index in the lowest four bits of the lane of `index`.
    pub fn lane_of(&mut self, table: &[f32; LANES as usize], index: Val<'c>, lanes: i64) -> Val<'c> {
        let entries: Vec<String> = table.iter().map(|x| format!("0x{:08X}", x.to_bits())).collect();
        let table = self.constant(&format!("dense<[{}]> : vector<{LANES}xf32>", entries.join(", ")));
        self.by_register([index], lanes, &mut |e, [index]| {
            e.register("llvm.x86.avx512.permvar.sf.512", &[table, index])
        })
    }

    /// Returns the greater of `b` and `a`, or the smaller unless `greatest` is set. If they are equal or one is NaN, the result is `a`. These are intrinsics
    /// because LLVM would split an equivalent comparison and selection if another selection follows.
    pub(super) fn pick(&mut self, greatest: bool, a: Val<'c>, b: Val<'c>, lanes: i64) -> Val<'c> {
        let name = match greatest {
            true => "llvm.x86.avx512.max.ps.512",
            false => "llvm.x86.avx512.min.ps.512",
        };
        self.by_register([b, a], lanes, &mut |e, [b, a]| {
            let rounding = e.rounding();
            e.register(name, &[b, a, rounding])
        })
    }

    /// Calls `f` for each register of the vectors, which have `lanes` lanes, and returns the joined results.
    fn by_register<const N: usize>(
        &mut self,
        vectors: [Val<'c>; N],
        lanes: i64,
        f: &mut impl FnMut(&mut Emitter<'c>, [Val<'c>; N]) -> Val<'c>,
    ) -> Val<'c> {
        if lanes <= LANES {
            return f(self, vectors);
        }
        let half = lanes / 2;
        let [low, high] = [0, half].map(|first| {
            let part = vectors.map(|v| self.shuffle(v, v, first..first + half));
            self.by_register(part, half, f)
        });
        self.shuffle(low, high, 0..lanes)
    }

    /// Emits a call of an intrinsic whose result is one register.
    fn register(&mut self, name: &str, operands: &[Val<'c>]) -> Val<'c> {
        let ty = self.f32_vector(LANES);
        self.intrinsic(name, operands, ty)
    }

    /// Returns the mask of all lanes.
    fn all(&mut self) -> Val<'c> {
        self.constant("-1 : i16")
    }

    /// The operand of an intrinsic that selects the processor's current rounding mode.
    fn rounding(&mut self) -> Val<'c> {
        self.constant("4 : i32")
    }
}

/// Number of f32 lanes of a register.
const LANES: i64 = 16;
