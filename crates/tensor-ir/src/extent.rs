//! Extents of tensors as functions of symbols: named sizes that differ between calls.
//!
//! A tensor graph is made for one value of each [`Symbol`], its representative. Extents state how sizes depend on symbols, so that it is known which
//! sizes change together.
//!
//! # Canonical form
//!
//! An [`Extent`] is a polynomial with integer coefficients over [`Atom`]s, so that equal sums of products are equal values. The operations simplify:
//! constants are folded, `ceildiv(a, b)` is `floordiv(a + b - 1, b)`, a division by a constant that divides all coefficients is one of coefficients, and
//! `min` and `max` are flat, sorted and without equal operands.

use std::collections::BTreeMap;
use std::fmt;

/// A named size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name: letters, digits and `_`, not beginning with a digit.
    pub name: String,
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
    /// The value that the sizes of the graph are for.
    pub representative: i64,
}

/// Maximum number of terms of an extent.
const MAX_TERMS: usize = 32;
/// Maximum number of factors of a term, and of operands of `min` and `max`.
const MAX_FACTORS: usize = 8;
/// Maximum nesting of `floordiv`, `min` and `max`.
const MAX_DEPTH: usize = 8;

/// The reason why an extent cannot be built or evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtentError {
    /// A number does not fit 64 bits.
    #[error("a number that does not fit 64 bits")]
    Overflow,
    /// A divisor is not positive.
    #[error("a division by a number that is not positive")]
    Divisor,
    /// The expression has too many terms, factors or levels.
    #[error("an expression of more than {MAX_TERMS} terms, {MAX_FACTORS} factors or {MAX_DEPTH} levels")]
    TooLarge,
    /// There is no symbol with this index.
    #[error("a symbol that is not defined")]
    Undefined,
}

/// A result of building or evaluating an extent.
pub type Checked<T> = Result<T, ExtentError>;

/// A factor of a term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// The symbol with this index.
    Symbol(u32),
    /// The first extent divided by the second, which is positive, rounded down.
    FloorDiv(Box<(Extent, Extent)>),
    /// The smallest of several extents.
    Min(Vec<Extent>),
    /// The largest of several extents.
    Max(Vec<Extent>),
}

/// A function of symbols, in canonical form: see the [module documentation](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The coefficient of each product of atoms, which are sorted; the empty product is 1. No coefficient is 0.
    terms: BTreeMap<Vec<Atom>, i64>,
}

impl From<i64> for Extent {
    fn from(value: i64) -> Extent {
        let terms = (value != 0).then(|| (Vec::new(), value));
        Extent {
            terms: terms.into_iter().collect(),
        }
    }
}

impl Extent {
    /// Returns the symbol with index `index` as an extent.
    pub fn symbol(index: u32) -> Extent {
        Extent::atom(Atom::Symbol(index))
    }

    fn atom(atom: Atom) -> Extent {
        Extent {
            terms: BTreeMap::from([(vec![atom], 1)]),
        }
    }

    /// Returns the value, if it depends on no symbol.
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// Returns the sum.
    ///
    /// # Errors
    /// If a coefficient overflows, or the result is too large.
    pub fn plus(&self, other: &Extent) -> Checked<Extent> {
        let mut sum = self.clone();
        for (atoms, &coefficient) in &other.terms {
            sum.add_term(atoms.clone(), coefficient)?;
        }
        sum.bounded()
    }

    /// Returns the product.
    ///
    /// # Errors
    /// If a coefficient overflows, or the result is too large.
    pub fn times(&self, other: &Extent) -> Checked<Extent> {
        let mut product = Extent::default();
        for (a, &x) in &self.terms {
            for (b, &y) in &other.terms {
                let mut atoms = [a.as_slice(), b.as_slice()].concat();
                if atoms.len() > MAX_FACTORS {
                    return Err(ExtentError::TooLarge);
                }
                atoms.sort();
                product.add_term(atoms, x.checked_mul(y).ok_or(ExtentError::Overflow)?)?;
            }
        }
        product.bounded()
    }

    /// Returns the quotient, rounded down.
    ///
    /// # Errors
    /// If the divisor is a constant that is not positive, or the result is too large.
    pub fn floordiv(&self, divisor: &Extent) -> Checked<Extent> {
        if let Some(divisor) = divisor.as_constant() {
            if divisor <= 0 {
                return Err(ExtentError::Divisor);
            }
            if let Some(value) = self.as_constant() {
                return Ok(value.div_euclid(divisor).into());
            }
            if self.terms.values().all(|coefficient| coefficient % divisor == 0) {
                let mut quotient = self.clone();
                quotient
                    .terms
                    .values_mut()
                    .for_each(|coefficient| *coefficient /= divisor);
                return Ok(quotient);
            }
        } else if self == divisor {
            return Ok(1.into());
        }
        Extent::atom(Atom::FloorDiv(Box::new((self.clone(), divisor.clone())))).bounded()
    }

    /// Returns the quotient, rounded up.
    ///
    /// # Errors
    /// Those of [`floordiv`](Self::floordiv) and [`plus`](Self::plus).
    pub fn ceildiv(&self, divisor: &Extent) -> Checked<Extent> {
        self.plus(divisor)?.plus(&Extent::from(-1))?.floordiv(divisor)
    }

    /// Returns the smallest of `extents`; 0 if there is none.
    ///
    /// # Errors
    /// If the result is too large.
    pub fn min(extents: &[Extent]) -> Checked<Extent> {
        let inner = |atom: &Atom| match atom {
            Atom::Min(inner) => Some(inner.clone()),
            _ => None,
        };
        Extent::selected(extents, inner, i64::min, Atom::Min)
    }

    /// Returns the largest of `extents`; 0 if there is none.
    ///
    /// # Errors
    /// If the result is too large.
    pub fn max(extents: &[Extent]) -> Checked<Extent> {
        let inner = |atom: &Atom| match atom {
            Atom::Max(inner) => Some(inner.clone()),
            _ => None,
        };
        Extent::selected(extents, inner, i64::max, Atom::Max)
    }

    fn selected(
        extents: &[Extent],
        inner: fn(&Atom) -> Option<Vec<Extent>>,
        select: fn(i64, i64) -> i64,
        atom: fn(Vec<Extent>) -> Atom,
    ) -> Checked<Extent> {
        let mut constant: Option<i64> = None;
        let mut others = Vec::new();
        for extent in extents {
            // The operands of a nested atom of the same kind are canonical, so that none of them is such an atom.
            let flat = extent.as_atom().and_then(inner).unwrap_or_else(|| vec![extent.clone()]);
            for operand in flat {
                match operand.as_constant() {
                    Some(value) => constant = Some(constant.map_or(value, |before| select(before, value))),
                    None => others.push(operand),
                }
            }
        }
        others.sort();
        others.dedup();
        others.extend(constant.map(Extent::from));
        match others.len() {
            0 => Ok(Extent::default()),
            1 => Ok(others.swap_remove(0)),
            n if n > MAX_FACTORS => Err(ExtentError::TooLarge),
            _ => Extent::atom(atom(others)).bounded(),
        }
    }

    /// Returns the atom that is the whole extent.
    fn as_atom(&self) -> Option<&Atom> {
        match self.terms.iter().next() {
            Some((atoms, 1)) if self.terms.len() == 1 && atoms.len() == 1 => atoms.first(),
            _ => None,
        }
    }

    fn add_term(&mut self, atoms: Vec<Atom>, coefficient: i64) -> Checked<()> {
        let before = self.terms.get(&atoms).copied().unwrap_or(0);
        match before.checked_add(coefficient).ok_or(ExtentError::Overflow)? {
            0 => drop(self.terms.remove(&atoms)),
            sum => drop(self.terms.insert(atoms, sum)),
        }
        Ok(())
    }

    fn bounded(self) -> Checked<Extent> {
        match self.terms.len() <= MAX_TERMS && self.depth() <= MAX_DEPTH {
            true => Ok(self),
            false => Err(ExtentError::TooLarge),
        }
    }

    /// Returns the nesting of `floordiv`, `min` and `max`.
    fn depth(&self) -> usize {
        let of = |atom: &Atom| match atom {
            Atom::Symbol(_) => 0,
            Atom::FloorDiv(operands) => 1 + operands.0.depth().max(operands.1.depth()),
            Atom::Min(operands) | Atom::Max(operands) => 1 + operands.iter().map(Extent::depth).max().unwrap_or(0),
        };
        self.terms.keys().flatten().map(of).max().unwrap_or(0)
    }

    /// Evaluates the extent for the given values of the symbols.
    ///
    /// # Errors
    /// If a number overflows, a divisor is not positive, or a symbol has no value.
    pub fn eval(&self, values: &[i64]) -> Checked<i64> {
        let mut sum = 0i64;
        for (atoms, &coefficient) in &self.terms {
            let mut product = coefficient;
            for atom in atoms {
                product = product.checked_mul(atom.eval(values)?).ok_or(ExtentError::Overflow)?;
            }
            sum = sum.checked_add(product).ok_or(ExtentError::Overflow)?;
        }
        Ok(sum)
    }

    /// Returns the text, with the names of the symbols.
    pub fn display<'a>(&'a self, symbols: &'a [Symbol]) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            if self.terms.is_empty() {
                return f.write_str("0");
            }
            // The constant is the first term in order, and the last one in text.
            let (constant, others): (Vec<_>, Vec<_>) = self.terms.iter().partition(|(atoms, _)| atoms.is_empty());
            for (i, (atoms, coefficient)) in others.into_iter().chain(constant).enumerate() {
                f.write_str(match (i, *coefficient < 0) {
                    (0, false) => "",
                    (0, true) => "-",
                    (_, false) => " + ",
                    (_, true) => " - ",
                })?;
                let magnitude = coefficient.unsigned_abs();
                if magnitude != 1 || atoms.is_empty() {
                    let product = if atoms.is_empty() { "" } else { "*" };
                    write!(f, "{magnitude}{product}")?;
                }
                for (i, atom) in atoms.iter().enumerate() {
                    f.write_str(if i > 0 { "*" } else { "" })?;
                    atom.write(f, symbols)?;
                }
            }
            Ok(())
        })
    }
}

impl Atom {
    fn eval(&self, values: &[i64]) -> Checked<i64> {
        let all = |extents: &[Extent]| {
            extents
                .iter()
                .map(|extent| extent.eval(values))
                .collect::<Checked<Vec<i64>>>()
        };
        match self {
            Atom::Symbol(index) => values.get(*index as usize).copied().ok_or(ExtentError::Undefined),
            Atom::FloorDiv(operands) => {
                let (dividend, divisor) = (operands.0.eval(values)?, operands.1.eval(values)?);
                match divisor > 0 {
                    true => Ok(dividend.div_euclid(divisor)),
                    false => Err(ExtentError::Divisor),
                }
            }
            Atom::Min(extents) => Ok(all(extents)?.into_iter().min().unwrap_or(0)),
            Atom::Max(extents) => Ok(all(extents)?.into_iter().max().unwrap_or(0)),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, symbols: &[Symbol]) -> fmt::Result {
        let (name, operands) = match self {
            Atom::Symbol(index) => {
                return match symbols.get(*index as usize) {
                    Some(symbol) => f.write_str(&symbol.name),
                    None => write!(f, "undefined{index}"),
                };
            }
            Atom::FloorDiv(operands) => ("floordiv", vec![&operands.0, &operands.1]),
            Atom::Min(extents) => ("min", extents.iter().collect()),
            Atom::Max(extents) => ("max", extents.iter().collect()),
        };
        write!(f, "{name}(")?;
        for (i, operand) in operands.into_iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, operand.display(symbols))?;
        }
        f.write_str(")")
    }
}

/// Returns values of the symbols with which statements about extents are tested: the representatives, all smallest values, all largest values, and each
/// symbol at the ends of its range with the others at their representatives.
pub fn samples(symbols: &[Symbol]) -> Vec<Vec<i64>> {
    let all = |value: fn(&Symbol) -> i64| -> Vec<i64> { symbols.iter().map(value).collect() };
    let representatives = all(|symbol| symbol.representative);
    let mut found = vec![
        representatives.clone(),
        all(|symbol| symbol.min),
        all(|symbol| symbol.max),
    ];
    for (i, symbol) in symbols.iter().enumerate() {
        for value in [symbol.min, symbol.max] {
            let mut values = representatives.clone();
            values[i] = value;
            found.push(values);
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symbols() -> Vec<Symbol> {
        let symbol = |name: &str, max, representative| Symbol {
            name: name.to_owned(),
            min: 1,
            max,
            representative,
        };
        vec![symbol("B", 8, 2), symbol("N", 512, 16), symbol("M", 100, 7)]
    }

    /// An expression as it is written.
    #[derive(Clone, Debug)]
    enum Tree {
        Constant(i64),
        Symbol(u32),
        Plus(Box<Tree>, Box<Tree>),
        Times(Box<Tree>, Box<Tree>),
        FloorDiv(Box<Tree>, i64),
        CeilDiv(Box<Tree>, i64),
        Min(Vec<Tree>),
        Max(Vec<Tree>),
    }

    impl Tree {
        fn eval(&self, values: &[i64]) -> i128 {
            let all = |trees: &[Tree]| -> Vec<i128> { trees.iter().map(|tree| tree.eval(values)).collect() };
            match self {
                Tree::Constant(value) => i128::from(*value),
                Tree::Symbol(index) => i128::from(values[*index as usize]),
                Tree::Plus(a, b) => a.eval(values) + b.eval(values),
                Tree::Times(a, b) => a.eval(values) * b.eval(values),
                Tree::FloorDiv(a, b) => a.eval(values).div_euclid(i128::from(*b)),
                Tree::CeilDiv(a, b) => -(-a.eval(values)).div_euclid(i128::from(*b)),
                Tree::Min(trees) => all(trees).into_iter().min().unwrap(),
                Tree::Max(trees) => all(trees).into_iter().max().unwrap(),
            }
        }

        fn extent(&self) -> Checked<Extent> {
            let all = |trees: &[Tree]| trees.iter().map(Tree::extent).collect::<Checked<Vec<Extent>>>();
            match self {
                Tree::Constant(value) => Ok((*value).into()),
                Tree::Symbol(index) => Ok(Extent::symbol(*index)),
                Tree::Plus(a, b) => a.extent()?.plus(&b.extent()?),
                Tree::Times(a, b) => a.extent()?.times(&b.extent()?),
                Tree::FloorDiv(a, b) => a.extent()?.floordiv(&(*b).into()),
                Tree::CeilDiv(a, b) => a.extent()?.ceildiv(&(*b).into()),
                Tree::Min(trees) => Extent::min(&all(trees)?),
                Tree::Max(trees) => Extent::max(&all(trees)?),
            }
        }
    }

    fn trees() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![(-20i64..20).prop_map(Tree::Constant), (0u32..3).prop_map(Tree::Symbol)];
        leaf.prop_recursive(4, 24, 3, |inner| {
            let pair = || (inner.clone(), inner.clone());
            let several = || prop::collection::vec(inner.clone(), 1..4);
            prop_oneof![
                pair().prop_map(|(a, b)| Tree::Plus(a.into(), b.into())),
                pair().prop_map(|(a, b)| Tree::Times(a.into(), b.into())),
                (inner.clone(), 1i64..9).prop_map(|(a, b)| Tree::FloorDiv(a.into(), b)),
                (inner.clone(), 1i64..9).prop_map(|(a, b)| Tree::CeilDiv(a.into(), b)),
                several().prop_map(Tree::Min),
                several().prop_map(Tree::Max),
            ]
        })
    }

    proptest! {
        #[test]
        fn extents_have_the_values_of_what_they_are_built_from(tree in trees(), values in prop::array::uniform3(1i64..600)) {
            if let Ok(extent) = tree.extent() {
                // The canonical form multiplies out, which may overflow where the expression does not.
                if let Ok(value) = extent.eval(&values) {
                    prop_assert_eq!(i128::from(value), tree.eval(&values), "{}", extent.display(&symbols()));
                }
            }
        }

        #[test]
        fn sums_and_products_have_one_form(a in trees(), b in trees(), c in trees()) {
            if let (Ok(a), Ok(b), Ok(c)) = (a.extent(), b.extent(), c.extent()) {
                prop_assert_eq!(a.plus(&b), b.plus(&a));
                prop_assert_eq!(a.times(&b), b.times(&a));
                let together = a.plus(&b).and_then(|sum| sum.times(&c));
                let apart = a.times(&c).and_then(|left| left.plus(&b.times(&c)?));
                if let (Ok(together), Ok(apart)) = (together, apart) {
                    prop_assert_eq!(together, apart);
                }
                let nested = Extent::min(&[a.clone(), b.clone()]).and_then(|inner| Extent::min(&[c.clone(), inner]));
                if let (Ok(nested), Ok(flat)) = (nested, Extent::min(&[a, b, c])) {
                    prop_assert_eq!(nested, flat);
                }
            }
        }
    }

    #[test]
    fn texts_are_short() {
        let (b, n) = (Extent::symbol(0), Extent::symbol(1));
        let text = |extent: Checked<Extent>| extent.unwrap().display(&symbols()).to_string();
        assert_eq!(
            text(
                n.times(&2.into())
                    .and_then(|x| x.plus(&b.times(&n)?)?.plus(&(-3).into()))
            ),
            "B*N + 2*N - 3"
        );
        assert_eq!(text(n.ceildiv(&2.into())), "floordiv(N + 1, 2)");
        assert_eq!(text(n.times(&4.into()).and_then(|x| x.floordiv(&2.into()))), "2*N");
        assert_eq!(text(n.floordiv(&n)), "1");
        assert_eq!(
            text(Extent::max(&[n.clone(), 4.into(), n, 9.into()])),
            "max(N, 9)".to_owned()
        );
        assert_eq!(text(Ok(0.into())), "0");
    }

    #[test]
    fn errors_are_not_panics() {
        let (n, large) = (Extent::symbol(1), Extent::from(i64::MAX));
        assert_eq!(large.plus(&1.into()), Err(ExtentError::Overflow));
        assert_eq!(large.times(&2.into()), Err(ExtentError::Overflow));
        assert_eq!(n.floordiv(&0.into()), Err(ExtentError::Divisor));
        assert_eq!(n.times(&large).unwrap().eval(&[1, 2, 3]), Err(ExtentError::Overflow));
        assert_eq!(
            n.floordiv(&Extent::symbol(0)).unwrap().eval(&[0, 2]),
            Err(ExtentError::Divisor)
        );
        assert_eq!(n.eval(&[1]), Err(ExtentError::Undefined));
        let power = (0..20).try_fold(n.clone(), |power, _| power.times(&n));
        assert_eq!(power, Err(ExtentError::TooLarge));
        let mut deep = n.clone();
        let deeper = (0..20).try_for_each(|_| deep.plus(&1.into())?.floordiv(&2.into()).map(|next| deep = next));
        assert_eq!(deeper, Err(ExtentError::TooLarge));
    }

    #[test]
    fn samples_contain_the_ends_of_each_range() {
        let found = samples(&symbols());
        for values in [[2, 16, 7], [1, 1, 1], [8, 512, 100], [2, 512, 7], [2, 16, 1]] {
            assert!(found.contains(&values.to_vec()), "{values:?}");
        }
        assert_eq!(found.len(), 9);
        assert_eq!(samples(&[]), [vec![0i64; 0]]);
    }
}
