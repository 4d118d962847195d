//! Combination of a written value with the element that is stored at its position.

/// The combination of a written value with the element stored at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// The value replaces the element. If several values are written to an element, the last one remains.
    Replace,
    /// The sum of value and element.
    Add,
    /// The product of value and element.
    Mul,
    /// The maximum of value and element; NaN if either is NaN.
    Max,
    /// The minimum of value and element; NaN if either is NaN.
    Min,
}

/// Lanes whose values can be combined.
pub trait Joinable: Copy {
    /// Returns `a`, the stored element, combined with `b`, the written value.
    fn join(a: Self, b: Self, join: Join) -> Self;
}

macro_rules! joinable_float {
    ($t:ty) => {
        impl Joinable for $t {
            fn join(a: $t, b: $t, join: Join) -> $t {
                match join {
                    Join::Replace => b,
                    Join::Add => a + b,
                    Join::Mul => a * b,
                    Join::Max => {
                        if a.is_nan() || a > b {
                            a
                        } else {
                            b
                        }
                    }
                    Join::Min => {
                        if a.is_nan() || a < b {
                            a
                        } else {
                            b
                        }
                    }
                }
            }
        }
    };
}
joinable_float!(f32);
joinable_float!(f64);

impl Joinable for i64 {
    fn join(a: i64, b: i64, join: Join) -> i64 {
        match join {
            Join::Replace => b,
            Join::Add => a.wrapping_add(b),
            Join::Mul => a.wrapping_mul(b),
            Join::Max => a.max(b),
            Join::Min => a.min(b),
        }
    }
}

impl Joinable for num_complex::Complex<f64> {
    fn join(a: Self, b: Self, join: Join) -> Self {
        match join {
            Join::Add => a + b,
            Join::Mul => a * b,
            // Complex numbers have no order.
            Join::Replace | Join::Max | Join::Min => b,
        }
    }
}
