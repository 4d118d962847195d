//! Kernels divided among the threads of a run. Blockings are chosen for one thread or a few, with no more tasks than memory likes; where that
//! leaves many threads without work, tasks become smaller.
//!
//! Only how much a task does changes, not in which order the terms of a sum are added: results are the same for any number of threads.

use crate::kernel::{Conv, Gemm, KernelSpec};
use crate::schedule::Schedule;
use crate::target::Machine;

/// Divides the products and convolutions of `schedule` for `threads` threads.
pub(crate) fn spread(schedule: &mut Schedule, threads: usize, machine: &Machine) {
    let threads = i64::try_from(threads).unwrap_or(i64::MAX);
    if threads < 2 {
        return;
    }
    for step in &mut schedule.steps {
        match &mut step.spec {
            KernelSpec::Gemm(gemm) => product(gemm, threads, machine),
            KernelSpec::Conv(conv) if conv.winograd.is_some() => winograd(conv, threads, machine),
            KernelSpec::Conv(conv) => direct(conv, threads, machine),
            _ => {}
        }
    }
}

fn product(gemm: &mut Gemm, threads: i64, machine: &Machine) {
    let parameters = &machine.partition;
    let panel = gemm.tile_columns();
    let with = |panels: i64| {
        let mut other = gemm.clone();
        other.tile.n_task = panels * panel;
        other
    };
    let own = parameters.gemm_task_panels;
    let panels = size(gemm.tile.n_task / panel, own, threads, machine, |n| with(n).tasks());
    *gemm = with(panels);
    let tasks = gemm.tasks().max(1);
    // Tasks of the same columns follow each other, so that a thread that has some of them brings their part of B only once.
    let tile = &mut gemm.tile;
    let wanted = parameters.gemm_tasks_per_thread.saturating_mul(threads) / tasks;
    let parts = wanted.min(tile.m_task / parameters.gemm_task_rows.max(1)).max(1);
    let tiles = tile.m_task / tile.rows;
    tile.m_task = tile.rows * ((tiles + parts - 1) / parts);
}

fn direct(conv: &mut Conv, threads: i64, machine: &Machine) {
    let with = |rows: i64| {
        let mut other = conv.clone();
        other.tile.rows = rows;
        other
    };
    let own = machine.partition.conv_task_rows;
    let rows = size(conv.tile.rows, own, threads, machine, |n| with(n).tasks());
    *conv = with(rows);
}

/// Each part of the output channels transforms the input for itself.
fn winograd(conv: &mut Conv, threads: i64, machine: &Machine) {
    let Some(form) = conv.winograd else { return };
    let all = conv.winograd_channel_tiles();
    let with = |tiles: i64| Conv {
        channel_parts: (all + tiles - 1) / tiles,
        ..conv.clone()
    };
    let input = form.input_share(&conv.shape, machine);
    let tiles = size(all, input, threads, machine, |n| with(n).tasks());
    *conv = with(tiles);
}

/// How many units of work a task does for `threads` threads to be done the soonest: `most`, or fewer where that is clearly better. `tasks` says
/// how many tasks there are of a size, each of which costs `own` units besides.
fn size(most: i64, own: f64, threads: i64, machine: &Machine, tasks: impl Fn(i64) -> i64) -> i64 {
    let time = |size: i64| {
        let rounds = (tasks(size) + threads - 1) / threads;
        rounds as f64 * (size as f64 + own)
    };
    let sizes = (1..=most).rev().map(|size| (time(size), size));
    // The larger one of equals.
    let best = sizes.reduce(|best, next| if next.0 < best.0 { next } else { best });
    match best {
        Some((least, size)) if least < machine.partition.worthwhile_ratio * time(most) => size,
        _ => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{ConvShape, Epilogue};
    use crate::target::SAPPHIRE_RAPIDS;

    fn convolution(channels: i64, size: i64, kernel: i64) -> Conv {
        let shape = ConvShape {
            batch: 1,
            in_channels: channels,
            out_channels: channels,
            groups: 1,
            input: [size; 2],
            output: [size; 2],
            kernel: [kernel; 2],
            stride: [1; 2],
            padding: [kernel / 2; 2],
            dilation: [1; 2],
        };
        Conv::new(shape, false, Epilogue::none(), &SAPPHIRE_RAPIDS)
    }

    fn rounds(tasks: i64, threads: i64) -> i64 {
        (tasks + threads - 1) / threads
    }

    #[test]
    fn few_groups_of_tiles_are_divided_by_channels() {
        let mut conv = convolution(256, 14, 3);
        let groups = conv.tasks();
        assert!(conv.winograd.is_some() && groups < 8);
        winograd(&mut conv, 8, &SAPPHIRE_RAPIDS);
        assert!(
            conv.channel_parts > 1 && conv.tasks() % 8 == 0,
            "{} tasks",
            conv.tasks()
        );
    }

    #[test]
    fn what_is_even_stays() {
        let linear = || Gemm::linear(128, 768, 3072, Epilogue::none(), &SAPPHIRE_RAPIDS);
        let (mut gemm, own) = (linear(), linear());
        product(&mut gemm, own.tasks(), &SAPPHIRE_RAPIDS);
        assert_eq!(gemm, own);
    }

    #[test]
    fn many_rows_are_divided_where_there_are_few_columns() {
        let mut gemm = Gemm::linear(197, 384, 1536, Epilogue::none(), &SAPPHIRE_RAPIDS);
        let before = gemm.tasks();
        product(&mut gemm, 2, &SAPPHIRE_RAPIDS);
        assert_eq!(gemm.tasks(), 2 * before, "{:?}", gemm.tile);
        assert!(gemm.tile.m_task % gemm.tile.rows == 0 && gemm.last_rows() > gemm.tile.m_task / 2);
    }

    #[test]
    fn no_thread_waits_long() {
        for threads in [2, 3, 4, 6, 8, 16] {
            let mut gemm = Gemm::linear(197, 384, 1536, Epilogue::none(), &SAPPHIRE_RAPIDS);
            product(&mut gemm, threads, &SAPPHIRE_RAPIDS);
            let panels = 384 / gemm.tile_columns();
            let most = (rounds(panels, threads) + 1) * gemm.tile_columns() * 197;
            let tile = &gemm.tile;
            assert!(rounds(gemm.tasks(), threads) * tile.n_task * tile.m_task <= most);
            let mut conv = convolution(128, 28, 3);
            conv.winograd = None;
            let before = rounds(conv.tasks(), threads) * conv.tile.rows;
            direct(&mut conv, threads, &SAPPHIRE_RAPIDS);
            assert!(rounds(conv.tasks(), threads) * conv.tile.rows <= before);
        }
    }
}
