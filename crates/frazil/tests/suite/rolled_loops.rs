//! Loops that stay rolled: the same bits as unrolled loops, and loops that must be unrolled because their iterations differ.

#![cfg(feature = "codegen")]

use frazil::{Engine, EngineOptions, FusionStrategy, Session, Tensor, Value};
use std::path::Path;

/// The body of `forward` for an input of sizes `[steps, batch, 16]`. The module has an `nn.Linear(16, 16)`, `cell`.
const ROLLED: &[(&str, &str)] = &[
    (
        "indices",
        "
        h = torch.zeros(x.size(1), 16)
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) + x[t])
            outputs.append(h)
        return torch.stack(outputs), h
",
    ),
    (
        "items of a list, and two states",
        "
        h = x[0]
        c = torch.ones(x.size(1), 16)
        outputs: List[Tensor] = []
        for item in x.unbind(0):
            c = torch.sigmoid(self.cell(item + h)) * c
            h = h + torch.tanh(c)
            outputs += [h * 2.0, c]
        return torch.cat(outputs, 0), h, c
",
    ),
    (
        "the last item is the state",
        "
        h = x.sum(0)
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            h = torch.relu(self.cell(h)) + x[x.size(0) - 1 - t]
            outputs.append(h)
        h.mul_(3.0)
        return torch.stack(outputs), h
",
    ),
    (
        "a number in arithmetic",
        "
        h = x[0]
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h)) + 0.125 * t
        return h, x * h
",
    ),
    (
        "parts of the input of several steps",
        "
        h = torch.zeros(2, x.size(1), 16)
        for t in range(x.size(0) - 1):
            h = torch.tanh(self.cell(h)) + x[t:t + 2]
        return h, x.sum(0)
",
    ),
    (
        "writes to tensors of the iteration",
        "
        h = x[0]
        for t in range(x.size(0)):
            y = self.cell(h)
            y += x[t]
            y[0] = y[0] * 0.5
            h = y.tanh_()
        return h, x
",
    ),
    (
        "a loop in a loop",
        "
        h = x[0]
        for t in range(x.size(0)):
            for k in range(3):
                h = torch.tanh(self.cell(h)) + x[t] * k
        return h, x
",
    ),
    (
        "two loops",
        "
        h = torch.zeros(x.size(1), 16)
        forth: List[Tensor] = []
        back: List[Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) + x[t])
            forth.append(h)
        y = torch.stack(forth)
        for t in range(x.size(0) - 1, -1, -1):
            h = torch.tanh(self.cell(h) - y[t])
            back.append(h)
        return torch.cat([y, torch.stack(back)], 2), h
",
    ),
    (
        "tensors that the iteration reads first, and that are read after the loop",
        "
        h = x[0]
        y = x[:, 0] * 2.0
        rest = y[2:]
        flipped = y.t()
        ones = torch.ones(16, 16)
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) + rest[0] + flipped[:, 1] + ones[0])
        return self.cell(h) + ones[1], flipped[:, 2:] + rest.t()
",
    ),
    (
        "initial states that are written after the loop",
        "
        zeros = torch.zeros(x.size(1), 16)
        others = torch.zeros(x.size(1), 16)
        h = zeros
        c = others
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) + x[t])
            c = c * 0.5 + h
        zeros.fill_(2.0)
        others[0] = h[0]
        return h + zeros + c, others
",
    ),
    (
        "a view of a tensor with known elements, whose sizes are those of the state",
        "
        h = x[0]
        w = torch.ones(1, 16) * x.size(0)
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) + w.expand_as(h) * 0.01 + x[t])
        return h + w, w * 2.0 + x[0, 0]
",
    ),
    (
        "indices that are affine functions of the number, and others",
        "
        n = x.size(0)
        h = x[0]
        for t in range(n):
            before = x[t // 2] - x[t * t % n] + x[t * (n - 1 - t) // n]
            h = torch.tanh(self.cell(h) + before + x[-1 - t] * x[t - 2] + x[n - 1 - 1 * t] + x.narrow(0, n - t - 1, 1)[0])
        return h, x
",
    ),
    (
        "items that become other views after the loop",
        "
        h = x[0]
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h)) + x[t]
            outputs.append(h)
        for item in outputs:
            item.transpose_(0, 1)
        return torch.stack(outputs), h
",
    ),
    (
        "items that are written and viewed after the loop",
        "
        h = x[0]
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h)) + x[t]
            outputs.append(h)
        outputs[0].mul_(3.0)
        outputs[1][0].fill_(2.0)
        outputs[2] += outputs[0]
        return torch.stack(outputs), h, outputs[1][:, 1:]
",
    ),
    (
        "a condition that always holds",
        "
        h = x[0]
        for t in range(x.size(0)):
            assert t != 1000
            h = torch.tanh(self.cell(h)) + x[t]
        return h, x
",
    ),
];

/// As `ROLLED`, with conditions on elements. The segments between them are fused differently if loops are unrolled, so results may differ by rounding.
const ROLLED_AMONG_CONDITIONS: &[(&str, &str)] = &[
    (
        "a loop with a transposed state between a rolled loop and a condition on elements",
        "
        h = x[0]
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) + x[t])
        a = x[1, :, :2] * 0.5
        b = (x[0, :2] * 2.0).t()[:x.size(1)]
        for t in range(x.size(0)):
            a = torch.tanh(a) + 0.25 * b.sum()
            b = b * 0.5
        if bool(a.sum() > 0.0):
            return a * h.sum(), b
        return a - h.sum(), h
",
    ),
    (
        "loops before and after conditions on elements",
        "
        h = x[0]
        y = x * 0.5
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) + y[t])
        scale = 2.0
        if bool(h.sum() > 0.0):
            scale = 3.0
        z = y * scale
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h) - z[t])
            outputs.append(h)
        for t in range(x.size(0)):
            h = torch.sigmoid(self.cell(h)) * outputs[t]
        if bool(h.sum() > z.sum()):
            return h * scale, torch.stack(outputs)
        return h + y.sum(), z
",
    ),
];

/// As `ROLLED`, of loops whose iterations differ.
const UNROLLED: &[(&str, &str)] = &[
    (
        "slices with steps, and ends beyond the tensor, which differ in size",
        "
        h = x[0]
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h)) + x[t:2 * t + 1:x.size(0)][0] + x[t:t + 30][0] - x[-1 - t:x.size(0) - t][0]
        return h, x
",
    ),
    (
        "a condition",
        "
        h = x[0]
        for t in range(x.size(0)):
            if t % 3 == 0:
                h = torch.tanh(self.cell(h))
            h = h + x[t]
        return h, x
",
    ),
    (
        "a list that is read",
        "
        outputs = [x[0]]
        for t in range(x.size(0)):
            outputs.append(torch.tanh(self.cell(outputs[-1])) + x[t])
        return torch.stack(outputs), outputs[3]
",
    ),
    (
        "the length of a list",
        "
        h = x[0]
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            if len(outputs) < 4:
                h = self.cell(h)
            h = torch.tanh(h + x[t])
            outputs.append(h)
        return torch.stack(outputs), h
",
    ),
    (
        "sizes that grow",
        "
        h = x[0]
        for t in range(x.size(0)):
            h = torch.cat([torch.tanh(self.cell(h)), x[t, :1]], 0)
        return h, x
",
    ),
    (
        "a counter",
        "
        h = x[0]
        scale = 1
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h)) + x[t] / scale
            scale += 1
        return h, x
",
    ),
    (
        "writes to a tensor from outside",
        "
        h = x[0] * 1.0
        y = torch.zeros(x.size(1), 16)
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h)) + x[t]
            y.add_(h)
        return h, y
",
    ),
    (
        "writes to the state",
        "
        h = x[0] * 1.0
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            h.add_(torch.tanh(self.cell(h)) + x[t])
            outputs.append(h)
        return torch.stack(outputs), h
",
    ),
    (
        "an item that is a view of the state",
        "
        h = x[0]
        outputs: List[Tensor] = []
        for t in range(x.size(0)):
            h = torch.tanh(self.cell(h)) + x[t]
            outputs.append(h.view(-1))
        h.mul_(2.0)
        return torch.stack(outputs), h
",
    ),
    (
        "exchanged states",
        "
        a = x[0]
        b = x[1] * 2.0
        for t in range(x.size(0)):
            a, b = b, torch.tanh(self.cell(a)) + x[t]
        return a, b
",
    ),
    (
        "an end that depends on the iteration",
        "
        h = x[0]
        t = 0
        while t < x.size(0):
            h = torch.tanh(self.cell(h)) + x[t]
            t += 1
        return h, x
",
    ),
];

const LAYERS: &[&str] = &[
    "nn.LSTM(16, 24, 2, bidirectional=True)",
    "nn.LSTM(16, 24, proj_size=8)",
    "nn.GRU(16, 24, 2, bias=False)",
    "nn.RNN(16, 24, bidirectional=True)",
];

fn engine(source: &str, static_shapes: usize) -> Engine {
    let loaded = Session::new().script(Path::new("net.py"), source, &[]).unwrap();
    let mut model = loaded.to_model("net").unwrap();
    model.eval();
    let options = EngineOptions::default().strict(true).threads(2);
    let strategy = FusionStrategy { static_shapes };
    model.engine(&options.fusion_strategy(strategy)).unwrap()
}

fn input(shape: &[i64]) -> Value {
    let count: i64 = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 113 - 56) as f32 / 60.0).collect();
    Tensor::from_f32(&values, shape).unwrap().into()
}

/// Calls `forward` of `source` with several numbers of steps. Returns whether a loop stayed rolled. Results differ by at most `tolerance` from those of code of
/// each shape's own, in which all loops are unrolled; if it is 0, they have the same bits.
fn stays_rolled(name: &str, source: &str, tolerance: f64) -> bool {
    let mut stays = false;
    let mut own = engine(source, usize::MAX);
    for static_shapes in [0, 1] {
        let mut shared = engine(source, static_shapes);
        for (steps, batch) in [(12, 2), (9, 2), (20, 1), (12, 2), (3, 2), (21, 3)] {
            let x = input(&[steps, batch, 16]);
            let expected = own.call("forward", std::slice::from_ref(&x)).unwrap();
            let got = shared.call("forward", std::slice::from_ref(&x)).unwrap();
            let (mut all, mut all_expected) = (Vec::new(), Vec::new());
            elements(&got, &mut all);
            elements(&expected, &mut all_expected);
            let is_close = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a - b).abs() <= tolerance;
            assert!(
                !all.is_empty() && all.len() == all_expected.len() && all.iter().zip(&all_expected).all(is_close),
                "{name}: {steps} steps of {batch}"
            );
        }
        stays = shared.notes().iter().any(|note| note.contains("up to a loop of"));
    }
    assert!(!own.notes().iter().any(|note| note.contains("up to a loop of")));
    stays
}

/// Appends the sizes and the elements of all tensors in `value` to `all`.
fn elements(value: &Value, all: &mut Vec<f64>) {
    match value {
        Value::Tuple(tuple) => tuple.items.iter().for_each(|v| elements(v, all)),
        other => {
            let tensor = other.as_tensor().unwrap();
            all.extend(tensor.sizes().iter().map(|&n| n as f64));
            all.extend(tensor.to_f64_vec());
        }
    }
}

fn net(body: &str) -> String {
    format!(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.cell = nn.Linear(16, 16)\n\n    def forward(self, x):{body}\n\nnet = \
         Net()\n"
    )
}

#[test]
fn loops_whose_iterations_are_alike_stay_rolled() {
    for (name, body) in ROLLED {
        assert!(stays_rolled(name, &net(body), 0.0), "{name}: unrolled");
    }
}

#[test]
fn loops_among_conditions_on_elements_stay_rolled() {
    for (name, body) in ROLLED_AMONG_CONDITIONS {
        assert!(stays_rolled(name, &net(body), 1e-4), "{name}: unrolled");
    }
}

#[test]
fn loops_whose_iterations_differ_are_unrolled() {
    for (name, body) in UNROLLED {
        assert!(!stays_rolled(name, &net(body), 0.0), "{name}: rolled");
    }
}

#[test]
fn recurrent_layers_stay_rolled() {
    for layer in LAYERS {
        let source = format!(
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = {layer}\n\n    def forward(self, x):\n        return \
             self.layer(torch.tanh(x))\n\nnet = Net()\n"
        );
        assert!(stays_rolled(layer, &source, 0.0), "{layer}: unrolled");
    }
}
