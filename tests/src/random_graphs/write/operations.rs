//! Statements of single operators.

use super::{Bounds, LARGEST, UNITS, Variable, Writer, unit};
use frazil::ir::DType;
use frazil::runtime::layout::broadcast;

impl Writer {
    pub(super) fn unary(&mut self) {
        let x = self.tensor();
        let Bounds { magnitude: m, error: e } = self.bounds(&x);
        let name = &x.name;
        if !x.dtype.is_floating_point() {
            if x.dtype != DType::Bool {
                let op = *self.random.pick(&["neg", "abs", "relu", "bitwise_not"]);
                self.exact(
                    &format!("torch.{op}({name})"),
                    x.dtype,
                    x.sizes,
                    Bounds {
                        magnitude: m + 1.0,
                        error: e,
                    },
                );
            }
            return;
        }
        let of = |magnitude, error| Bounds { magnitude, error };
        let (text, bounds) = match self.below(11) {
            0 => ("torch.tanh(?)", of(1.0, e)),
            1 => ("torch.sigmoid(?)", of(1.0, e)),
            2 => ("torch.sin(?)", of(1.0, e)),
            3 => ("torch.erf(?)", of(1.0, 2.0 * e)),
            4 => ("torch.exp(torch.clamp(?, -3, 3))", of(21.0, 21.0 * e)),
            5 => ("torch.log1p(torch.abs(?))", of(m, e)),
            6 => ("torch.sqrt(torch.abs(?) + 0.25)", of(m + 1.0, e)),
            7 => ("torch.nn.functional.gelu(?)", of(m, 2.0 * e)),
            8 => return self.exact(&format!("torch.neg({name})"), x.dtype, x.sizes, of(m, e)),
            9 => return self.exact(&format!("torch.abs({name})"), x.dtype, x.sizes, of(m, e)),
            _ => return self.exact(&format!("torch.relu({name})"), x.dtype, x.sizes, of(m, e)),
        };
        self.define(&text.replace('?', name), x.dtype, x.sizes, bounds);
    }

    /// Returns two tensors that broadcast, with the dtype and sizes of their result.
    pub(super) fn pair(&mut self) -> Option<(Variable, Variable, DType, Vec<i64>)> {
        let x = self.tensor();
        let y = self.tensor_that(|_, y| {
            let alike = y.sizes.is_empty() == x.sizes.is_empty() || y.dtype == x.dtype;
            alike && broadcast(&x.sizes, &y.sizes).is_some()
        })?;
        let dtype = frazil::runtime::promote::promote_types(x.dtype, y.dtype);
        let sizes = broadcast(&x.sizes, &y.sizes)?.to_vec();
        Some((x, y, dtype, sizes))
    }

    pub(super) fn binary(&mut self) {
        let Some((x, y, dtype, sizes)) = self.pair() else {
            return;
        };
        let (a, b) = (self.bounds(&x), self.bounds(&y));
        let sum = Bounds {
            magnitude: a.magnitude + b.magnitude,
            error: a.error + b.error,
        };
        let product = Bounds {
            magnitude: a.magnitude * b.magnitude,
            error: a.magnitude * b.error + b.magnitude * a.error,
        };
        let (x, y) = (&x.name, &y.name);
        let most = Bounds {
            magnitude: a.magnitude.max(b.magnitude),
            error: a.error.max(b.error),
        };
        let choice = self.below(6);
        if !dtype.is_floating_point() {
            let (text, bounds) = match choice {
                0 => (format!("{x} + {y}"), sum),
                1 => (format!("{x} * {y}"), product),
                2 => (format!("torch.maximum({x}, {y})"), most),
                3 if dtype != DType::Bool => (format!("{x} - {y}"), sum),
                _ => (
                    format!("torch.bitwise_xor({x}, {y})"),
                    Bounds {
                        magnitude: 2.0 * sum.magnitude,
                        ..sum
                    },
                ),
            };
            return self.exact(&text, dtype, sizes, bounds);
        }
        // An operand of fewer bits is converted first.
        match choice {
            0 => self.define(&format!("{x} + {y}"), dtype, sizes, sum),
            1 => self.define(&format!("{x} - {y}"), dtype, sizes, sum),
            2 => self.define(&format!("{x} * {y}"), dtype, sizes, product),
            3 => {
                let error = a.error + a.magnitude * b.error;
                let bounds = Bounds { error, ..a };
                self.define(&format!("{x} / (torch.abs({y}) + 1)"), dtype, sizes, bounds);
            }
            4 => self.exact(&format!("torch.maximum({x}, {y})"), dtype, sizes, most),
            _ => self.exact(&format!("torch.minimum({x}, {y})"), dtype, sizes, most),
        }
    }

    /// Combines a tensor with a number that is only known at run time.
    pub(super) fn with_number(&mut self) {
        let x = self.tensor();
        let Bounds { magnitude, error } = self.bounds(&x);
        let name = &x.name;
        if !x.dtype.is_floating_point() {
            return;
        }
        let (text, bounds) = match self.below(4) {
            0 => (format!("{name} * s"), Bounds { magnitude, error }),
            1 => (
                format!("{name} + s"),
                Bounds {
                    magnitude: magnitude + 1.0,
                    error,
                },
            ),
            2 => (
                format!("{name} * 0.3 - n"),
                Bounds {
                    magnitude: magnitude + 3.0,
                    error,
                },
            ),
            _ => (format!("{name} / n"), Bounds { magnitude, error }),
        };
        self.define(&text, x.dtype, x.sizes, bounds);
    }

    pub(super) fn of_integers(&mut self) {
        let Some(x) = self.tensor_that(|_, x| !x.dtype.is_floating_point() && x.dtype != DType::Bool) else {
            return;
        };
        let (b, name) = (self.bounds(&x), &x.name);
        let text = match self.below(6) {
            0 => format!("torch.remainder({name}, 5)"),
            1 => format!("torch.div({name}, 3, rounding_mode='floor')"),
            2 => format!("torch.div({name}, 2, rounding_mode='trunc')"),
            3 => format!("{name} & 6"),
            4 => format!("torch.fmod({name}, 4)"),
            _ => format!("{name} + n"),
        };
        self.exact(
            &text,
            x.dtype,
            x.sizes,
            Bounds {
                magnitude: b.magnitude + 6.0,
                ..b
            },
        );
    }

    pub(super) fn comparison(&mut self) {
        let Some(x) = self.tensor_that(|w, x| w.bounds(x).error == 0.0) else {
            return;
        };
        let op = *self.random.pick(&[">", "<=", "==", "!="]);
        let other = *self.random.pick(&["0", "1", "n", "0.5"]);
        let truth = Bounds {
            magnitude: 1.0,
            error: 0.0,
        };
        self.exact(&format!("{} {op} {other}", x.name), DType::Bool, x.sizes, truth);
    }

    pub(super) fn selection(&mut self) {
        let Some(mask) = self.tensor_that(|_, v| v.dtype == DType::Bool) else {
            return;
        };
        let x = self.tensor();
        let Some(sizes) = broadcast(&mask.sizes, &x.sizes) else {
            return;
        };
        let (b, m, x_name) = (self.bounds(&x), &mask.name, &x.name);
        let text = match (self.below(2), x.dtype) {
            (_, DType::Bool) => return,
            (0, _) => format!("torch.where({m}, {x_name}, -{x_name})"),
            _ => format!("torch.masked_fill({x_name}, {m}, 2)"),
        };
        let most = Bounds {
            magnitude: b.magnitude + 2.0,
            ..b
        };
        self.exact(&text, x.dtype, sizes.to_vec(), most);
    }

    /// Gives a tensor the signs of zeros. Zeros of both signs are equal, so that only this shows which one an engine took.
    pub(super) fn signs(&mut self) {
        let Some(x) = self.tensor_that(|_, v| v.dtype == DType::Float) else {
            return;
        };
        let (b, name) = (self.bounds(&x), x.name.clone());
        let mask = self.tensor_that(|_, v| v.dtype == DType::Bool && v.sizes == x.sizes);
        let text = match (self.below(4), mask) {
            (0, _) => format!("torch.copysign({name}, 0.0)"),
            (1, _) => format!("torch.copysign({name}, -0.0)"),
            (2, Some(mask)) => format!("torch.copysign({name}, torch.where({}, 0.0, -0.0))", mask.name),
            (_, Some(mask)) => format!("torch.copysign({name}, torch.where({}, -0.0, 0.0))", mask.name),
            _ => format!("torch.copysign({name}, torch.full_like({name}, -0.0))"),
        };
        // Where the engines disagree on an element, it may lie on the other side of zero, but not further away than before.
        self.exact(
            &text,
            x.dtype,
            x.sizes,
            Bounds {
                error: 2.0 * b.error,
                ..b
            },
        );
    }

    pub(super) fn reduction(&mut self) {
        let x = self.tensor();
        if x.sizes.is_empty() {
            return;
        }
        let d = self.below(x.sizes.len());
        let (n, keep, name) = (x.sizes[d], self.random.chance(50), &x.name);
        let mut sizes = x.sizes.clone();
        match keep {
            true => sizes[d] = 1,
            false => _ = sizes.remove(d),
        }
        let b = self.bounds(&x);
        let python = if keep { "True" } else { "False" };
        let count = n.max(1) as f64;
        let floats = x.dtype.is_floating_point();
        let truth = Bounds {
            magnitude: 1.0,
            error: 0.0,
        };
        match self.below(6) {
            0 if floats => {
                let total = Bounds {
                    magnitude: b.magnitude * count,
                    error: b.error * count,
                };
                self.define(&format!("torch.sum({name}, {d}, {python})"), x.dtype, sizes, total);
            }
            0 => {
                let total = Bounds {
                    magnitude: b.magnitude * count,
                    ..b
                };
                self.exact(&format!("torch.sum({name}, {d}, {python})"), DType::Long, sizes, total);
            }
            1 if floats && n > 0 => self.define(&format!("torch.mean({name}, {d}, {python})"), x.dtype, sizes, b),
            2 if n > 0 && x.dtype != DType::Bool => {
                self.exact(&format!("torch.amax({name}, {d}, {python})"), x.dtype, sizes, b);
            }
            3 if floats => {
                let bounds = Bounds {
                    magnitude: 1.0,
                    error: 2.0 * b.error,
                };
                self.define(&format!("torch.softmax({name}, {d})"), x.dtype, x.sizes.clone(), bounds);
            }
            4 if b.error == 0.0 && n > 0 && x.dtype != DType::Bool => {
                let places = Bounds {
                    magnitude: count,
                    error: 0.0,
                };
                self.exact(
                    &format!("torch.argmax({name}, {d}, {python})"),
                    DType::Long,
                    sizes,
                    places,
                );
            }
            5 if b.error == 0.0 => self.exact(
                &format!("torch.any({name} != 0, {d}, {python})"),
                DType::Bool,
                sizes,
                truth,
            ),
            _ => {}
        }
    }

    pub(super) fn viewed(&mut self) {
        let x = self.tensor();
        let (rank, name, mut sizes) = (x.sizes.len(), x.name.clone(), x.sizes.clone());
        if rank == 0 {
            sizes.push(1);
            return self.view(&x, &format!("{name}.unsqueeze(0)"), sizes, false);
        }
        let d = self.below(rank);
        let n = sizes[d];
        match self.below(11) {
            // The same tensor or a copy, as its strides have it.
            9 => self.view(&x, &format!("{name}.contiguous()"), sizes, false),
            10 if rank == 4 => {
                let format = ["channels_last", "contiguous_format"][self.below(2)];
                self.view(&x, &format!("{name}.to(memory_format=torch.{format})"), sizes, false);
            }
            10 => {
                let numel = sizes.iter().product();
                self.view(&x, &format!("{name}.reshape([-1])"), vec![numel], false);
            }
            0 if rank > 1 => {
                let e = self.below(rank);
                sizes.swap(d, e);
                self.view(&x, &format!("{name}.transpose({d}, {e})"), sizes, false);
            }
            1 => {
                sizes.insert(d, 1);
                self.view(&x, &format!("{name}.unsqueeze({d})"), sizes, false);
            }
            2 if n > 0 => {
                sizes.remove(d);
                let at = self.below(n as usize) as i64;
                let at = if self.random.chance(30) { at - n } else { at };
                self.view(&x, &format!("{name}.select({d}, {at})"), sizes, false);
            }
            3 if n > 1 => {
                sizes[d] = n - 1;
                self.view(&x, &format!("{name}.narrow({d}, 1, {})", n - 1), sizes, false);
            }
            4 if n > 1 => {
                sizes[d] = (n + 1) / 2;
                let before = ":, ".repeat(d);
                self.view(&x, &format!("{name}[{before}::2]"), sizes, false);
            }
            5 => {
                sizes.insert(0, 2);
                let shown: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                self.view(&x, &format!("{name}.expand({})", shown.join(", ")), sizes, true);
            }
            6 if n == 1 => {
                sizes.remove(d);
                self.view(&x, &format!("{name}.squeeze({d})"), sizes, false);
            }
            6 if x.dtype.is_floating_point() => {
                self.view(&x, &format!("torch._neg_view({name})"), sizes, false);
            }
            7 => {
                let (dtype, b) = (x.dtype, self.bounds(&x));
                self.exact(&format!("torch.flip({name}, [{d}])"), dtype, sizes, b);
            }
            _ => {
                let (dtype, b) = (x.dtype, self.bounds(&x));
                let numel = sizes.iter().product();
                self.exact(&format!("{name}.reshape([{numel}]).clone()"), dtype, vec![numel], b);
            }
        }
    }

    /// Writes in place, which is visible in all views of the memory.
    pub(super) fn write(&mut self) {
        let Some(target) = self.tensor_that(|_, v| !v.overlaps && v.dtype.is_floating_point()) else {
            return;
        };
        let source = self.tensor_that(|_, v| {
            v.memory != target.memory
                && broadcast(&v.sizes, &target.sizes).is_some_and(|s| s.as_slice() == target.sizes.as_slice())
        });
        let old = self.bounds(&target);
        let (name, rounds) = (&target.name, unit(target.dtype) * UNITS);
        let (text, new) = match (self.below(6), source) {
            (0, Some(s)) => {
                let b = self.bounds(&s);
                let magnitude = old.magnitude + b.magnitude;
                (
                    format!("{name}.add_({})", s.name),
                    Bounds {
                        magnitude,
                        error: old.error + b.error + magnitude * rounds,
                    },
                )
            }
            (1, Some(s)) => {
                let b = self.bounds(&s);
                (
                    format!("{name}.copy_({})", s.name),
                    Bounds {
                        magnitude: b.magnitude,
                        error: b.error + b.magnitude * rounds,
                    },
                )
            }
            (2, _) => (
                format!("{name}.mul_(0.5)"),
                Bounds {
                    error: old.error + old.magnitude * rounds,
                    ..old
                },
            ),
            (3, _) => (format!("{name}.relu_()"), old),
            (4, _) => (
                format!("{name}.fill_(0.75)"),
                Bounds {
                    magnitude: 1.0,
                    error: 0.0,
                },
            ),
            (_, _) => (format!("{name}.clamp_(-1, 1)"), old),
        };
        // In a loop it happens more than once.
        let times = if self.depth > 0 { 8.0 } else { 1.0 };
        let joined = Bounds {
            magnitude: old.magnitude.max(new.magnitude * times),
            error: old.error.max(new.error * times),
        };
        if joined.magnitude > LARGEST || joined.error > 0.1 * joined.magnitude {
            return;
        }
        // The next iteration of a loop would read values of this one as if they were exact.
        if self.depth > 0 && old.error == 0.0 && joined.error > 0.0 {
            return;
        }
        self.memories[target.memory] = joined;
        self.line(text);
    }

    pub(super) fn joined(&mut self) {
        let x = self.tensor();
        let Some(y) = self.tensor_that(|_, y| y.dtype == x.dtype && y.sizes == x.sizes) else {
            return;
        };
        let (a, b) = (self.bounds(&x), self.bounds(&y));
        let most = Bounds {
            magnitude: a.magnitude.max(b.magnitude),
            error: a.error.max(b.error),
        };
        let mut sizes = x.sizes.clone();
        let (x_name, y_name) = (&x.name, &y.name);
        if sizes.is_empty() || self.random.chance(40) {
            sizes.insert(0, 2);
            return self.exact(&format!("torch.stack([{x_name}, {y_name}])"), x.dtype, sizes, most);
        }
        let d = self.below(sizes.len());
        sizes[d] *= 2;
        self.exact(&format!("torch.cat([{x_name}, {y_name}], {d})"), x.dtype, sizes, most);
    }

    pub(super) fn product(&mut self) {
        let Some(x) = self.tensor_that(|_, v| v.sizes.len() == 2 && v.dtype.is_floating_point()) else {
            return;
        };
        let fits = |v: &Variable| v.sizes.len() == 2 && v.dtype == x.dtype && v.sizes[1] == x.sizes[1];
        let Some(y) = self.tensor_that(|_, v| fits(v)) else {
            return;
        };
        let (a, b, k) = (self.bounds(&x), self.bounds(&y), x.sizes[1].max(1) as f64);
        let bounds = Bounds {
            magnitude: a.magnitude * b.magnitude * k,
            error: (a.magnitude * b.error + b.magnitude * a.error) * k,
        };
        let text = format!("torch.mm({}, {}.t())", x.name, y.name);
        self.define(&text, x.dtype, vec![x.sizes[0], y.sizes[0]], bounds);
    }

    /// Adds an integer that is read from a tensor, or computed.
    pub(super) fn number(&mut self) {
        let name = format!("i{}", self.next);
        self.next += 1;
        let exact = |w: &Writer, v: &Variable| {
            w.bounds(v).error == 0.0 && !v.dtype.is_floating_point() && v.sizes.iter().all(|&n| n > 0)
        };
        let any = self.tensor();
        let text = match (self.below(5), self.tensor_that(exact)) {
            (0, Some(x)) => format!("int(torch.sum({}).item()) % 4", x.name),
            (1, Some(x)) => format!("{}.numel() - n", x.name),
            (2, _) => format!("int({}.is_contiguous())", any.name),
            (3, _) if !any.sizes.is_empty() => {
                format!("{}.stride({})", any.name, self.below(any.sizes.len()))
            }
            _ => {
                let (a, b) = (self.integer(), self.integer());
                format!("({a} * 3 + {b}) % 7")
            }
        };
        self.line(format!("{name} = {text}"));
        self.integers.push(name);
    }

    pub(super) fn conversion(&mut self) {
        let x = self.tensor();
        let to = *self
            .random
            .pick(&[DType::Float, DType::Double, DType::Half, DType::BFloat16]);
        let text = format!("{}.to({})", x.name, python_name(to));
        if to == x.dtype {
            return self.view(&x, &text, x.sizes.clone(), false);
        }
        let b = self.bounds(&x);
        self.define(&text, to, x.sizes, b);
    }
}

fn python_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Double => "torch.float64",
        DType::Half => "torch.float16",
        DType::BFloat16 => "torch.bfloat16",
        _ => "torch.float32",
    }
}
