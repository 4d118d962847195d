//! The pseudorandom generator for initial weights.

/// A deterministic pseudorandom generator, for weights that PyTorch initialises at random.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Random {
        Random(0x5eed)
    }

    /// Returns a number from the uniform distribution on [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number from the normal distribution with mean 0 and standard deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
