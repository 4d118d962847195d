//! Special functions that neither the standard library nor libm provides, computed in `f64`.

/// Returns the logarithmic derivative of Γ, with PyTorch's values at the poles: ∓∞ at ±0 and NaN at the negative
/// integers.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        // Reflection; the fraction keeps the argument of the tangent exact.
        let fraction = x - x.trunc();
        return digamma(1.0 - x) - std::f64::consts::PI / (std::f64::consts::PI * fraction).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    // Recurrence up to where the asymptotic series has full precision.
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let inv2 = 1.0 / (x * x);
    // Bernoulli numbers B₂ₖ / 2k.
    let series = inv2
        * (1.0 / 12.0
            - inv2
                * (1.0 / 120.0
                    - inv2 * (1.0 / 252.0 - inv2 * (1.0 / 240.0 - inv2 * (1.0 / 132.0 - inv2 * 691.0 / 32760.0)))));
    sum + x.ln() - 0.5 / x - series
}

/// Returns the inverse of the error function; ±∞ at ±1, NaN outside.
pub fn erfinv(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    if y == 0.0 {
        return y;
    }
    // Winitzki's approximation (2e-3), refined by Halley's method, which triples the digits each time.
    let a = 0.147;
    let ln = (-y * y).ln_1p();
    let t = 2.0 / (std::f64::consts::PI * a) + ln / 2.0;
    let mut x = ((t * t - ln / a).sqrt() - t).sqrt().copysign(y);
    for _ in 0..3 {
        // Near ±1 the complement keeps the digits.
        let error = if y.abs() < 0.5 {
            libm::erf(x) - y
        } else {
            ((1.0 - y.abs()) - libm::erfc(x.abs())) * y.signum()
        };
        let step = error / (std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp());
        if !step.is_finite() {
            break;
        }
        x -= step / (1.0 + x * step);
    }
    x
}

/// Returns the modified Bessel function of the first kind, order 0. All terms of its power series are positive, so
/// there is no cancellation.
pub fn i0(x: f64) -> f64 {
    // PyTorch's is a quotient that has no limit at infinity.
    if x.is_nan() || x.is_infinite() {
        return f64::NAN;
    }
    if x.abs() > 714.0 {
        return f64::INFINITY;
    }
    let quarter = x * x / 4.0;
    let (mut term, mut sum, mut k) = (1.0f64, 1.0f64, 1.0f64);
    while term > sum * 1e-17 {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-13 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn values_of_torch_special() {
        // torch.special.{digamma,erfinv,i0} in float64.
        close(digamma(0.5), -1.963_510_026_021_423_5);
        close(digamma(3.7), 1.167_153_539_361_511_1);
        close(digamma(-1.3), 2.882_540_548_866_167_3);
        assert_eq!(digamma(0.0), f64::NEG_INFINITY);
        assert!(digamma(-2.0).is_nan());
        close(erfinv(0.3), 0.272_462_714_726_754_4);
        close(erfinv(-0.99), -1.821_386_367_718_449_6);
        close(erfinv(0.999_999), 3.458_910_737_275_499);
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5).is_nan());
        close(i0(1.0), 1.266_065_877_752_008_2);
        close(i0(30.0) / 781_672_297_823.977_7, 1.0);
    }
}
