//! Copies of a call's small operands in registers.

use crate::tensor::Tensor;
use crate::tensor::element::{Element, with_element};
use crate::tensor::lanes::{Lane, Lanes};
use smallvec::SmallVec;

/// Maximum number of elements of a staged operand, and of a register that is kept between runs. There is one set of registers for each operator of a graph.
pub(super) const SMALL: usize = 128;

/// Staged operands by their numbers in the call. Registers are reused by later calls.
#[derive(Default)]
pub(crate) struct Staging(SmallVec<[Staged; 3]>);

/// The elements of an operand in row-major order.
pub(super) struct Staged {
    pub(super) lanes: Lanes,
    /// True if there is just one element.
    pub(super) one: bool,
}

impl Staging {
    /// Reads tensor number `at` of a call; the tensors before it must have been read. Returns false if it is not dense, has conjugate or negative bits, or is
    /// large.
    pub(crate) fn stage(&mut self, at: usize, t: &Tensor) -> bool {
        let numel = t.numel() as usize;
        if numel > SMALL || !t.is_contiguous() || !t.marks().is_none() {
            return false;
        }
        if self.0.len() == at {
            self.0.push(Staged {
                lanes: Lanes::new(t.dtype()),
                one: false,
            });
        }
        let Some(staged) = self.0.get_mut(at) else {
            return false;
        };
        staged.one = numel == 1;
        let first = t.offset() as usize;
        t.storage().read(|bytes| {
            with_element!(t.dtype(), T => {
                let Ok(data) = bytemuck::try_cast_slice::<u8, <T as Element>::Raw>(bytes) else {
                    // A mapped archive need not be aligned.
                    return false;
                };
                let lanes = <T as Element>::Lane::of_mut(&mut staged.lanes);
                lanes.clear();
                // In range by construction: a tensor lies inside of its storage.
                let elements = data.get(first..first + numel).unwrap_or_default();
                lanes.extend(elements.iter().map(|&x| T::load(x)));
                lanes.len() == numel
            })
        })
    }

    pub(super) fn get(&self, at: usize) -> Option<&Staged> {
        self.0.get(at)
    }
}
