//! Memory traffic of kernels' operands, for several families.

use super::{ConvShape, Epilogue, EpilogueOperand};

/// Returns the size of a convolution's input, of `weights` weights, of its result and of the operands of its epilogue, in bytes.
pub(super) fn images(s: &ConvShape, weights: i64, epilogue: &Epilogue) -> i64 {
    let input = s.batch * s.in_channels * s.input[0] * s.input[1];
    let results = s.batch * s.out_channels * s.output[0] * s.output[1];
    4 * (input + weights + results) + operands(epilogue, results, s.out_channels)
}

/// Returns the size of the epilogue's operands in bytes, for a result of `results` elements and `channels` channels.
pub(super) fn operands(epilogue: &Epilogue, results: i64, channels: i64) -> i64 {
    let elements = epilogue.operands.iter().map(|o| match o {
        EpilogueOperand::Elementwise => results,
        EpilogueOperand::Channel | EpilogueOperand::Row => channels,
        EpilogueOperand::Scalar => 1,
    });
    4 * elements.sum::<i64>()
}
