//! Random numbers.
//!
//! No call gives what another gave, and none gives what PyTorch's generator would: seeds are not part of TorchScript. What
//! the distributions are follows PyTorch.

use frazil_ir::DType;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::{Tensor, memory};
use std::hash::{BuildHasher, RandomState};

pub(super) const KERNELS: &[(&str, KernelFn)] = &[
    ("aten::rand", |c| made(c, Random::uniform)),
    ("aten::randn", |c| made(c, Random::normal)),
    ("aten::rand_like", |c| like(c, Random::uniform)),
    ("aten::randn_like", |c| like(c, Random::normal)),
    ("aten::randint", |c| {
        let (sizes, high) = (c.ints(1)?, c.int(0)?);
        integers(&sizes, 0, high, dtype_of(c, DType::Long)?)
    }),
    ("aten::randint.low", |c| {
        let (sizes, low, high) = (c.ints(2)?, c.int(0)?, c.int(1)?);
        integers(&sizes, low, high, dtype_of(c, DType::Long)?)
    }),
    ("aten::randperm", |c| {
        let n = c.int(0)?;
        if n < 0 {
            return Err(OpError::raised(format!("n must be non-negative, got {n}")));
        }
        Tensor::byte_size(DType::Long, &[n])?;
        memory::check_items(n, size_of::<i64>())?;
        let order = shuffled(n, n);
        one(Tensor::from_i64(&order, &[n])?.to_dtype(dtype_of(c, DType::Long)?)?)
    }),
    ("aten::bernoulli", |c| bernoulli(c, &c.tensor(0)?)),
    ("aten::bernoulli.p", |c| {
        let p = Tensor::scalar(DType::Double, c.scalar(1)?);
        bernoulli(c, &p.expand(c.tensor(0)?.sizes())?)
    }),
    ("aten::bernoulli_.float", |c| {
        let p = probability(c.float(1)?)?;
        filled(c, move |r| f64::from(u8::from(r.uniform() < p)))
    }),
    ("aten::bernoulli_.Tensor", |c| {
        let t = c.tensor(0)?;
        let drawn = drawn(&c.tensor(1)?.expand(t.sizes())?)?;
        t.copy_(&drawn)?;
        one(c.arg(0).clone())
    }),
    ("aten::uniform_", |c| {
        let (low, high) = (c.float(1)?, c.float(2)?);
        filled(c, move |r| low + (high - low) * r.uniform())
    }),
    ("aten::normal_", |c| {
        let (mean, std) = (c.float(1)?, c.float(2)?);
        if std < 0.0 {
            return Err(OpError::raised(format!(
                "normal expects std >= 0.0, but found std {std}"
            )));
        }
        filled(c, move |r| mean + std * r.normal())
    }),
    ("aten::exponential_", |c| {
        let rate = c.float(1)?;
        filled(c, move |r| -(1.0 - r.uniform()).ln() / rate)
    }),
    ("aten::multinomial", multinomial),
];

/// SplitMix64, seeded from the process's source of hash keys.
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(RandomState::new().hash_one(0))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1): 24 bits, which every float dtype but the halves holds exactly.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 40) as f64 / (1u64 << 24) as f64
    }

    /// Mean 0, standard deviation 1, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// In 0..n.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// The argument `dtype`, wherever it stands.
fn dtype_of(call: &Call<'_>, default: DType) -> Result<DType, OpError> {
    let names = call.schema.arguments.iter().map(|a| call.ctx.name(a.name));
    let at = names.into_iter().position(|n| n == "dtype");
    Ok(at.map(|i| call.opt_dtype(i)).transpose()?.flatten().unwrap_or(default))
}

fn sampled(sizes: &[i64], dtype: DType, mut draw: impl FnMut() -> f64) -> Result<Tensor, OpError> {
    // Checks the sizes before anything is drawn.
    let count = Tensor::zeros(DType::Bool, sizes)?.numel();
    let mut values: Vec<f64> = memory::with_capacity(count as usize)?;
    values.extend((0..count).map(|_| draw()));
    Ok(Tensor::from_elements::<DoubleElement>(&values, sizes)?.to_dtype(dtype)?)
}

fn made(call: &Call<'_>, draw: fn(&mut Random) -> f64) -> Result<Results, OpError> {
    let mut random = Random::new();
    one(sampled(&call.ints(0)?, dtype_of(call, DType::Float)?, || {
        draw(&mut random)
    })?)
}

fn like(call: &Call<'_>, draw: fn(&mut Random) -> f64) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let mut random = Random::new();
    one(sampled(t.sizes(), dtype_of(call, t.dtype())?, || draw(&mut random))?)
}

fn filled(call: &Call<'_>, draw: impl Fn(&mut Random) -> f64) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let mut random = Random::new();
    t.copy_(&sampled(t.sizes(), t.dtype(), || draw(&mut random))?)?;
    one(call.arg(0).clone())
}

fn integers(sizes: &[i64], low: i64, high: i64, dtype: DType) -> Result<Results, OpError> {
    let Some(span) = high.checked_sub(low).filter(|&s| s > 0) else {
        return Err(OpError::raised(format!(
            "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )));
    };
    let mut random = Random::new();
    let count = Tensor::zeros(DType::Bool, sizes)?.numel();
    let mut values: Vec<i64> = memory::with_capacity(count as usize)?;
    values.extend((0..count).map(|_| low + random.below(span as u64) as i64));
    one(Tensor::from_i64(&values, sizes)?.to_dtype(dtype)?)
}

fn probability(p: f64) -> Result<f64, OpError> {
    if (0.0..=1.0).contains(&p) {
        Ok(p)
    } else {
        Err(OpError::raised(format!(
            "bernoulli_ expects p to be in [0, 1], but got p={p}"
        )))
    }
}

fn drawn(probabilities: &Tensor) -> Result<Tensor, OpError> {
    let mut random = Random::new();
    let values = probabilities.to_f64_vec().into_iter().map(|p| {
        let p = probability(p)?;
        Ok(f64::from(u8::from(random.uniform() < p)))
    });
    let values = values.collect::<Result<Vec<f64>, OpError>>()?;
    Ok(Tensor::from_elements::<DoubleElement>(&values, probabilities.sizes())?)
}

fn bernoulli(call: &Call<'_>, probabilities: &Tensor) -> Result<Results, OpError> {
    one(drawn(probabilities)?.to_dtype(call.tensor(0)?.dtype())?)
}

/// The first `count` of `n` numbers in random order.
fn shuffled(n: i64, count: i64) -> Vec<i64> {
    let mut random = Random::new();
    let mut order: Vec<i64> = (0..n).collect();
    for i in 0..count.min(n) as usize {
        let other = i + random.below((n as usize - i) as u64) as usize;
        order.swap(i, other);
    }
    order.truncate(count as usize);
    order
}

/// Numbers of classes drawn with the weights of each row.
fn multinomial(call: &Call<'_>) -> Result<Results, OpError> {
    let (t, samples, replacement) = (call.tensor(0)?, call.int(1)?, call.flag(2)?);
    let classes = t.sizes().last().copied().unwrap_or(0);
    if !matches!(t.dim(), 1 | 2) || classes == 0 || samples <= 0 {
        return Err(OpError::raised(
            "multinomial expects one or two dimensions of weights and a positive number of samples",
        ));
    }
    if !replacement && samples > classes {
        return Err(OpError::raised(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
        ));
    }
    let mut random = Random::new();
    let mut sizes = t.sizes().to_vec();
    if let Some(last) = sizes.last_mut() {
        *last = samples;
    }
    let bytes = Tensor::byte_size(DType::Long, &sizes)?;
    let mut out = memory::with_capacity(bytes / size_of::<i64>())?;
    for row in t.to_f64_vec().chunks_exact(classes as usize) {
        if row.iter().any(|w| !w.is_finite() || *w < 0.0) || row.iter().sum::<f64>() <= 0.0 {
            return Err(OpError::raised(
                "probability tensor contains either `inf`, `nan` or element < 0, or sums to zero",
            ));
        }
        let mut weights = row.to_vec();
        for _ in 0..samples {
            let mut rest = random.uniform() * weights.iter().sum::<f64>();
            let last = weights.iter().rposition(|&w| w > 0.0).unwrap_or(0);
            let mut chosen = last;
            for (i, &w) in weights.iter().enumerate() {
                if rest < w {
                    chosen = i;
                    break;
                }
                rest -= w;
            }
            out.push(chosen as i64);
            if !replacement && let Some(w) = weights.get_mut(chosen) {
                *w = 0.0;
            }
        }
    }
    one(Tensor::from_i64(&out, &sizes)?)
}
