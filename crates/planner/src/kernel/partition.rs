//! The size of tasks for a number of threads.

use crate::target::Machine;

/// Returns the number of units of work per task with which `threads` threads finish soonest: `most`, or fewer if that is clearly faster. `tasks` returns the
/// number of tasks for a number of units per task. Each task costs `own` units in addition to its work.
pub(super) fn task_size(most: i64, own: f64, threads: i64, machine: &Machine, tasks: impl Fn(i64) -> i64) -> i64 {
    let time = |size: i64| {
        let rounds = (tasks(size) + threads - 1) / threads;
        rounds as f64 * (size as f64 + own)
    };
    let sizes = (1..=most).rev().map(|size| (time(size), size));
    // Of equal times, the one with the larger size.
    let best = sizes.reduce(|best, next| if next.0 < best.0 { next } else { best });
    match best {
        Some((least, size)) if least < machine.partition.worthwhile_ratio * time(most) => size,
        _ => most,
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::{Conv, ConvShape, Epilogue, Gemm, Kernel};
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

    /// The kernel for `threads` threads.
    fn divided<K: Kernel + Clone>(kernel: &K, threads: i64) -> K {
        let divided = kernel.partitioned(threads, &SAPPHIRE_RAPIDS);
        divided.map_or_else(|| kernel.clone(), |k| k.get::<K>().expect("of the same family").clone())
    }

    fn rounds(tasks: i64, threads: i64) -> i64 {
        (tasks + threads - 1) / threads
    }

    #[test]
    fn few_groups_of_tiles_are_divided_by_channels() {
        let conv = convolution(256, 14, 3);
        let groups = conv.tasks();
        assert!(conv.winograd.is_some() && groups < 8);
        let conv = divided(&conv, 8);
        assert!(
            conv.channel_parts > 1 && conv.tasks() % 8 == 0,
            "{} tasks",
            conv.tasks()
        );
    }

    #[test]
    fn what_is_even_stays() {
        let own = Gemm::linear(128, 768, 3072, Epilogue::none(), &SAPPHIRE_RAPIDS);
        assert_eq!(divided(&own, own.tasks()), own);
    }

    #[test]
    fn many_rows_are_divided_where_there_are_few_columns() {
        let gemm = Gemm::linear(197, 384, 1536, Epilogue::none(), &SAPPHIRE_RAPIDS);
        let before = gemm.tasks();
        let gemm = divided(&gemm, 2);
        assert_eq!(gemm.tasks(), 2 * before, "{:?}", gemm.tile);
        assert!(gemm.tile.m_task % gemm.tile.rows == 0 && gemm.last_rows() > gemm.tile.m_task / 2);
    }

    #[test]
    fn no_thread_waits_long() {
        for threads in [2, 3, 4, 6, 8, 16] {
            let gemm = Gemm::linear(197, 384, 1536, Epilogue::none(), &SAPPHIRE_RAPIDS);
            let gemm = divided(&gemm, threads);
            let panels = 384 / gemm.tile_columns();
            let most = (rounds(panels, threads) + 1) * gemm.tile_columns() * 197;
            let tile = &gemm.tile;
            assert!(rounds(gemm.tasks(), threads) * tile.n_task * tile.m_task <= most);
            let mut conv = convolution(128, 28, 3);
            conv.winograd = None;
            let before = rounds(conv.tasks(), threads) * conv.tile.rows;
            let conv = divided(&conv, threads);
            assert!(rounds(conv.tasks(), threads) * conv.tile.rows <= before);
        }
    }
}
