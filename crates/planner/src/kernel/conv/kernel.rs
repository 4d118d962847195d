//! The implementation of [`Kernel`] for convolutions.

use super::{ActivationLayout, Conv, ConvTile};
use crate::kernel::code::{image_constant, text};
use crate::kernel::cost::images;
use crate::kernel::describe::{by, windows};
use crate::kernel::partition::task_size;
use crate::kernel::{Epilogue, Kernel, KernelSpec, Numbers, Trial, Variants};
use crate::target::Machine;
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

impl Kernel for Conv {
    fn family(&self) -> &'static str {
        "conv"
    }

    fn lanes(&self) -> i64 {
        self.block
    }

    fn phases(&self) -> SmallVec<[i64; 2]> {
        smallvec![self.tasks()]
    }

    fn operand_count(&self) -> usize {
        3 + self.epilogue.operands.len()
    }

    fn epilogue(&self) -> Option<&Epilogue> {
        Some(&self.epilogue)
    }

    fn may_alias_output(&self, operand: usize) -> bool {
        self.epilogue.is_elementwise(operand, 2)
    }

    fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::new();
        self.map(&mut |n| numbers.push(*n));
        numbers
    }

    fn can_be_argument(&self, _number: i64) -> bool {
        true
    }

    fn code_text(&self, is_argument: &[bool]) -> String {
        let mut is_argument = is_argument.iter();
        let constants = self.map(&mut |n| image_constant(*n, is_argument.next()));
        let mut constants = constants.with_channels(self.constant_channels());
        if constants.winograd.is_some() {
            // Winograd's algorithm does not use the tile of the direct algorithm, which depends on the sizes.
            constants.tile = ConvTile {
                columns: 0,
                vectors: 0,
                channel_blocks: None,
                rows: None,
            };
            return text(format_args!("{constants:?} {}", self.shape.in_channels % self.block));
        }
        // The row tiling contains the columns of a tile.
        constants.tile.columns = 0;
        let is_joined = self.has_joined_rows();
        let step = match constants.shape.in_channels {
            Some(_) => self.channel_step(),
            None => self.channel_step_of_arguments(),
        };
        text(format_args!("{constants:?} {:?} {is_joined} {step}", self.row_tiling()))
    }

    fn flops(&self) -> i64 {
        2 * self.shape.macs()
    }

    fn bytes(&self) -> i64 {
        images(&self.shape, self.weight_elements(), &self.epilogue)
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "  conv ")?;
        windows(out, &self.shape)?;
        let from = match self.input {
            ActivationLayout::Plain => "plain".to_owned(),
            ActivationLayout::Blocked { .. } => format!("blocks of {}", self.block),
        };
        write!(out, ", {from} -> blocks of {}", self.block)?;
        if !self.output.is_dense() {
            let [[rows, columns], [height, width]] = [self.output.step, self.output.image];
            write!(out, ", every {rows}x{columns} of {height}x{width}")?;
        }
        match &self.winograd {
            Some(w) => {
                write!(out, ", winograd F({}, 3x3)", by([w.outputs; 2]))?;
                match self.channel_parts {
                    1 => writeln!(out),
                    parts => writeln!(out, ", channels in {parts} parts"),
                }
            }
            None => writeln!(out, ", tile {}x{}", self.tile.columns, self.tile.vectors * self.block),
        }
    }

    fn partitioned(&self, threads: i64, machine: &Machine) -> Option<KernelSpec> {
        let conv = match self.winograd {
            Some(form) => {
                // Each part of the output channels transforms the input again.
                let all = self.winograd_channel_tiles();
                let with = |tiles: i64| Conv {
                    channel_parts: (all + tiles - 1) / tiles,
                    ..self.clone()
                };
                let input = form.input_share(&self.shape, machine);
                with(task_size(all, input, threads, machine, |n| with(n).tasks()))
            }
            None => {
                let with = |rows: i64| {
                    let mut other = self.clone();
                    other.tile.rows = rows;
                    other
                };
                let own = machine.partition.conv_task_rows;
                with(task_size(self.tile.rows, own, threads, machine, |n| with(n).tasks()))
            }
        };
        (conv != *self).then(|| conv.into())
    }

    fn variants(&self) -> Option<&dyn Variants> {
        Some(self)
    }
}

impl Variants for Conv {
    fn baseline(&self, machine: &Machine) -> KernelSpec {
        let plain = self.input_shape().is_none();
        let own = Conv::with_output(self.shape, self.output, plain, Epilogue::none(), machine);
        let conv = Conv {
            input: self.input,
            output_batch_stride: self.output_batch_stride,
            ..own
        };
        conv.into()
    }

    fn alternatives(&self, machine: &Machine) -> Vec<KernelSpec> {
        Conv::alternatives(self, machine)
            .into_iter()
            .map(KernelSpec::from)
            .collect()
    }

    fn variant(&self) -> String {
        match &self.winograd {
            Some(w) => format!("winograd {}x{}", w.columns, w.vectors * self.block),
            None => format!(
                "direct {}x{}, {} blocks, {} rows",
                self.tile.columns,
                self.tile.vectors * self.block,
                self.tile.channel_blocks,
                self.tile.rows
            ),
        }
    }

    fn trial(&self) -> Option<Trial> {
        let s = &self.shape;
        let plain = s.batch * s.in_channels * s.input[0] * s.input[1];
        let packed = self.pack_weights(&vec![0.01; self.weight_elements() as usize]);
        Some(Trial {
            inputs: vec![self.input_shape().map_or(plain, |s| s.elements())],
            weights: Some((packed, self.transformation())),
            output: self.output_shape().elements(),
        })
    }
}
