//! Pseudorandom numbers and tensors from seeds.

use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::element::DoubleElement;

/// A portable pseudorandom generator (xorshift*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator whose numbers depend only on the seed.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of adjacent seeds are similar.
        (0..8).for_each(|_| _ = random.bits());
        random
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `n`. `n` must be at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 33) % n
    }

    /// Returns a number between -4 and 4 with a random mantissa, so that sums in another order differ in the last place.
    pub fn double(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 50) as f64 - 4.0
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Returns a dense tensor of numbers from [`double`](Self::double), converted to `dtype`. With `specials`, one element in seven is NaN, an infinity or
    /// negative zero.
    pub fn tensor(&mut self, dtype: DType, sizes: &[i64], specials: bool) -> Tensor {
        let numel = sizes.iter().product::<i64>();
        let special = [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY];
        let element = |at: i64| match specials && at % 7 == 3 {
            true => special[(at / 7 % 4) as usize],
            false => self.double(),
        };
        let elements: Vec<f64> = (0..numel).map(element).collect();
        let tensor = Tensor::from_elements::<DoubleElement>(&elements, sizes).expect("as many elements as sizes say");
        tensor.to_dtype(dtype).expect("numbers convert")
    }

    /// Returns a tensor of integers from 0 to `below - 1`.
    pub fn indices(&mut self, sizes: &[i64], below: u64) -> Tensor {
        let numel = sizes.iter().product::<i64>();
        let elements: Vec<i64> = (0..numel).map(|_| self.below(below) as i64).collect();
        Tensor::from_i64(&elements, sizes).expect("as many elements as sizes say")
    }
}
