//! Conjugate and negative bits of tensors. The elements of a tensor with such a bit are the conjugates or negatives of the elements in its storage.

use frazil_ir::DType;

use crate::tensor::lanes::{Lanes, wrap_integers};

/// The conjugate and negative bits of a tensor. PyTorch's `conj` of a complex tensor, and `imag` of a conjugated tensor, are views with such a bit. A write
/// through the view changes the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Marks {
    /// The elements are conjugates (`is_conj`).
    pub conjugate: bool,
    /// The elements are negatives (`is_neg`).
    pub negative: bool,
}

impl Marks {
    /// Returns true if neither bit is set.
    pub fn is_none(self) -> bool {
        self == Marks::default()
    }

    /// Returns the bits of the conjugate of a tensor with these bits.
    #[must_use]
    pub fn conjugated(self) -> Marks {
        Marks {
            conjugate: !self.conjugate,
            ..self
        }
    }

    /// Returns the bits of the negative of a tensor with these bits.
    #[must_use]
    pub fn negated(self) -> Marks {
        Marks {
            negative: !self.negative,
            ..self
        }
    }

    /// Returns the bits of a tensor with bits `other` whose storage has the bits `self`.
    #[must_use]
    pub fn with(self, other: Marks) -> Marks {
        Marks {
            conjugate: self.conjugate != other.conjugate,
            negative: self.negative != other.negative,
        }
    }

    /// Converts the stored values of dtype `dtype` to elements, or elements to stored values, which is the same
    /// operation.
    pub(crate) fn apply(self, lanes: &mut Lanes, dtype: DType) {
        if self.is_none() {
            return;
        }
        match lanes {
            Lanes::F32(v) if self.negative => v.iter_mut().for_each(|x| *x = -*x),
            Lanes::F64(v) if self.negative => v.iter_mut().for_each(|x| *x = -*x),
            Lanes::I64(v) if self.negative => {
                v.iter_mut().for_each(|x| *x = x.wrapping_neg());
                // What is negative of an unsigned number is a large one.
                wrap_integers(v, dtype);
            }
            Lanes::Complex(v) => {
                for z in v {
                    if self.conjugate {
                        z.im = -z.im;
                    }
                    if self.negative {
                        *z = -*z;
                    }
                }
            }
            Lanes::F32(_) | Lanes::F64(_) | Lanes::I64(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tensor::Tensor;
    use crate::tensor::element::ComplexFloatElement;
    use frazil_ir::DType;
    use num_complex::Complex32;

    /// Returns [1 + 2i, 3 - 4i].
    fn pair() -> Tensor {
        let elements = [Complex32::new(1.0, 2.0), Complex32::new(3.0, -4.0)];
        Tensor::from_elements::<ComplexFloatElement>(&elements, &[2]).expect("fits")
    }

    #[test]
    fn a_write_through_a_conjugate_reaches_what_it_is_a_view_of() {
        let t = pair();
        let conjugate = t.with_marks(t.marks().conjugated());
        assert_eq!(
            conjugate.to_vec::<Complex32>(),
            [Complex32::new(1.0, -2.0), Complex32::new(3.0, 4.0)]
        );
        let first = conjugate.as_strided(&[1], &[1], 0).expect("fits");
        let value = Tensor::from_elements::<ComplexFloatElement>(&[Complex32::new(5.0, 6.0)], &[1]).expect("fits");
        first.copy_(&value).expect("copies");
        assert_eq!(
            t.to_vec::<Complex32>(),
            [Complex32::new(5.0, -6.0), Complex32::new(3.0, -4.0)]
        );
        let twice = conjugate.with_marks(conjugate.marks().conjugated());
        assert!(twice.marks().is_none() && twice.shares_storage(&t));
    }

    #[test]
    fn the_negative_of_the_imaginary_parts_is_read_and_written() {
        let t = pair();
        let imaginary = t.reinterpret(DType::Float, &[2], &[2], 1).expect("fits");
        let negative = imaginary.with_marks(imaginary.marks().negated());
        assert_eq!(negative.to_f64_vec(), [-2.0, 4.0]);
        assert_eq!(negative.item().ok(), None);
        negative
            .copy_(&Tensor::from_f32(&[7.0, 8.0], &[2]).expect("fits"))
            .expect("copies");
        assert_eq!(
            t.to_vec::<Complex32>(),
            [Complex32::new(1.0, -7.0), Complex32::new(3.0, -8.0)]
        );
        let resolved = negative.resolved().expect("copies");
        assert!(resolved.marks().is_none() && !resolved.shares_storage(&t));
        assert_eq!(resolved.to_f64_vec(), [7.0, 8.0]);
    }

    #[test]
    fn the_negative_of_a_byte_is_a_byte_before_it_is_anything_else() {
        // torch._neg_view(torch.tensor([5], dtype=torch.uint8)).to(torch.float32)
        let t = Tensor::full(DType::Byte, &[1], crate::scalar::Scalar::Int(5)).expect("fits");
        let negative = t.with_marks(t.marks().negated());
        assert_eq!(
            negative.to_dtype(DType::Float).expect("converts").to_vec::<f32>(),
            [251.0]
        );
        assert_eq!(negative.item(), Ok(crate::scalar::Scalar::Int(251)));
    }
}
