//! The results of a traced function.

use super::Var;

/// The results of a traced function.
///
/// ```
/// # use frazil::{Session, Tensor, eager::Var, trace::TraceOptions};
/// # let session = Session::new();
/// let function = |x: &[Var]| Ok((x[0].neg().call()?, x[0].exp().call()?)); // tuples, vectors and variables become `Outputs`
/// let trace = session.trace(function, &[Tensor::from_f32(&[0.0], &[1])?], &TraceOptions::default())?;
/// assert!(trace.graph("forward")?.to_string().contains("prim::TupleConstruct(%0, %1)"));
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Outputs {
    /// A tensor.
    Tensor(Var),
    /// A tuple.
    Tuple(Vec<Outputs>),
    /// A list; see [`TraceOptions::strict`](crate::trace::TraceOptions::strict).
    List(Vec<Outputs>),
    /// A dictionary; see [`TraceOptions::strict`](crate::trace::TraceOptions::strict).
    Dict(Vec<(String, Outputs)>),
}

impl Outputs {
    /// Returns the tensors in the results, in order.
    pub(crate) fn tensors(&self) -> Vec<Var> {
        match self {
            Outputs::Tensor(var) => vec![var.clone()],
            Outputs::Tuple(items) | Outputs::List(items) => items.iter().flat_map(Outputs::tensors).collect(),
            Outputs::Dict(entries) => entries.iter().flat_map(|(_, item)| item.tensors()).collect(),
        }
    }

    pub(crate) fn has_containers(&self) -> bool {
        match self {
            Outputs::Tensor(_) => false,
            Outputs::Tuple(items) => items.iter().any(Outputs::has_containers),
            Outputs::List(_) | Outputs::Dict(_) => true,
        }
    }
}

impl From<Var> for Outputs {
    fn from(var: Var) -> Outputs {
        Outputs::Tensor(var)
    }
}

impl From<Vec<Var>> for Outputs {
    fn from(vars: Vec<Var>) -> Outputs {
        Outputs::List(vars.into_iter().map(Outputs::Tensor).collect())
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Into<Outputs>),*> From<($($name,)*)> for Outputs {
            #[allow(non_snake_case, reason = "a type and its value share the name")]
            fn from(($($name,)*): ($($name,)*)) -> Outputs {
                Outputs::Tuple(vec![$($name.into()),*])
            }
        }
    )*};
}

tuples! { A B; A B C; A B C D; A B C D E; }
