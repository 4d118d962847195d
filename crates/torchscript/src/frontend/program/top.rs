//! What running a text by hand leaves to the code that is compiled.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::{Constant, TypeId, TypeKind};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::Program;
use crate::frontend::Result;
use crate::frontend::source::{SourceError, SourceFile};

/// The globals of a text by hand when it has been run.
pub(crate) struct Top {
    /// The text.
    text: Arc<str>,
    names: HashMap<String, TopName>,
    bound: HashMap<TextRange, Bound>,
    /// The values of names that are numbers, strings, tensors or lists and tuples of such.
    constants: HashMap<String, Constant>,
}

/// What a name at the top level stands for.
pub(crate) enum TopName {
    /// The function or class of this number.
    Definition(usize),
    /// Another name for the function of this number, which `torch.jit.script` has compiled.
    Scripted(usize),
    /// The traced function of this number.
    Traced(usize),
    /// Something that the text does not define, by an import or another name for it.
    Elsewhere,
    /// A value of this type, which only Python has.
    Python(&'static str),
    /// It cannot be known.
    Refused(Box<SourceError>),
}

/// The value of a default, or of what a class body assigns, when the definition was run.
pub(crate) enum Bound {
    /// A constant.
    Constant(Constant),
    /// A list or dictionary, by the name of its class.
    Mutable(&'static str, Option<Constant>),
    /// It cannot be known.
    Refused(Box<SourceError>),
}

impl Program<'_> {
    /// Notes what running `file` gave.
    pub(crate) fn set_top(
        &mut self,
        file: &SourceFile,
        names: HashMap<String, TopName>,
        bound: HashMap<TextRange, Bound>,
        constants: HashMap<String, Constant>,
    ) {
        self.top = Some(Top {
            text: Arc::clone(&file.text),
            names,
            bound,
            constants,
        });
    }

    /// The functions and classes of the text by hand that a name stands for, in the order of the text.
    pub(super) fn definitions(&self, file: &SourceFile) -> Vec<usize> {
        let names = self.top.iter().flat_map(|top| &top.names);
        let mut numbers: Vec<usize> = names
            .filter_map(|(name, known)| match known {
                // Another name for a function is no function.
                TopName::Definition(number) => file.definitions(name).contains(number).then_some(*number),
                _ => None,
            })
            .collect();
        numbers.sort_by_key(|&number| file.statement(number).map(Ranged::start));
        numbers
    }

    /// The name under which the text defines the function or class that `name` is another name for.
    pub(super) fn defined_as(&self, file: &SourceFile, name: &str) -> Option<String> {
        let top = self.top.as_ref().filter(|_| file.is_by_hand())?;
        let Some(TopName::Definition(number) | TopName::Scripted(number)) = top.names.get(name) else {
            return None;
        };
        let own = match file.statement(*number)? {
            Stmt::FunctionDef(def) => &def.name,
            Stmt::ClassDef(def) => &def.name,
            _ => return None,
        };
        let is_current = matches!(top.names.get(own.as_str()), Some(TopName::Definition(now)) if now == number);
        (own.as_str() != name && is_current).then(|| own.to_string())
    }

    /// The traced function that a name of the text by hand stands for.
    pub(super) fn traced_as(&self, file: &SourceFile, name: &str) -> Option<usize> {
        let top = self.top.as_ref().filter(|_| file.is_by_hand())?;
        match top.names.get(name) {
            Some(TopName::Traced(number)) => Some(*number),
            _ => None,
        }
    }

    /// Names at the top level for functions that are compiled or traced under another name, with their numbers: of a statement, or of a trace.
    pub(super) fn compiled_names(&self) -> Vec<(String, usize, bool)> {
        let names = self.top.iter().flat_map(|top| &top.names);
        let mut names: Vec<_> = names
            .filter_map(|(name, known)| match known {
                TopName::Scripted(statement) => Some((name.clone(), *statement, false)),
                TopName::Traced(number) => Some((name.clone(), *number, true)),
                _ => None,
            })
            .collect();
        names.sort();
        names
    }

    /// The statements of `file` that may say what `name` is.
    pub(super) fn candidates<'f>(&self, file: &'f SourceFile, name: &str) -> Result<Vec<(usize, &'f Stmt)>> {
        let known = match &self.top {
            Some(top) if file.is_by_hand() => top.names.get(name),
            _ => None,
        };
        match known {
            Some(TopName::Definition(number) | TopName::Scripted(number)) => {
                Ok(file.statement(*number).map(|s| (*number, s)).into_iter().collect())
            }
            Some(TopName::Refused(error)) if !file.definitions(name).is_empty() => Err(error.clone().into()),
            // What was defined before is hidden by it.
            Some(TopName::Elsewhere) if !file.definitions(name).is_empty() => Ok(Vec::new()),
            _ => {
                let defined = file.definitions(name).iter().rev();
                let defined = defined.filter_map(|&number| Some((number, file.statement(number)?)));
                let assigned = file.assignments(name).iter();
                let assigned = assigned.filter_map(|&number| Some((number, file.statement(number)?)));
                Ok(defined.chain(assigned).collect())
            }
        }
    }

    /// The class of the value that `name` has at the top level of a text by hand, which code cannot use.
    ///
    /// # Errors
    /// When the value cannot be known.
    pub(crate) fn python_value(&self, file: &SourceFile, name: &str) -> Result<Option<&'static str>> {
        match self
            .top
            .as_ref()
            .filter(|_| file.is_by_hand())
            .and_then(|top| top.names.get(name))
        {
            Some(TopName::Python(class)) => Ok(Some(class)),
            Some(TopName::Refused(error)) => Err(error.clone().into()),
            _ => Ok(None),
        }
    }

    /// What `expr` was when its definition was run, if it is a default or a value in a class body.
    pub(crate) fn bound_value(&self, file: &SourceFile, expr: &Expr) -> Option<&Bound> {
        let top = self.top.as_ref().filter(|top| Arc::ptr_eq(&top.text, &file.text))?;
        top.bound.get(&expr.range())
    }

    /// The value of a default that nothing is given for, where Python runs the function.
    pub(crate) fn python_default(&mut self, file: &SourceFile, expr: &Expr) -> Result<Constant> {
        match self.bound_value(file, expr) {
            Some(Bound::Constant(known)) => Ok(known.clone()),
            Some(Bound::Refused(error)) => Err(error.clone().into()),
            _ => self.constant_expr(file, expr, None),
        }
    }

    /// The number, string or tensor that a name at the top level of the text has, for code that Python would run.
    pub(crate) fn python_constant(&self, file: &SourceFile, name: &str) -> Option<Constant> {
        self.top
            .as_ref()
            .filter(|_| file.is_by_hand())?
            .constants
            .get(name)
            .cloned()
    }

    /// The constant as a value of type `ty`, where Python's type is not told apart.
    pub(super) fn fitted(&self, constant: Constant, ty: Option<TypeId>) -> Constant {
        let kind = ty.map(|ty| match self.ctx.type_kind(ty) {
            TypeKind::Optional(inner) => self.ctx.type_kind(inner),
            other => other,
        });
        match (kind, constant) {
            (Some(TypeKind::Float), Constant::Int(i)) => Constant::Float(i as f64),
            (Some(TypeKind::List(element)), constant) if constant.items().is_some() => {
                let items = constant.items().unwrap_or_default().to_vec();
                let items = items.into_iter().map(|item| self.fitted(item, Some(element)));
                Constant::list(element, items.collect())
            }
            (Some(TypeKind::Tuple(elements)), constant) if constant.items().is_some() => {
                let elements = self.ctx.types(elements).to_vec();
                let items = constant.items().unwrap_or_default().to_vec();
                if elements.len() != items.len() {
                    return constant;
                }
                let items = items
                    .into_iter()
                    .zip(elements)
                    .map(|(item, ty)| self.fitted(item, Some(ty)));
                Constant::tuple(&self.ctx, items.collect())
            }
            (_, constant) => constant,
        }
    }
}
