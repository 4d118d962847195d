//! Integers as functions of sizes: polynomials and rounded quotients that have the right value at every point.
//!
//! An expression is accepted only if it has been evaluated at all points, with checked arithmetic, in the order in which the library evaluates it. So it cannot
//! overflow at run time, where sizes are in their ranges.

use super::grid::Sizes;
use smallvec::SmallVec;
use std::fmt::Write;

/// Largest exponent of a size in a polynomial. Attention needs squares of sequence lengths.
const MOST_EXPONENT: u8 = 2;
/// Largest sum of the exponents of a term.
const MOST_DEGREE: u8 = 3;
/// Maximum number of terms of a polynomial.
const MOST_TERMS: usize = 40;
/// Largest divisor of quotients that is tried, except for powers of two, which are tried up to [`MOST_POWER`]. Typical divisors are the heights of tiles, and
/// alignments in elements.
const MOST_DIVISOR: i64 = 72;
/// Largest power of two that is tried as a divisor.
const MOST_POWER: i64 = 4096;

/// A product of powers of the sizes, stored as the exponent of each size.
type Monomial = SmallVec<[u8; 4]>;

/// A polynomial in the sizes: the coefficient of each monomial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Polynomial(Vec<(i64, Monomial)>);

/// An integer as a function of the sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A polynomial.
    Polynomial(Polynomial),
    /// `scale * ceil(of / divisor) + offset`, where `of` is at least 0.
    Quotient {
        /// The dividend.
        of: Polynomial,
        /// The divisor, at least 2.
        divisor: i64,
        /// The factor of the quotient.
        scale: i64,
        /// The summand.
        offset: i64,
    },
}

impl Polynomial {
    fn value(&self, sizes: &[i64]) -> Option<i64> {
        self.0.iter().try_fold(0i64, |sum, (coefficient, powers)| {
            sum.checked_add(product(powers, sizes, *coefficient)?)
        })
    }

    fn text(&self, names: &[String]) -> String {
        if self.0.is_empty() {
            return "0".to_owned();
        }
        let mut out = String::new();
        for (i, (coefficient, powers)) in self.0.iter().enumerate() {
            let factors = powers.iter().zip(names);
            let factors = factors.flat_map(|(exponent, name)| (0..*exponent).map(move |_| name.as_str()));
            let factors: Vec<&str> = factors.collect();
            let sign = match (i, *coefficient < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            let number = coefficient.unsigned_abs();
            let product = factors.join(" * ");
            let _ = match (number, product.is_empty()) {
                (_, true) => write!(out, "{sign}{number}"),
                (1, false) => write!(out, "{sign}{product}"),
                (_, false) => write!(out, "{sign}{number} * {product}"),
            };
        }
        out
    }
}

/// Returns `factor` times the monomial `powers` at `sizes`; `None` on overflow.
fn product(powers: &[u8], sizes: &[i64], factor: i64) -> Option<i64> {
    let factors = powers.iter().zip(sizes);
    let mut factors = factors.flat_map(|(exponent, size)| (0..*exponent).map(move |_| *size));
    factors.try_fold(factor, i64::checked_mul)
}

impl Expr {
    /// Returns the expression that has the value `value` at all points.
    pub fn constant(value: i64) -> Expr {
        let terms = match value {
            0 => Vec::new(),
            _ => vec![(value, Monomial::new())],
        };
        Expr::Polynomial(Polynomial(terms))
    }

    /// Returns the value for `sizes`; `None` on overflow.
    pub fn value(&self, sizes: &[i64]) -> Option<i64> {
        match self {
            Expr::Polynomial(p) => p.value(sizes),
            Expr::Quotient {
                of,
                divisor,
                scale,
                offset,
            } => quotient(of.value(sizes)?, *divisor)?
                .checked_mul(*scale)?
                .checked_add(*offset),
        }
    }

    /// Returns the expression in C, with `names` in place of the sizes.
    pub fn text(&self, names: &[String]) -> String {
        match self {
            Expr::Polynomial(p) => p.text(names),
            Expr::Quotient {
                of,
                divisor,
                scale,
                offset,
            } => {
                let scale = if *scale == 1 {
                    String::new()
                } else {
                    format!("{scale} * ")
                };
                let offset = match offset {
                    0 => String::new(),
                    1.. => format!(" + {offset}"),
                    _ => format!(" - {}", offset.unsigned_abs()),
                };
                format!("{scale}(({} + {}) / {divisor}){offset}", of.text(names), divisor - 1)
            }
        }
    }
}

/// Returns `value / divisor`, rounded up; `None` if `value` is negative or the sum overflows.
fn quotient(value: i64, divisor: i64) -> Option<i64> {
    (value >= 0).then_some(())?;
    Some(value.checked_add(divisor - 1)? / divisor)
}

/// Finds expressions for the columns of a form.
pub struct Fitter {
    /// The sizes of each point.
    points: Vec<Sizes>,
    terms: Vec<Monomial>,
    /// Points at which the values of the terms are linearly independent.
    samples: Vec<usize>,
    /// Dividends of quotients.
    dividends: Vec<(Polynomial, Vec<i64>)>,
}

impl Fitter {
    /// Returns a fitter for columns with a value for each of `points`.
    pub fn new(points: Vec<Sizes>) -> Fitter {
        let count = points.first().map_or(0, |sizes| sizes.len());
        let mut terms = terms(count);
        // Terms that overflow at a point are in no polynomial.
        terms.retain(|term| points.iter().all(|sizes| product(term, sizes, 1).is_some()));
        let samples = samples(&points, &terms);
        let mut fitter = Fitter {
            points,
            terms,
            samples,
            dividends: Vec::new(),
        };
        let products = fitter.terms.iter().filter(|t| t.iter().any(|&e| e > 0));
        let products: Vec<Polynomial> = products.map(|t| Polynomial(vec![(1, t.clone())])).collect();
        for product in products {
            fitter.add_dividend(product);
        }
        fitter
    }

    fn add_dividend(&mut self, of: Polynomial) {
        let values: Option<Vec<i64>> = self.points.iter().map(|sizes| of.value(sizes)).collect();
        let is_new = |values: &Vec<i64>| self.dividends.iter().all(|(_, other)| other != values);
        if let Some(values) = values.filter(|v| v.iter().all(|n| *n >= 0) && is_new(v)) {
            self.dividends.push((of, values));
        }
    }

    /// Returns an expression with these values at the points, if there is one.
    pub fn fit(&self, values: &[i64]) -> Option<Expr> {
        let polynomial = self.polynomial(values).map(Expr::Polynomial);
        polynomial.or_else(|| self.quotient(values))
    }

    /// Returns a polynomial with these values.
    fn polynomial(&self, values: &[i64]) -> Option<Polynomial> {
        let rows = self.samples.iter().map(|&i| {
            let (sizes, value) = (self.points.get(i)?, *values.get(i)?);
            let row = self.terms.iter().map(|t| product(t, sizes, 1));
            row.chain([Some(value)]).map(|n| n.map(modular::from)).collect()
        });
        let rows: Vec<Vec<u64>> = rows.collect::<Option<_>>()?;
        let solution = modular::solve(rows, self.terms.len());
        let terms = solution.into_iter().zip(&self.terms);
        let terms = terms.filter(|(c, _)| *c != 0).map(|(c, t)| (c, t.clone()));
        let found = Polynomial(terms.collect());
        let is_right = |(sizes, value): (&Sizes, &i64)| found.value(sizes) == Some(*value);
        self.points.iter().zip(values).all(is_right).then_some(found)
    }

    /// Returns a rounded quotient with these values.
    fn quotient(&self, values: &[i64]) -> Option<Expr> {
        let powers = std::iter::successors(Some(128), |d| Some(d * 2)).take_while(|d| *d <= MOST_POWER);
        let divisors: Vec<i64> = (2..=MOST_DIVISOR).chain(powers).collect();
        let first = *values.first()?;
        for (of, dividends) in &self.dividends {
            for &divisor in &divisors {
                let quotient_of = |i: usize| quotient(*dividends.get(i)?, divisor);
                let start = quotient_of(0)?;
                let Some(other) = (0..values.len()).find(|&i| quotient_of(i) != Some(start)) else {
                    continue;
                };
                let (run, rise) = (quotient_of(other)? - start, values.get(other)? - first);
                if rise % run != 0 {
                    continue;
                }
                let scale = rise / run;
                let Some(offset) = scale.checked_mul(start).and_then(|n| first.checked_sub(n)) else {
                    continue;
                };
                let of = of.clone();
                let found = Expr::Quotient {
                    of,
                    divisor,
                    scale,
                    offset,
                };
                let is_right = |(sizes, value): (&Sizes, &i64)| found.value(sizes) == Some(*value);
                if self.points.iter().zip(values).all(is_right) {
                    return Some(found);
                }
            }
        }
        None
    }
}

/// Returns the terms of polynomials in `count` sizes, those of low degree first.
fn terms(count: usize) -> Vec<Monomial> {
    let mut all: Vec<Monomial> = vec![SmallVec::from_elem(0, count)];
    for size in 0..count {
        let with = |exponent: u8| {
            move |term: &Monomial| {
                let mut term = term.clone();
                if let Some(e) = term.get_mut(size) {
                    *e = exponent;
                }
                term
            }
        };
        let more: Vec<Monomial> = (1..=MOST_EXPONENT)
            .flat_map(|exponent| all.iter().map(with(exponent)).collect::<Vec<_>>())
            .collect();
        all.extend(more);
        all.retain(|term| degree(term) <= MOST_DEGREE);
    }
    all.sort_by_key(degree);
    all.truncate(MOST_TERMS);
    all
}

fn degree(term: &Monomial) -> u8 {
    term.iter().fold(0, |sum, e| sum.saturating_add(*e))
}

/// Returns points at which the values of `terms` are linearly independent, as many as there are.
fn samples(points: &[Sizes], terms: &[Monomial]) -> Vec<usize> {
    let mut independent = modular::Independent::default();
    let mut samples = Vec::new();
    for (i, sizes) in points.iter().enumerate() {
        if samples.len() == terms.len() {
            break;
        }
        let row: Option<Vec<u64>> = terms.iter().map(|t| product(t, sizes, 1).map(modular::from)).collect();
        if row.is_some_and(|row| independent.add(row)) {
            samples.push(i);
        }
    }
    samples
}

/// Linear equations modulo a prime number. Solutions in small integers are exact, without the large intermediate numbers of fractions.
mod modular {
    /// The prime number 2^61 - 1.
    const PRIME: u64 = (1 << 61) - 1;

    pub fn from(value: i64) -> u64 {
        value.rem_euclid(PRIME.cast_signed()).cast_unsigned()
    }

    /// Returns the integer of the smallest absolute value that is equal to `value` modulo the prime.
    fn to(value: u64) -> i64 {
        match value > PRIME / 2 {
            true => value.cast_signed() - PRIME.cast_signed(),
            false => value.cast_signed(),
        }
    }

    fn multiply(a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b) % u128::from(PRIME);
        u64::try_from(product).unwrap_or_default()
    }

    fn subtract(a: u64, b: u64) -> u64 {
        (a + PRIME - b) % PRIME
    }

    /// Returns the number whose product with `a` is 1; `a` is not 0.
    fn inverse(a: u64) -> u64 {
        let (mut result, mut base, mut exponent) = (1, a, PRIME - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = multiply(result, base);
            }
            base = multiply(base, base);
            exponent >>= 1;
        }
        result
    }

    /// Subtracts the multiple of `row` from `from` after which the element at `pivot`, where `row` has 1, is 0.
    fn eliminate(from: &mut [u64], row: &[u64], pivot: usize) {
        let factor = from.get(pivot).copied().unwrap_or_default();
        for (a, b) in from.iter_mut().zip(row) {
            *a = subtract(*a, multiply(factor, *b));
        }
    }

    /// Divides `row` by its first element among the first `columns` that is not 0. Returns the index of the element; `None` if all are 0.
    fn normalise(row: &mut [u64], columns: usize) -> Option<usize> {
        let pivot = row.iter().take(columns).position(|n| *n != 0)?;
        let factor = inverse(*row.get(pivot)?);
        for n in row.iter_mut() {
            *n = multiply(*n, factor);
        }
        Some(pivot)
    }

    /// Linearly independent rows, each with the index of its pivot.
    #[derive(Default)]
    pub struct Independent(Vec<(usize, Vec<u64>)>);

    impl Independent {
        /// Adds `row` if it is linearly independent of the rows that were added before. Returns whether it is.
        pub fn add(&mut self, row: Vec<u64>) -> bool {
            let columns = row.len();
            self.add_equation(row, columns)
        }

        /// Adds `row`, of which the first `columns` elements are coefficients.
        fn add_equation(&mut self, mut row: Vec<u64>, columns: usize) -> bool {
            for (pivot, other) in &self.0 {
                eliminate(&mut row, other, *pivot);
            }
            let Some(pivot) = normalise(&mut row, columns) else {
                return false;
            };
            for (_, other) in &mut self.0 {
                eliminate(other, &row, pivot);
            }
            self.0.push((pivot, row));
            true
        }
    }

    /// Returns a solution of the equations `rows`: `columns` coefficients and the right side each. Unknowns that the equations leave open are 0.
    pub fn solve(rows: Vec<Vec<u64>>, columns: usize) -> Vec<i64> {
        let mut equations = Independent::default();
        for row in rows {
            equations.add_equation(row, columns);
        }
        let mut solution = vec![0; columns];
        for (pivot, row) in &equations.0 {
            if let (Some(unknown), Some(right)) = (solution.get_mut(*pivot), row.get(columns)) {
                *unknown = to(*right);
            }
        }
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Grid, SizeRange};
    use super::*;
    use frazil_recorded::random::Random;

    fn grid(ranges: &[(i64, i64)]) -> Vec<Sizes> {
        let named = ranges.iter().enumerate().map(|(i, &(low, high))| SizeRange {
            name: format!("S{i}"),
            low,
            high,
        });
        let grid = Grid::new(named.collect()).unwrap();
        (0..grid.points()).map(|p| grid.sizes(p)).collect()
    }

    fn column(points: &[Sizes], value: impl Fn(&[i64]) -> i64) -> Vec<i64> {
        points.iter().map(|s| value(s)).collect()
    }

    /// Random polynomials and rounded quotients are found, whatever the ranges are.
    #[test]
    fn formulas_are_found() {
        let mut random = Random::new(7);
        let grids = [
            grid(&[(1, 40)]),
            grid(&[(0, 7), (1, 40)]),
            grid(&[(3, 3), (2, 50)]),
            grid(&[(1, 4), (2, 6), (1, 30)]),
        ];
        for points in &grids {
            let fitter = Fitter::new(points.clone());
            for _ in 0..50 {
                let mut number = |most: i64| random.below(2 * most.unsigned_abs() + 1) as i64 - most;
                let coefficients: Vec<i64> = fitter.terms.iter().map(|_| number(1 << 20)).collect();
                let polynomial = |s: &[i64]| {
                    let terms = coefficients.iter().zip(&fitter.terms);
                    terms.map(|(c, t)| product(t, s, *c).unwrap()).sum()
                };
                let (scale, offset, divisor) = (number(1000), number(1000), 2 + number(30).abs());
                let rounded = |s: &[i64]| scale * quotient(s.iter().product(), divisor).unwrap() + offset;
                for values in [column(points, polynomial), column(points, rounded)] {
                    let expr = fitter.fit(&values).unwrap();
                    for (sizes, value) in points.iter().zip(values) {
                        assert_eq!(expr.value(sizes), Some(value));
                    }
                }
            }
        }
    }

    /// One wrong value at any point is noticed.
    #[test]
    fn every_point_is_checked() {
        let points = grid(&[(1, 3), (1, 30)]);
        let fitter = Fitter::new(points.clone());
        let formulas: [fn(&[i64]) -> i64; 2] = [|s| 64 * s[0] * s[1] + 3, |s| 5 * quotient(s[0] * s[1], 16).unwrap()];
        for formula in formulas {
            for at in 0..points.len() {
                let mut values = column(&points, formula);
                values[at] += 1;
                assert_eq!(fitter.fit(&values), None, "{at}");
            }
        }
    }

    #[test]
    fn expressions_that_overflow_are_not_found() {
        let points = grid(&[(1 << 40, (1 << 40) + 9)]);
        let fitter = Fitter::new(points.clone());
        let linear = fitter.fit(&column(&points, |s| s[0] * 3 - 1)).unwrap();
        assert_eq!(linear.text(&["s".to_owned()]), "-1 + 3 * s");
        // The square of a size overflows, and so does the sum of a dividend and a divisor near the largest integer.
        assert_eq!(
            Expr::Polynomial(Polynomial(vec![(1, smallvec::smallvec![2])])).value(&points[0]),
            None
        );
        assert_eq!(quotient(i64::MAX, 2), None);
        assert_eq!(quotient(-1, 2), None);
    }

    #[test]
    fn text_is_c() {
        let points = grid(&[(1, 9), (1, 9)]);
        let fitter = Fitter::new(points.clone());
        let names = ["s[0]".to_owned(), "s[1]".to_owned()];
        let text = |value: fn(&[i64]) -> i64| fitter.fit(&column(&points, value)).unwrap().text(&names);
        assert_eq!(text(|s| s[0]), "s[0]");
        assert_eq!(
            text(|s| 2 - s[1] * s[1] * 3 + s[0] * s[1]),
            "2 + s[0] * s[1] - 3 * s[1] * s[1]"
        );
        assert_eq!(text(|s| 7 * quotient(s[1], 4).unwrap() - 2), "7 * ((s[1] + 3) / 4) - 2");
        assert_eq!(Expr::constant(0).text(&names), "0");
        assert_eq!(Expr::constant(-5).text(&names), "-5");
    }
}
