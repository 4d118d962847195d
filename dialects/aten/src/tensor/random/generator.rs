//! The pseudorandom generator, and distributions of single numbers.

use frazil_ir::DType;
use std::hash::{BuildHasher, RandomState};

/// The pseudorandom generator SplitMix64, seeded from the process's random hash keys.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Random {
        Random(RandomState::new().hash_one(0))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a uniformly distributed multiple of 2^-53 in [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a uniformly distributed number in [0, 1), with as many bits as `dtype` represents exactly, so that
    /// rounding never returns 1.
    pub(super) fn uniform_in(&mut self, dtype: DType) -> f64 {
        let bits = digits(dtype);
        (self.next() >> (64 - bits)) as f64 / (1u64 << bits) as f64
    }

    /// Returns a normally distributed number with mean 0 and standard deviation 1, by the Box-Muller method.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Returns an exponentially distributed, positive number with rate 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Returns a uniformly distributed integer in `0..n`.
    pub(super) fn below(&mut self, n: u128) -> u64 {
        ((u128::from(self.next()) * n) >> 64) as u64
    }

    /// Returns the number of Bernoulli trials up to the first success of probability `p`.
    pub(super) fn geometric(&mut self, p: f64) -> f64 {
        ((1.0 - self.uniform()).ln() / (-p).ln_1p()).ceil().max(1.0)
    }

    /// Returns a Poisson-distributed number with rate `rate`.
    pub(super) fn poisson(&mut self, rate: f64) -> f64 {
        if rate < 10.0 {
            // As many exponential gaps as fit.
            let (mut time, mut count) = (self.exponential(), 0.0);
            while time < rate {
                time += self.exponential();
                count += 1.0;
            }
            return count;
        }
        if !rate.is_finite() {
            return rate;
        }
        // Hörmann's transformed rejection (PTRS).
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let accepted = 0.9277 - 3.6224 / (b - 2.0);
        loop {
            let (u, v) = (self.uniform() - 0.5, 1.0 - self.uniform());
            let distance = 0.5 - u.abs();
            let k = ((2.0 * a / distance + b) * u + rate + 0.43).floor();
            if distance >= 0.07 && v <= accepted {
                return k;
            }
            if k < 0.0 || (distance < 0.013 && v > distance) {
                continue;
            }
            let bound = k * rate.ln() - rate - libm::lgamma(k + 1.0);
            if (v * inverse_alpha / (a / (distance * distance) + b)).ln() <= bound {
                return k;
            }
        }
    }

    /// Returns the number of successes in `count` trials of probability `p`; `count` itself if `p` is 1, as in PyTorch.
    pub(super) fn binomial(&mut self, count: f64, p: f64) -> f64 {
        if count.is_nan() || p.is_nan() {
            return f64::NAN;
        }
        if count <= 0.0 || p <= 0.0 {
            return 0.0;
        }
        if p >= 1.0 {
            return count;
        }
        if p > 0.5 {
            return count - self.binomial(count, 1.0 - p);
        }
        if count.is_infinite() {
            return count;
        }
        if count * p >= 10.0 {
            return self.many_trials(count.floor(), p);
        }
        // As many gaps between successes as fit.
        let (mut trials, mut successes) = (self.geometric(p), 0.0);
        while trials <= count {
            trials += self.geometric(p);
            successes += 1.0;
        }
        successes
    }

    /// Returns a binomially distributed number by Hörmann's transformed rejection (BTRS), for `count * p` of at least
    /// 10 and `p` up to one half.
    fn many_trials(&mut self, count: f64, p: f64) -> f64 {
        let deviation = (count * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let a = -0.0873 + 0.0248 * b + 0.01 * p;
        let c = count * p + 0.5;
        let accepted = 0.92 - 4.2 / b;
        let odds = (p / (1.0 - p)).ln();
        let alpha = (2.83 + 5.1 / b) * deviation;
        let mode = ((count + 1.0) * p).floor();
        let height = libm::lgamma(mode + 1.0) + libm::lgamma(count - mode + 1.0);
        loop {
            let (u, v) = (self.uniform() - 0.5, 1.0 - self.uniform());
            let distance = 0.5 - u.abs();
            let k = ((2.0 * a / distance + b) * u + c).floor();
            if distance >= 0.07 && v <= accepted {
                return k;
            }
            if k < 0.0 || k > count {
                continue;
            }
            let bound = height - libm::lgamma(k + 1.0) - libm::lgamma(count - k + 1.0) + (k - mode) * odds;
            if (v * alpha / (a / (distance * distance) + b)).ln() <= bound {
                return k;
            }
        }
    }

    /// Returns a gamma-distributed number with shape `shape` and scale 1, by the method of Marsaglia and Tsang.
    pub(super) fn gamma(&mut self, shape: f64) -> f64 {
        if !(shape > 0.0 && shape.is_finite()) {
            return if shape == 0.0 { 0.0 } else { shape.max(0.0) };
        }
        if shape < 1.0 {
            let boost = (1.0 - self.uniform()).powf(1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

/// Returns the precision of a float dtype in bits: `dtype` represents all integers of that many bits exactly.
pub(super) fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::Half | DType::ComplexHalf => 11,
        DType::BFloat16 => 8,
        DType::Float | DType::ComplexFloat => 24,
        _ => 53,
    }
}
