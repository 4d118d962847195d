//! Kernels on images with sizes as arguments: one code serves images of many sizes, with the same bits as code for one.

use crate::common::{random, run_on, run_with, to_blocked};
use crate::sizes::{codes_for, options_for, targets};
use frazil_codegen::BackendOptions;
use frazil_ir::DType;
use frazil_planner::kernel::{
    ActivationLayout, BlockedShape, Conv, ConvShape, CopyChannels, Depthwise, Epilogue, EpilogueOperand, KernelCode,
    KernelSpec, Pool, PoolKind, Reorder, ReorderDirection, Winograd,
};
use frazil_planner::target::{Machine, Target};
use frazil_runtime::expr::{BinaryOp, Expr, UnaryOp};
use std::collections::HashSet;

/// Sides of images, in an order in which they grow and shrink.
const SIDES: [i64; 25] = [
    14, 28, 7, 1, 56, 13, 5, 30, 2, 17, 8, 3, 57, 16, 10, 29, 4, 9, 33, 6, 27, 11, 64, 12, 23,
];

/// Batch, height and width of the `n`-th images.
fn images(n: usize) -> (i64, [i64; 2]) {
    let side = |n: usize| SIDES[n % SIDES.len()];
    // Few rows, as they do not matter as much as columns do.
    (1 + n as i64 % 3, [side(n * 7 + 3).min(20), side(n)])
}

/// A kernel with its inputs.
struct Call {
    kernel: KernelSpec,
    inputs: Vec<Vec<f32>>,
    /// Elements of the result.
    output: i64,
}

/// Runs each first kernel with code of its own, and the second one, which computes the same, with the code that serves all second ones.
fn share_code(target: &Target, what: &str, pairs: &[[Call; 2]], most_codes: usize) {
    let kernels: Vec<KernelSpec> = pairs.iter().map(|[_, shared]| shared.kernel.clone()).collect();
    compare_code(target, what, pairs, &codes_for(&kernels), most_codes);
}

/// Runs each first kernel with code of its own, and the second one, which computes the same, with its code among `codes`, on one thread and on two.
fn compare_code(target: &Target, what: &str, pairs: &[[Call; 2]], codes: &[KernelCode], most_codes: usize) {
    let options = options_for(target);
    let distinct: HashSet<_> = codes.iter().map(KernelCode::identity).collect();
    assert!(distinct.len() <= most_codes, "{what}: {} codes", distinct.len());
    for ([own, shared], code) in pairs.iter().zip(codes) {
        let output = || vec![7.0; own.output as usize];
        let expected = run_on(&own.kernel, &own.inputs, output(), options.clone());
        for threads in [1, 2] {
            let options = BackendOptions {
                threads,
                ..options.clone()
            };
            let got = run_with(code, &shared.kernel, &shared.inputs, output(), options);
            let same = expected.iter().zip(&got).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{what}, {}, {threads} threads: {:?}", target.cpu, shared.kernel);
        }
    }
}

/// Runs each first kernel with code of its own, and the second one, which computes the same, with the code that has as many arguments as possible.
fn share_code_of_any_channels(target: &Target, what: &str, pairs: &[[Call; 2]], most_codes: usize) {
    let any = |[_, shared]: &[Call; 2]| KernelCode::with_all_arguments(shared.kernel.clone());
    let codes: Vec<KernelCode> = pairs.iter().map(any).collect();
    compare_code(target, what, pairs, &codes, most_codes);
}

/// Numbers of input and output channels: less than a block, whole blocks, and blocks with a rest.
const CHANNELS: [[i64; 2]; 16] = [
    [16, 32],
    [64, 64],
    [1, 8],
    [3, 17],
    [8, 1],
    [17, 24],
    [24, 3],
    [40, 48],
    [128, 16],
    [320, 64],
    [33, 128],
    [48, 40],
    [32, 64],
    [256, 128],
    [5, 128],
    [56, 16],
];

/// As [`share_code`], where code of its own is for the same kernel.
fn share_own_code(target: &Target, what: &str, calls: impl Iterator<Item = Call>, most_codes: usize) {
    let pair = |call: Call| {
        let Call { kernel, inputs, output } = &call;
        let own = Call {
            kernel: kernel.clone(),
            inputs: inputs.clone(),
            output: *output,
        };
        [own, call]
    };
    share_code(target, what, &calls.map(pair).collect::<Vec<_>>(), most_codes);
}

/// A convolution's window and channels.
#[derive(Clone, Copy)]
struct Window {
    channels: [i64; 2],
    groups: i64,
    kernel: [i64; 2],
    stride: i64,
    padding: i64,
    dilation: i64,
}

impl Window {
    /// A square window of all channels.
    const fn square(channels: [i64; 2], kernel: i64, stride: i64, padding: i64) -> Window {
        Window {
            channels,
            groups: 1,
            kernel: [kernel; 2],
            stride,
            padding,
            dilation: 1,
        }
    }

    /// The `n`-th images, if they have outputs.
    fn shape(&self, n: usize) -> Option<ConvShape> {
        let (batch, mut input) = images(n);
        let mut padding = [self.padding; 2];
        if self.kernel[0] == 1 && self.kernel[1] > 1 {
            (input[0], padding[0]) = (1, 0);
        }
        let output =
            |i: usize| (input[i] + 2 * padding[i] - self.dilation * (self.kernel[i] - 1) - 1) / self.stride + 1;
        let shape = ConvShape {
            batch,
            in_channels: self.channels[0],
            out_channels: self.channels[1],
            groups: self.groups,
            input,
            output: [output(0), output(1)],
            kernel: self.kernel,
            stride: [self.stride; 2],
            padding,
            dilation: [self.dilation; 2],
        };
        let fits = |i: usize| input[i] + 2 * padding[i] > self.dilation * (self.kernel[i] - 1);
        (fits(0) && fits(1)).then_some(shape)
    }
}

/// A bias, and a residual that is added before a function which takes many registers or few.
fn residual(is_costly: bool) -> Epilogue {
    let mut e = Expr::new();
    let (sum, residual) = (e.input(0, DType::Float), e.input(1, DType::Float));
    let sum = e.binary(BinaryOp::Add, sum, residual);
    let result = match is_costly {
        true => e.unary(UnaryOp::Tanh, sum),
        false => {
            let zero = e.float(0.0, DType::Float);
            e.binary(BinaryOp::Maximum, sum, zero)
        }
    };
    Epilogue::bias().then(&e.finish(result), &[EpilogueOperand::Elementwise])
}

/// Images in blocks, `batch_stride` apart, with NaN in what is not an element.
fn blocked_input(shape: &BlockedShape) -> Vec<f32> {
    let pixels = shape.height * shape.width;
    let image = |n: i64| {
        let plain = random(shape.channels * pixels, n as u64 + 1);
        let mut image = to_blocked(&plain, 1, shape.channels, pixels, shape.block);
        image.resize(shape.batch_stride as usize, f32::NAN);
        image
    };
    let mut all: Vec<f32> = (0..shape.batch).flat_map(image).collect();
    all.truncate(shape.elements() as usize);
    all
}

/// The operands of `epilogue` of a kernel with the result `output`.
fn operands(epilogue: &Epilogue, output: &BlockedShape) -> Vec<Vec<f32>> {
    let operand = |kind: &EpilogueOperand| match kind {
        EpilogueOperand::Channel => random(output.padded_channels(), 7),
        _ => blocked_input(output),
    };
    epilogue.operands.iter().map(operand).collect()
}

fn conv_call(conv: Conv, target: &Target) -> Call {
    let s = conv.shape;
    let input = match conv.input_shape() {
        Some(shape) => blocked_input(&shape),
        None => random(s.batch * s.in_channels * s.input[0] * s.input[1], 1),
    };
    let mut weights = conv.pack_weights(&random(conv.weight_elements(), 2));
    if let Some(transformation) = conv.transformation() {
        let transformed = vec![0.0; transformation.transformed_bytes() / 4];
        weights = run_on(&transformation.into(), &[weights], transformed, options_for(target));
    }
    let output = conv.output_shape();
    let mut inputs = vec![input, weights];
    inputs.extend(operands(&conv.epilogue, &output));
    Call {
        kernel: conv.into(),
        inputs,
        output: output.elements(),
    }
}

/// Images further apart than they are large, as the parts of a concatenation are.
fn with_gaps(mut conv: Conv, machine: &Machine) -> Conv {
    let gap = 3 * machine.vector.lanes;
    if let ActivationLayout::Blocked { batch_stride } = &mut conv.input {
        *batch_stride += gap;
    }
    conv.output_batch_stride += 2 * gap;
    conv
}

/// Runs `window` over images of many sizes with the code that they share, and with the tile and code that each has of its own.
fn conv_windows(what: &str, window: Window, plain: bool, epilogue: &Epilogue) {
    for target in targets() {
        let machine = target.machine;
        let pairs = (0..SIDES.len()).filter_map(|n| {
            let mut own = Conv::new(window.shape(n)?, plain, epilogue.clone(), machine);
            own.winograd = None;
            if n % 4 == 1 {
                own = with_gaps(own, machine);
            }
            let shared = own.clone().for_any_size(machine);
            Some([conv_call(own, &target), conv_call(shared, &target)])
        });
        share_code(&target, what, &pairs.collect::<Vec<_>>(), 11);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn convolutions_of_any_size() {
    let bias = Epilogue::bias();
    conv_windows("3x3", Window::square([40, 48], 3, 1, 1), false, &bias);
    conv_windows(
        "3x3, padding 0",
        Window::square([16, 32], 3, 1, 0),
        false,
        &residual(false),
    );
    conv_windows(
        "3x3, padding 3",
        Window::square([16, 32], 3, 1, 3),
        false,
        &residual(true),
    );
    conv_windows("5x5", Window::square([16, 16], 5, 1, 2), false, &bias);
    conv_windows("pointwise", Window::square([80, 64], 1, 1, 0), false, &residual(true));
    conv_windows(
        "pointwise, many channels",
        Window::square([600, 20], 1, 1, 0),
        false,
        &residual(false),
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn strided_convolutions_of_any_size() {
    let bias = Epilogue::bias();
    conv_windows("stem", Window::square([3, 32], 7, 2, 3), true, &bias);
    conv_windows("3x3", Window::square([64, 32], 3, 2, 1), false, &residual(false));
    conv_windows("pointwise", Window::square([32, 64], 1, 2, 0), false, &bias);
    conv_windows("5x5 by 3", Window::square([16, 16], 5, 3, 2), false, &bias);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn odd_convolutions_of_any_size() {
    let bias = Epilogue::bias();
    let row = Window {
        kernel: [1, 9],
        padding: 4,
        ..Window::square([24, 16], 1, 1, 0)
    };
    conv_windows("1-D", row, false, &bias);
    let dilated = Window {
        dilation: 2,
        ..Window::square([16, 16], 3, 1, 2)
    };
    conv_windows("dilated", dilated, false, &bias);
    for (channels, groups) in [([64, 64], 16), ([40, 40], 5), ([64, 128], 2)] {
        let grouped = Window {
            groups,
            ..Window::square(channels, 3, 1, 1)
        };
        conv_windows("groups", grouped, false, &bias);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn winograd_convolutions_of_any_size() {
    for target in targets() {
        let machine = target.machine;
        for (padding, epilogue) in [(0, Epilogue::bias()), (1, residual(false)), (2, residual(true))] {
            let window = Window::square([40, 48], 3, 1, padding);
            let pairs = (0..2 * SIDES.len()).filter_map(|n| {
                let conv = |columns: i64| {
                    let mut conv = Conv::new(window.shape(n)?, false, epilogue.clone(), machine);
                    conv.winograd = Some(Winograd {
                        outputs: 2,
                        columns,
                        vectors: 1,
                    });
                    conv.channel_parts = 1 + n as i64 % 3;
                    Some(with_gaps(conv, machine))
                };
                Some([conv_call(conv(5)?, &target), conv_call(conv(8)?, &target)])
            });
            share_code(&target, "winograd", &pairs.collect::<Vec<_>>(), 1);
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn depthwise_convolutions_of_any_size() {
    for target in targets() {
        let machine = target.machine;
        for (kernel, stride, padding, dilation) in
            [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 2, 1), (5, 2, 2, 1), (3, 1, 3, 3)]
        {
            let window = Window {
                groups: 24,
                dilation,
                ..Window::square([24, 24], kernel, stride, padding)
            };
            let pairs = (0..SIDES.len()).filter_map(|n| {
                let own = Depthwise::new(window.shape(n)?, residual(stride == 2), machine);
                let call = |kernel: Depthwise| {
                    let (input, output) = (kernel.input_shape(), kernel.output_shape());
                    let weights = kernel.pack_weights(&random(24 * 25, 2));
                    let mut inputs = vec![blocked_input(&input), weights];
                    inputs.extend(operands(&kernel.epilogue, &output));
                    Call {
                        kernel: kernel.into(),
                        inputs,
                        output: output.elements(),
                    }
                };
                Some([call(own.clone()), call(own.for_any_size(machine))])
            });
            share_code(&target, "depthwise", &pairs.collect::<Vec<_>>(), 8);
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn pools_of_any_size() {
    let average = |count_include_pad, divisor| PoolKind::Average {
        count_include_pad,
        divisor,
    };
    for target in targets() {
        let block = target.machine.vector.lanes;
        for (kind, kernel, stride, padding) in [
            (PoolKind::Max, 3, 2, 1),
            (PoolKind::Max, 2, 2, 0),
            (average(true, None), 3, 1, 1),
            (average(false, None), 3, 2, 1),
            (average(true, Some(1)), 5, 1, 2),
        ] {
            let window = Window::square([20, 20], kernel, stride, padding);
            let calls = (0..SIDES.len()).filter_map(|n| {
                let s = window.shape(n)?;
                let blocked = |[h, w]: [i64; 2]| BlockedShape::dense(s.batch, 20, h, w, block);
                Some(pool_call(
                    kind,
                    blocked(s.input),
                    blocked(s.output),
                    (kernel, stride, padding),
                ))
            });
            share_own_code(&target, "pool", calls, 1);
        }
        // Windows as large as the image.
        let calls = (0..SIDES.len()).map(|n| {
            let (batch, [h, w]) = images(n);
            let blocked = |[h, w]: [i64; 2]| BlockedShape::dense(batch, 20, h, w, block);
            let kind = if n % 2 == 0 {
                PoolKind::Max
            } else {
                average(true, Some(h * w))
            };
            let Call { kernel, inputs, output } = pool_call(kind, blocked([h, w]), blocked([1, 1]), (1, 1, 0));
            let mut pool = kernel.get::<Pool>().unwrap().clone();
            pool.kernel = [h, w];
            Call {
                kernel: pool.into(),
                inputs,
                output,
            }
        });
        share_own_code(&target, "global pool", calls, 2);
    }
}

fn pool_call(
    kind: PoolKind,
    input: BlockedShape,
    output: BlockedShape,
    (kernel, stride, padding): (i64, i64, i64),
) -> Call {
    let pool = Pool {
        kind,
        input,
        output,
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [padding; 2],
        dilation: [1; 2],
        epilogue: Epilogue::bias(),
    };
    let mut inputs = vec![blocked_input(&input)];
    inputs.extend(operands(&pool.epilogue, &output));
    Call {
        kernel: pool.into(),
        inputs,
        output: output.elements(),
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn changes_of_layout_of_any_size() {
    for target in targets() {
        let block = target.machine.vector.lanes;
        for channels in [3, 16, 37] {
            let calls = |direction: ReorderDirection| {
                (0..SIDES.len()).map(move |n| {
                    let (batch, [h, w]) = images(n);
                    let mut blocked = BlockedShape::dense(batch, channels, h, w, block);
                    blocked.batch_stride += n as i64 % 2 * 2 * block;
                    let plain = batch * channels * h * w;
                    let (input, output) = match direction {
                        ReorderDirection::ToBlocked => (random(plain, 1), blocked.elements()),
                        ReorderDirection::ToPlain => (blocked_input(&blocked), plain),
                    };
                    Call {
                        kernel: Reorder { direction, blocked }.into(),
                        inputs: vec![input],
                        output,
                    }
                })
            };
            share_own_code(&target, "to blocks", calls(ReorderDirection::ToBlocked), 1);
            share_own_code(&target, "to plain", calls(ReorderDirection::ToPlain), 1);
        }
        let copies = (0..SIDES.len()).map(|n| {
            let (batch, [h, w]) = images(n);
            let blocked = |channels: i64| BlockedShape::dense(batch, channels, h, w, block);
            let (input, output) = (blocked(20), blocked(50));
            let copy = CopyChannels {
                input,
                output,
                from: 3,
                to: 29,
                count: 15,
            };
            Call {
                kernel: copy.into(),
                inputs: vec![blocked_input(&input)],
                output: output.elements(),
            }
        });
        share_own_code(&target, "copied channels", copies, 1);
    }
}

/// Runs `window` over images of two sizes and many numbers of channels with the code that they share, and with the tile and code that each has of its own.
fn channels_of_windows(what: &str, window: Window, plain: bool, epilogue: &Epilogue, most_codes: usize) {
    for target in targets() {
        let machine = target.machine;
        let calls = CHANNELS.iter().flat_map(|channels| [(channels, 0), (channels, 8)]);
        let pairs = calls.filter_map(|(channels, n)| {
            let [inputs, outputs] = *channels;
            let window = Window {
                // Channels of a plain input are constants.
                channels: [if plain { 3 } else { inputs }, outputs],
                ..window
            };
            let mut own = Conv::new(window.shape(n)?, plain, epilogue.clone(), machine);
            own.winograd = None;
            let shared = own.clone().for_any_size(machine);
            Some([conv_call(own, &target), conv_call(shared, &target)])
        });
        share_code_of_any_channels(&target, what, &pairs.collect::<Vec<_>>(), most_codes);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn convolutions_of_any_channels() {
    /// Maximum number of codes for 32 kernels: the unrolling, the tile and whether sums are kept in memory are constants of the code.
    const MOST: usize = 24;
    let bias = Epilogue::bias();
    channels_of_windows("3x3", Window::square([1, 1], 3, 1, 1), false, &residual(false), MOST);
    channels_of_windows("3x3 by 2", Window::square([1, 1], 3, 2, 1), false, &bias, MOST);
    channels_of_windows(
        "pointwise",
        Window::square([1, 1], 1, 1, 0),
        false,
        &residual(true),
        MOST,
    );
    channels_of_windows("plain", Window::square([1, 1], 3, 2, 1), true, &bias, MOST);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn winograd_convolutions_of_any_channels() {
    for target in targets() {
        let machine = target.machine;
        let pairs = CHANNELS.iter().map(|channels| {
            let conv = |columns: i64| {
                let window = Window::square(*channels, 3, 1, 1);
                let mut conv = Conv::new(window.shape(0)?, false, residual(false), machine);
                conv.winograd = Some(Winograd {
                    outputs: 2,
                    columns,
                    vectors: 1,
                });
                Some(conv)
            };
            Some([conv_call(conv(5)?, &target), conv_call(conv(8)?, &target)])
        });
        let pairs: Vec<_> = pairs.flatten().collect();
        // One code for each number of channels in the last block.
        share_code_of_any_channels(&target, "winograd", &pairs, 5);
        // The transformation of the weights.
        let weights = pairs.iter().filter_map(|[_, shared]| {
            let transformation = shared.kernel.get::<Conv>()?.transformation()?;
            let call = || Call {
                kernel: transformation.into(),
                inputs: vec![random(transformation.plain_bytes() as i64 / 4, 3)],
                output: transformation.transformed_bytes() as i64 / 4,
            };
            Some([call(), call()])
        });
        share_code_of_any_channels(&target, "transformed weights", &weights.collect::<Vec<_>>(), 1);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn windows_and_layouts_of_any_channels() {
    for target in targets() {
        let (machine, block) = (target.machine, target.machine.vector.lanes);
        let same = |call: &dyn Fn() -> Call| [call(), call()];
        let depthwise = CHANNELS.iter().filter_map(|&[channels, _]| {
            let window = Window {
                groups: channels,
                ..Window::square([channels; 2], 3, 1, 1)
            };
            let own = Depthwise::new(window.shape(0)?, residual(false), machine).for_any_size(machine);
            let weights = own.pack_weights(&random(channels * 9, 2));
            Some(same(&|| {
                let mut inputs = vec![blocked_input(&own.input_shape()), weights.clone()];
                inputs.extend(operands(&own.epilogue, &own.output_shape()));
                Call {
                    kernel: own.clone().into(),
                    inputs,
                    output: own.output_shape().elements(),
                }
            }))
        });
        share_code_of_any_channels(&target, "depthwise", &depthwise.collect::<Vec<_>>(), 1);
        let pools = CHANNELS.iter().map(|&[channels, _]| {
            let blocked = |side: i64| BlockedShape::dense(1, channels, side, side, block);
            same(&|| pool_call(PoolKind::Max, blocked(13), blocked(7), (3, 2, 1)))
        });
        share_code_of_any_channels(&target, "pool", &pools.collect::<Vec<_>>(), 1);
        for direction in [ReorderDirection::ToBlocked, ReorderDirection::ToPlain] {
            let reorders = CHANNELS.iter().map(|&[channels, _]| {
                let blocked = BlockedShape::dense(2, channels, 5, 7, block);
                let plain = 2 * channels * 5 * 7;
                same(&|| match direction {
                    ReorderDirection::ToBlocked => Call {
                        kernel: Reorder { direction, blocked }.into(),
                        inputs: vec![random(plain, 1)],
                        output: blocked.elements(),
                    },
                    ReorderDirection::ToPlain => Call {
                        kernel: Reorder { direction, blocked }.into(),
                        inputs: vec![blocked_input(&blocked)],
                        output: plain,
                    },
                })
            });
            // One code for each number of channels in the last block.
            share_code_of_any_channels(&target, "reorder", &reorders.collect::<Vec<_>>(), 5);
        }
    }
}
