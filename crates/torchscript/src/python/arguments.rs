//! Arguments of calls to functions that Python or `torch` provides.

use std::cell::RefCell;

use super::value::Py;

/// The arguments of a call. The arguments that have been read are recorded; a call with unread arguments is an error.
///
/// The functions have no list of parameters, which [`frazil_ir::arguments`] would need: each reads the arguments that it supports, and others are refused by
/// name.
pub(super) struct Arguments {
    positional: Vec<Py>,
    keywords: Vec<(String, Py)>,
    /// Whether the called function has read each argument; positional arguments come first.
    read: RefCell<Vec<bool>>,
}

impl Arguments {
    pub(super) fn new(positional: Vec<Py>, keywords: Vec<(String, Py)>) -> Arguments {
        let read = RefCell::new(vec![false; positional.len() + keywords.len()]);
        Arguments {
            positional,
            keywords,
            read,
        }
    }

    fn mark(&self, index: usize) {
        if let Some(read) = self.read.borrow_mut().get_mut(index) {
            *read = true;
        }
    }

    /// Returns positional argument number `at`.
    pub(super) fn at(&self, at: usize) -> Option<&Py> {
        let value = self.positional.get(at)?;
        self.mark(at);
        Some(value)
    }

    pub(super) fn first(&self) -> Option<&Py> {
        self.at(0)
    }

    /// Returns the keyword argument `name`.
    pub(super) fn named(&self, name: &str) -> Option<&Py> {
        let at = self.keywords.iter().position(|(keyword, _)| keyword == name)?;
        self.mark(self.positional.len() + at);
        self.keywords.get(at).map(|(_, value)| value)
    }

    /// Returns the argument that is positional number `at` or has the keyword `name`.
    pub(super) fn get(&self, at: usize, name: &str) -> Option<&Py> {
        self.at(at).or_else(|| self.named(name))
    }

    /// Returns all positional arguments.
    pub(super) fn positional(&self) -> &[Py] {
        (0..self.positional.len()).for_each(|at| self.mark(at));
        &self.positional
    }

    /// Returns all keyword arguments.
    pub(super) fn keywords(&self) -> &[(String, Py)] {
        (0..self.keywords.len()).for_each(|at| self.mark(self.positional.len() + at));
        &self.keywords
    }

    /// Returns the number of positional arguments.
    pub(super) fn count(&self) -> usize {
        self.positional.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.positional.is_empty() && self.keywords.is_empty()
    }

    /// Returns the integer at position `at` or with keyword `name`; `default` if it is missing, `None` if it is not an
    /// integer.
    pub(super) fn int(&self, at: usize, name: &str, default: i64) -> Option<i64> {
        self.get(at, name).map_or(Some(default), Py::as_int)
    }

    /// Returns the number at position `at` or with keyword `name`; `default` if it is missing, `None` if it is not a
    /// number.
    pub(super) fn number(&self, at: usize, name: &str, default: f64) -> Option<f64> {
        self.get(at, name).map_or(Some(default), Py::as_f64)
    }

    /// Returns the argument at position `at` or with keyword `name` as a bool; `default` if it is missing, `None` if its truth is unknown.
    pub(super) fn flag(&self, at: usize, name: &str, default: bool) -> Option<bool> {
        self.get(at, name).map_or(Some(default), Py::truth)
    }

    /// Returns a description of the first argument that has not been read, for an error message.
    pub(super) fn unread(&self) -> Option<String> {
        let read = self.read.borrow();
        let at = read.iter().position(|read| !read)?;
        Some(match at.checked_sub(self.positional.len()) {
            None => format!("argument {}", at + 1),
            Some(at) => format!("the argument `{}`", self.keywords.get(at)?.0),
        })
    }
}
