//! Named results of operators can be returned by functions and modules. As in PyTorch, they are saved as plain tuples.

use std::path::Path;

use frazil::{EngineKind, EngineOptions, SaveOptions, Session, Tensor, Value};

#[test]
fn what_returns_named_results_can_be_saved() {
    let x = Tensor::from_f32(&[3.0, 1.0, 2.0, 5.0, 6.0, 4.0], &[2, 3]).unwrap();
    let function = |body: &str| format!("def f(x):\n{body}");
    let module = |body: &str| {
        let body = body.replace("    ", "        ");
        format!("import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n{body}")
    };
    for (body, expected) in [
        (
            "    return x.max(dim=1)\n",
            "Tuple[Tensor(torch.float32, [2], [3.0, 6.0]), Tensor(torch.int64, [2], [0.0, 1.0])]",
        ),
        (
            "    return torch.topk(x, 1)\n",
            "Tuple[Tensor(torch.float32, [2, 1], [3.0, 6.0]), Tensor(torch.int64, [2, 1], [0.0, 1.0])]",
        ),
        (
            "    y = torch.sort(x, dim=1)\n    return y, y.indices\n",
            "Tuple[Tuple[Tensor(torch.float32, [2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Tensor(torch.int64, [2, 3], [1.0, 2.0, 0.0, 2.0, 0.0, 1.0])], \
             Tensor(torch.int64, [2, 3], [1.0, 2.0, 0.0, 2.0, 0.0, 1.0])]",
        ),
        (
            "    return [x.min(dim=1)]\n",
            "[Tuple[Tensor(torch.float32, [2], [1.0, 4.0]), Tensor(torch.int64, [2], [1.0, 2.0])]]",
        ),
    ] {
        for text in [function(body), module(body)] {
            let session = Session::new();
            let loaded = session
                .load_bytes(Path::new("f.py"), text.clone().into_bytes())
                .unwrap();
            let name = if loaded.is_model() { "forward" } else { "f" };
            let model = loaded.to_model(name).unwrap();
            let saved = model
                .save_bytes(&SaveOptions::default())
                .unwrap_or_else(|e| panic!("{e}\n{text}"));
            let again = Session::new().load_bytes(Path::new("f.pt"), saved).unwrap();
            for kind in [EngineKind::Interpreter, EngineKind::Native] {
                let options = EngineOptions::default().kind(kind);
                for model in [&model, &again.to_model("forward").unwrap()] {
                    let got = model
                        .engine(&options)
                        .unwrap()
                        .call("forward", &[Value::from(x.clone())])
                        .unwrap();
                    assert_eq!(format!("{got:?}"), expected, "{text}");
                }
            }
        }
    }
}
