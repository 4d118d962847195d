//! The implementation of [`Kernel`] for matmuls.

use super::{Gemm, GemmB, GemmBatch, GemmTile};
use crate::kernel::code::{constant, text};
use crate::kernel::cost::operands;
use crate::kernel::partition::task_size;
use crate::kernel::{Epilogue, Kernel, KernelSpec, Numbers, Trial, Variants};
use crate::target::Machine;
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

impl Kernel for Gemm {
    fn family(&self) -> &'static str {
        "gemm"
    }

    fn lanes(&self) -> i64 {
        self.lanes
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

    fn streamed_weights(&self) -> Option<usize> {
        self.streams_weights().then_some(1)
    }

    fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::new();
        self.map(&mut |n| numbers.push(*n));
        numbers
    }

    fn code_text(&self, is_argument: &[bool]) -> String {
        let mut is_argument = is_argument.iter();
        let constants = self.map(&mut |n| constant(*n, is_argument.next()));
        text(format_args!("{constants:?}"))
    }

    fn flops(&self) -> i64 {
        2 * self.batch_count() * self.m * self.n * self.k
    }

    fn bytes(&self) -> i64 {
        let batch = |moves: &dyn Fn(&GemmBatch) -> i64| {
            let loops = self.batch.iter().filter(|b| moves(b) != 0);
            loops.map(|b| b.extent).product::<i64>()
        };
        let (a, b, c) = (batch(&|b| b.a), batch(&|b| b.b), batch(&|b| b.c));
        let results = c * self.m * self.n;
        4 * (a * self.m * self.k + b * self.k * self.n + results) + operands(&self.epilogue, results, self.n)
    }

    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "  gemm {}x{}x{}", self.m, self.n, self.k)?;
        for b in &self.batch {
            write!(out, ", batch {}", b.extent)?;
        }
        match self.b {
            GemmB::Packed => write!(out, ", B packed")?,
            GemmB::Strided { k_stride, n_stride } => write!(out, ", B strides {k_stride}, {n_stride}")?,
        }
        writeln!(out, ", tile {}x{}", self.tile.rows, self.tile_columns())
    }

    fn partitioned(&self, threads: i64, machine: &Machine) -> Option<KernelSpec> {
        let parameters = &machine.partition;
        let panel = self.tile_columns();
        let with = |panels: i64| {
            let mut other = self.clone();
            other.tile.n_task = panels * panel;
            other
        };
        let own = parameters.gemm_task_panels;
        let panels = task_size(self.tile.n_task / panel, own, threads, machine, |n| with(n).tasks());
        let mut gemm = with(panels);
        let tasks = gemm.tasks().max(1);
        // Tasks with the same columns are adjacent, so that a thread with several of them loads their part of B only once.
        let tile = &mut gemm.tile;
        let wanted = parameters.gemm_tasks_per_thread.saturating_mul(threads) / tasks;
        let parts = wanted.min(tile.m_task / parameters.gemm_task_rows.max(1)).max(1);
        let tiles = tile.m_task / tile.rows;
        tile.m_task = tile.rows * ((tiles + parts - 1) / parts);
        (gemm.tile != self.tile).then(|| gemm.into())
    }

    fn variants(&self) -> Option<&dyn Variants> {
        Some(self)
    }
}

impl Variants for Gemm {
    fn baseline(&self, machine: &Machine) -> KernelSpec {
        let gemm = Gemm {
            tile: GemmTile::choose(self.batch_count(), [self.m, self.n, self.k], machine),
            epilogue: Epilogue::none(),
            ..self.clone()
        };
        gemm.into()
    }

    fn alternatives(&self, machine: &Machine) -> Vec<KernelSpec> {
        Gemm::alternatives(self, machine)
            .into_iter()
            .map(KernelSpec::from)
            .collect()
    }

    fn variant(&self) -> String {
        let tile = &self.tile;
        format!(
            "{}x{}, k {}, task {}x{}",
            tile.rows,
            tile.vectors * self.lanes,
            tile.k_block,
            tile.m_task,
            tile.n_task
        )
    }

    fn trial(&self) -> Option<Trial> {
        let reach = |steps: &[(i64, i64)]| 1 + steps.iter().map(|(n, step)| (n - 1).max(0) * step).sum::<i64>();
        let strides = self.batch.iter().flat_map(|b| [b.a, b.b, b.c]);
        let of_b = match self.b {
            GemmB::Packed => [0, 0],
            GemmB::Strided { k_stride, n_stride } => [k_stride, n_stride],
        };
        // An operand with a negative stride begins inside its buffer, which a trial cannot express.
        let all = strides.chain([self.a_row_stride, self.a_col_stride]).chain(of_b);
        if all.into_iter().any(|s| s < 0) {
            return None;
        }
        let batch = |of: &dyn Fn(&GemmBatch) -> i64| {
            self.batch
                .iter()
                .map(|b| (b.extent, of(b)))
                .collect::<Vec<(i64, i64)>>()
        };
        let a = [
            batch(&|b| b.a),
            vec![(self.m, self.a_row_stride), (self.k, self.a_col_stride)],
        ]
        .concat();
        let c = [batch(&|b| b.c), vec![(self.m, self.c_row_stride), (self.n, 1)]].concat();
        let mut inputs = vec![reach(&a)];
        let weights = match self.b {
            GemmB::Packed => Some((vec![0.01; self.packed_elements()], None)),
            GemmB::Strided { k_stride, n_stride } => {
                let b = [batch(&|b| b.b), vec![(self.k, k_stride), (self.n, n_stride)]].concat();
                inputs.push(reach(&b));
                None
            }
        };
        Some(Trial {
            inputs,
            weights,
            output: reach(&c),
        })
    }
}
