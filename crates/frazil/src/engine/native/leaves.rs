//! The tensors of which the results of compiled code consist: outputs of the code, inputs, and views of both.

use frazil_planner::specialise::{PathStep, ResultSpec};
use frazil_runtime::Tensor;
use frazil_runtime::marks::Marks;
use frazil_runtime::value::{TensorCell, Value};
use std::cell::RefCell;
use std::collections::HashMap;

/// The tensors of which the results of one run consist.
pub(super) struct Leaves<'a> {
    outputs: Vec<Tensor>,
    inputs: &'a [TensorCell],
    /// The variables of tensors that share memory with other results, by number.
    variables: RefCell<HashMap<u32, TensorCell>>,
}

impl<'a> Leaves<'a> {
    /// `outputs` are the outputs of the code, of which the caller has no other. `inputs` are the variables of the inputs.
    pub(super) fn new(outputs: Vec<Tensor>, inputs: &'a [TensorCell]) -> Leaves<'a> {
        Leaves {
            outputs,
            inputs,
            variables: RefCell::default(),
        }
    }

    /// Returns output `number` of the code.
    pub(super) fn output(&self, number: u32) -> Option<&Tensor> {
        self.outputs.get(number as usize)
    }

    /// Returns the value that `spec` describes.
    pub(super) fn value(&self, spec: &ResultSpec) -> Value {
        spec.value_with(&|leaf| self.leaf(leaf).map(Value::Tensor).unwrap_or_default())
    }

    fn leaf(&self, spec: &ResultSpec) -> Option<TensorCell> {
        let input = |n: u32| self.inputs.get(n as usize);
        let tensor = match spec {
            ResultSpec::Tensor(i) => self.output(*i)?.clone(),
            ResultSpec::Input(n) => return input(*n).cloned(),
            ResultSpec::Strided(i, sizes, strides) => view(self.output(*i)?, sizes, strides, 0)?,
            ResultSpec::Part {
                output,
                variable,
                sizes,
                strides,
                offset,
            } => {
                if let Some(cell) = self.variables.borrow().get(variable) {
                    return Some(cell.clone());
                }
                let cell = TensorCell::new(view(self.output(*output)?, sizes, strides, *offset)?);
                self.variables.borrow_mut().insert(*variable, cell.clone());
                return Some(cell);
            }
            ResultSpec::View(n, sizes, strides, offset, marks) => {
                marked(view(&input(*n)?.get(), sizes, strides, *offset)?, *marks)
            }
            ResultSpec::Window(n, path, marks) => marked(window(&input(*n)?.get(), path)?, *marks),
            ResultSpec::Value(_)
            | ResultSpec::List(..)
            | ResultSpec::Tuple(..)
            | ResultSpec::Dict(..)
            | ResultSpec::Number(_) => return None,
        };
        Some(TensorCell::new(tensor))
    }
}

fn view(base: &Tensor, sizes: &[i64], strides: &[i64], offset: i64) -> Option<Tensor> {
    base.as_strided(sizes, strides, base.offset().checked_add(offset)?).ok()
}

fn window(base: &Tensor, path: &[PathStep]) -> Option<Tensor> {
    path.iter().try_fold(base.clone(), |base, step| step.of(&base))
}

fn marked(view: Tensor, marks: Marks) -> Tensor {
    let all = view.marks().with(marks);
    view.with_marks(all)
}
