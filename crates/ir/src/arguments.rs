//! Assignment of the arguments of a call to the parameters of a function: by position, by keyword, and by default.
//!
//! The rules are Python's, which PyTorch's schemas share. Conversions by type, the values of defaults and the texts of errors belong to the callers: PyTorch
//! has different texts for calls of operators, calls in TorchScript and calls in Python.
//!
//! ```
//! use frazil_ir::arguments::{Assigned, Assignment, AssignmentError, Parameter};
//!
//! /// A parameter: its name, and whether it has a default.
//! struct Named(&'static str, bool);
//!
//! impl Parameter<&str> for Named {
//!     fn is_named(&self, keyword: &&str) -> bool {
//!         self.0 == *keyword
//!     }
//!     fn is_keyword_only(&self) -> bool {
//!         false
//!     }
//!     fn has_default(&self) -> bool {
//!         self.1
//!     }
//! }
//!
//! // f(5, c=7) for def f(a, b=1, c=2)
//! let (parameters, keywords) = ([Named("a", false), Named("b", true), Named("c", true)], [("c", 7)]);
//! let mut call = Assignment::new(1, &keywords);
//! let assigned: Result<Vec<_>, _> = parameters.iter().map(|parameter| call.next(parameter)).collect();
//! assert_eq!(assigned?, [Assigned::Positional(0), Assigned::Default, Assigned::Keyword(0)]);
//! call.finish(&parameters)?;
//! # Ok::<(), AssignmentError>(())
//! ```

use smallvec::SmallVec;
use std::ops::Range;

/// A parameter of a function that is called with keywords of type `K`.
pub trait Parameter<K> {
    /// Returns whether the keyword argument `keyword` is an argument for this parameter.
    fn is_named(&self, keyword: &K) -> bool;

    /// Returns whether positional arguments are not accepted: the parameter follows the `*`.
    fn is_keyword_only(&self) -> bool;

    /// Returns whether the parameter has a default.
    fn has_default(&self) -> bool;
}

impl<K, P: Parameter<K>> Parameter<K> for &P {
    fn is_named(&self, keyword: &K) -> bool {
        (**self).is_named(keyword)
    }

    fn is_keyword_only(&self) -> bool {
        (**self).is_keyword_only()
    }

    fn has_default(&self) -> bool {
        (**self).has_default()
    }
}

/// The argument that a parameter gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// The positional argument with this index.
    Positional(usize),
    /// The keyword argument with this index.
    Keyword(usize),
    /// The default of the parameter.
    Default,
}

impl Assigned {
    /// Returns the passed argument from the two lists of the call; `None` for a default.
    pub fn passed<'c, K, V>(self, positional: &'c [V], keywords: &'c [(K, V)]) -> Option<&'c V> {
        match self {
            Assigned::Positional(index) => positional.get(index),
            Assigned::Keyword(index) => keywords.get(index).map(|(_, value)| value),
            Assigned::Default => None,
        }
    }
}

/// The reason why the arguments of a call cannot be assigned to the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// The parameter has no default, and the call passes no argument for it.
    #[error("an argument is missing")]
    Missing,
    /// The call passes more positional arguments than there are parameters that accept them.
    #[error("at most {accepted} positional arguments are accepted, but {passed} are passed")]
    TooMany {
        /// Number of positional arguments that were assigned.
        accepted: usize,
        /// Number of positional arguments of the call.
        passed: usize,
    },
    /// No parameter has the name of the keyword argument with this index.
    #[error("keyword argument {0} names no parameter")]
    Unknown(usize),
    /// The parameter named by the keyword argument with this index has another argument already.
    #[error("keyword argument {0} names a parameter that has another argument")]
    Duplicate(usize),
}

impl AssignmentError {
    /// Returns the keyword that cannot be assigned, from the keyword arguments of the call; `None` for the other errors.
    pub fn keyword<'c, K, V>(&self, keywords: &'c [(K, V)]) -> Option<&'c K> {
        match *self {
            AssignmentError::Unknown(index) | AssignmentError::Duplicate(index) => {
                keywords.get(index).map(|(keyword, _)| keyword)
            }
            AssignmentError::Missing | AssignmentError::TooMany { .. } => None,
        }
    }
}

/// The arguments of a call, while they are assigned to parameters in the order of the parameters.
#[derive(Clone, Debug)]
pub struct Assignment<'c, K, V> {
    /// Number of positional arguments of the call.
    positional: usize,
    /// Number of positional arguments that have been assigned.
    assigned: usize,
    keywords: &'c [(K, V)],
    /// For each keyword argument, whether it has been assigned.
    used: SmallVec<[bool; 8]>,
}

impl<'c, K, V> Assignment<'c, K, V> {
    /// Starts with the number of positional arguments of a call and with its keyword arguments.
    pub fn new(positional: usize, keywords: &'c [(K, V)]) -> Assignment<'c, K, V> {
        Assignment {
            positional,
            assigned: 0,
            keywords,
            used: SmallVec::from_elem(false, keywords.len()),
        }
    }

    /// Assigns an argument to the next parameter.
    ///
    /// # Errors
    /// [`AssignmentError::Missing`].
    pub fn next(&mut self, parameter: &impl Parameter<K>) -> Result<Assigned, AssignmentError> {
        if self.assigned < self.positional && !parameter.is_keyword_only() {
            self.assigned += 1;
            return Ok(Assigned::Positional(self.assigned - 1));
        }
        let named = self
            .keywords
            .iter()
            .position(|(keyword, _)| parameter.is_named(keyword));
        match named {
            Some(index) => {
                self.mark(index);
                Ok(Assigned::Keyword(index))
            }
            None if parameter.has_default() => Ok(Assigned::Default),
            None => Err(AssignmentError::Missing),
        }
    }

    /// Returns the indices of the positional arguments that have not been assigned.
    pub fn unassigned(&self) -> Range<usize> {
        self.assigned..self.positional
    }

    /// Assigns all remaining positional arguments to one parameter, such as `*args`, and returns their indices.
    pub fn take_positional(&mut self) -> Range<usize> {
        let taken = self.unassigned();
        self.assigned = self.positional;
        taken
    }

    /// Assigns all keyword arguments that name none of `parameters` to one parameter, such as `**kwargs`, and returns their indices.
    pub fn take_keywords<P: Parameter<K>>(&mut self, parameters: &[P]) -> SmallVec<[usize; 4]> {
        let mut taken = SmallVec::new();
        for (index, (keyword, _)) in self.keywords.iter().enumerate() {
            if !self.is_used(index) && !parameters.iter().any(|parameter| parameter.is_named(keyword)) {
                self.mark(index);
                taken.push(index);
            }
        }
        taken
    }

    /// Checks that all arguments of the call have been assigned. `parameters` are all parameters of the function.
    ///
    /// # Errors
    /// [`AssignmentError::TooMany`], [`AssignmentError::Unknown`] or [`AssignmentError::Duplicate`], in this order.
    pub fn finish<P, I>(&self, parameters: I) -> Result<(), AssignmentError>
    where
        P: Parameter<K>,
        I: IntoIterator<Item = P, IntoIter: Clone>,
    {
        if self.assigned < self.positional {
            return Err(AssignmentError::TooMany {
                accepted: self.assigned,
                passed: self.positional,
            });
        }
        let Some(first) = self.used.iter().position(|used| !used) else {
            return Ok(());
        };
        let parameters = parameters.into_iter();
        let is_known = |keyword: &K| parameters.clone().any(|parameter| parameter.is_named(keyword));
        let mut unused = self.keywords.iter().zip(&self.used);
        let unknown = unused.position(|((keyword, _), used)| !used && !is_known(keyword));
        Err(unknown.map_or(AssignmentError::Duplicate(first), AssignmentError::Unknown))
    }

    fn is_used(&self, keyword: usize) -> bool {
        self.used.get(keyword).is_some_and(|used| *used)
    }

    fn mark(&mut self, keyword: usize) {
        if let Some(used) = self.used.get_mut(keyword) {
            *used = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named {
        name: &'static str,
        is_keyword_only: bool,
        has_default: bool,
    }

    impl Parameter<&str> for Named {
        fn is_named(&self, keyword: &&str) -> bool {
            self.name == *keyword
        }

        fn is_keyword_only(&self) -> bool {
            self.is_keyword_only
        }

        fn has_default(&self) -> bool {
            self.has_default
        }
    }

    /// Parameters by their text: `a` is required, `b=` has a default, and those after `*` are keyword-only.
    fn parameters(names: &[&'static str]) -> Vec<Named> {
        let star = names.iter().position(|name| *name == "*").unwrap_or(names.len());
        let named = names.iter().enumerate().filter(|(_, name)| **name != "*");
        let named = named.map(|(i, name)| Named {
            name: name.trim_end_matches('='),
            is_keyword_only: i > star,
            has_default: name.ends_with('='),
        });
        named.collect()
    }

    fn assign(names: &[&'static str], positional: usize, keywords: &[&str]) -> Result<Vec<Assigned>, AssignmentError> {
        let (parameters, keywords) = (parameters(names), keywords.iter().map(|k| (*k, ())).collect::<Vec<_>>());
        let mut call = Assignment::new(positional, &keywords);
        let assigned: Result<_, _> = parameters.iter().map(|parameter| call.next(parameter)).collect();
        call.finish(&parameters).and(assigned)
    }

    #[test]
    fn positional_arguments_come_before_keywords_and_defaults() {
        use Assigned::{Default, Keyword, Positional};
        assert_eq!(
            assign(&["a", "b=", "*", "c", "d="], 1, &["d", "c"]),
            Ok(vec![Positional(0), Default, Keyword(1), Keyword(0)])
        );
    }

    #[test]
    fn errors_name_the_argument() {
        use AssignmentError::{Duplicate, Missing, TooMany, Unknown};
        let too_many = TooMany { accepted: 1, passed: 2 };
        assert_eq!(assign(&["a", "b"], 1, &[]), Err(Missing));
        assert_eq!(assign(&["a"], 2, &[]), Err(too_many));
        assert_eq!(assign(&["a", "*", "b="], 2, &[]), Err(too_many));
        assert_eq!(assign(&["a", "b="], 1, &["b", "c"]), Err(Unknown(1)));
        assert_eq!(assign(&["a", "b="], 1, &["a", "c"]), Err(Unknown(1)));
        assert_eq!(assign(&["a", "b="], 1, &["b", "a"]), Err(Duplicate(1)));
        assert_eq!(assign(&["a"], 0, &["a", "a"]), Err(Duplicate(1)));
    }

    #[test]
    fn remaining_arguments_are_taken_together() {
        let (parameters, keywords) = (parameters(&["a"]), [("b", ()), ("a", ()), ("c", ())]);
        let mut call = Assignment::new(3, &keywords);
        assert_eq!(call.next(&parameters[0]), Ok(Assigned::Positional(0)));
        assert_eq!(call.take_positional(), 1..3);
        assert_eq!(call.take_keywords(&parameters).as_slice(), [0, 2]);
        assert_eq!(call.finish(&parameters), Err(AssignmentError::Duplicate(1)));
    }
}
