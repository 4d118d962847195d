//! Tracing. The expected texts are those of PyTorch 2.15 for the same functions in Python, except for source locations.

use frazil::eager::Var;
use frazil::trace::{Method, Outputs, Parameters, Scope, Trace, TraceOptions, WarningKind};
use frazil::{Error, FreezeOptions, Loaded, MemberOptions, Result, Session, Tensor};
use std::path::Path;

fn counting(sizes: &[i64]) -> Tensor {
    let n: i64 = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|i| (i as f32) * 0.25 - 1.0).collect();
    Tensor::from_f32(&data, sizes).expect("as many as there are")
}

/// Returns a text without source locations.
fn without_places(text: &str) -> String {
    let lines = text.lines().map(|line| line.split(" # ").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The example of PyTorch's documentation: a loop over the rows of the input.
#[test]
fn a_loop_over_an_extent_gives_another_graph_for_other_inputs() {
    let loop_in_traced_fn = |x: &[Var]| {
        let mut result = x[0].at(0)?;
        for i in 0..x[0].sizes()[0] {
            // Python's tracer names a variable when it is used.
            result = (result.named("result") * &x[0].at(i)?)?;
        }
        Ok(result)
    };
    let options = TraceOptions::default().check_inputs(vec![vec![counting(&[4, 5, 6])], vec![counting(&[2, 3, 4])]]);
    let error = match Session::new().trace(loop_in_traced_fn, &[counting(&[3, 4, 5])], &options) {
        Err(Error::TracingCheck(error)) => error.to_string(),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("the graphs differ"),
    };
    let (diff, rest) = error.split_once("\tFirst diverging operator:").expect("both parts");
    assert_eq!(
        without_places(diff),
        "Tracing failed sanity checks!
ERROR: Graphs differed across invocations!
\tGraph diff:
\t\t  graph(%x : Tensor):
\t\t    %1 : int = prim::Constant[value=0]()
\t\t    %2 : int = prim::Constant[value=0]()
\t\t    %result.1 : Tensor = aten::select(%x, %1, %2)
\t\t    %4 : int = prim::Constant[value=0]()
\t\t    %5 : int = prim::Constant[value=0]()
\t\t    %6 : Tensor = aten::select(%x, %4, %5)
\t\t    %result.3 : Tensor = aten::mul(%result.1, %6)
\t\t    %8 : int = prim::Constant[value=0]()
\t\t    %9 : int = prim::Constant[value=1]()
\t\t    %10 : Tensor = aten::select(%x, %8, %9)
\t\t-   %result : Tensor = aten::mul(%result.3, %10)
\t\t+   %result.5 : Tensor = aten::mul(%result.3, %10)
\t\t?          ++
\t\t    %12 : int = prim::Constant[value=0]()
\t\t    %13 : int = prim::Constant[value=2]()
\t\t    %14 : Tensor = aten::select(%x, %12, %13)
\t\t+   %result : Tensor = aten::mul(%result.5, %14)
\t\t+   %16 : int = prim::Constant[value=0]()
\t\t+   %17 : int = prim::Constant[value=3]()
\t\t+   %18 : Tensor = aten::select(%x, %16, %17)
\t\t-   %15 : Tensor = aten::mul(%result, %14)
\t\t?     ^                                 ^
\t\t+   %19 : Tensor = aten::mul(%result, %18)
\t\t?     ^                                 ^
\t\t-   return (%15)
\t\t?             ^
\t\t+   return (%19)
\t\t?             ^"
    );
    let lines: Vec<&str> = rest.lines().map(str::trim).collect();
    assert_eq!(lines[1], "Node diff:");
    assert!(
        lines[2].starts_with("- %result : Tensor = aten::mul(%result.3, %10)"),
        "{rest}"
    );
    assert!(
        lines[3].starts_with("+ %result.5 : Tensor = aten::mul(%result.3, %10)"),
        "{rest}"
    );
    assert!(
        rest.contains("Trace source location:") && rest.contains("Check source location:"),
        "{rest}"
    );
    assert!(rest.contains("tests/suite/trace.rs:"), "{rest}");
}

/// Dropout draws random numbers by way of other operators, and only in training.
#[test]
fn dropout_in_training_is_listed_as_random() -> Result<()> {
    let traced = |train: bool| {
        let dropout = move |x: &[Var]| x[0].dropout(0.5, train).call();
        Session::new().trace(dropout, &[counting(&[8, 8])], &TraceOptions::default())
    };
    let lists = |trace: &Trace| {
        trace
            .warnings
            .iter()
            .any(|w| w.kind == WarningKind::Random && w.text.contains("aten::dropout("))
    };
    assert!(lists(&traced(true)?));
    assert!(!lists(&traced(false)?));
    Ok(())
}

/// The other example of the documentation: random numbers are written to a row of the input.
#[test]
fn a_write_of_random_numbers_to_a_slice_warns() -> Result<()> {
    let fill_row_zero = |x: &[Var]| {
        let x = &x[0];
        let row = x
            .ops()
            .rand([x.size(1)?])
            .dtype(None::<i64>)
            .device("cpu")
            .pin_memory(false)
            .call()?;
        x.set_at(0, &row)?;
        Ok(x.clone())
    };
    let trace = Session::new().trace(fill_row_zero, &[counting(&[3, 4])], &TraceOptions::default())?;
    let kinds: Vec<WarningKind> = trace.warnings.iter().map(|w| w.kind).collect();
    assert_eq!(kinds[..2], [WarningKind::Random, WarningKind::Different]);
    assert!(
        trace.warnings[0].text.contains("= aten::rand("),
        "{}",
        trace.warnings[0]
    );
    assert!(
        trace.warnings[1].text.contains("Mismatched elements: 4 / 12 (33.3%)"),
        "{}",
        trace.warnings[1]
    );
    let graph = without_places(&trace.graph("forward")?.to_string());
    // Python's call passes defaults for omitted scalars; the test is that the size is computed from the input.
    for line in [
        "graph(%x : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu)):",
        "= prim::NumToTensor(",
        "= aten::Int(",
        ": Float(4, strides=[1], requires_grad=0, device=cpu) = aten::rand(",
        ": Float(4, strides=[1], requires_grad=0, device=cpu) = aten::select(%x, ",
        ": Float(4, strides=[1], requires_grad=0, device=cpu) = aten::copy_(",
        "  return (%x)",
    ] {
        assert!(graph.contains(line), "{line} is not in\n{graph}");
    }
    Ok(())
}

#[test]
fn shapes_and_constants_are_recorded_as_pytorch_does() -> Result<()> {
    let f = |inputs: &[Var]| {
        let (x, y) = (&inputs[0], &inputs[1]);
        let a = ((x * 2)? + y)?.named("a");
        let b = a
            .view([Var::size(&a, 1)?, a.ops().start("aten::tensor").positional(-1).call()?])
            .call()?;
        let b = b.relu_().call()?.named("b");
        b.set_at((0, 1..), 3)?;
        Ok((a.clone(), a.ops().cat([&a.t().call()?, &b]).dim(1).call()?))
    };
    let options = TraceOptions::default().names(vec!["x".into(), "y".into()]);
    let inputs = [counting(&[3, 4]), counting(&[4])];
    let trace = Session::new().trace(f, &inputs, &options)?;
    assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
    let graph = without_places(&trace.graph("forward")?.to_string());
    for line in [
        "graph(%x : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu),\n      %y : Float(4, strides=[1], requires_grad=0, device=cpu)):",
        "Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()",
        "Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::mul(%x, ",
        "%a : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::add(",
        "%b : Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::relu_(",
        ": int = prim::Constant[value=9223372036854775807]()",
        "= aten::fill_(",
        ": Tensor[] = prim::ListConstruct(",
        ": (Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu), Float(4, 6, strides=[6, 1], requires_grad=0, device=cpu)) = prim::TupleConstruct(",
    ] {
        assert!(graph.contains(line), "{line} is not in\n{graph}");
    }
    Ok(())
}

#[test]
fn values_that_leave_the_trace_are_warned_of() -> Result<()> {
    let f = |x: &[Var]| match x[0].sum().call()?.gt(0).call()?.is_true()? {
        true => x[0].neg().call(),
        false => x[0].abs().call(),
    };
    let options = TraceOptions::default().check_inputs(vec![vec![counting(&[2])]]);
    let trace = Session::new().trace(f, &[counting(&[2])], &options)?;
    assert_eq!(trace.warnings.len(), 1);
    assert_eq!(trace.warnings[0].kind, WarningKind::Value);
    assert!(
        trace.warnings[0].place.ends_with(&format!("trace.rs:{}", line!() - 9)),
        "{}",
        trace.warnings[0]
    );
    let graph = without_places(&trace.graph("forward")?.to_string());
    assert!(graph.contains("aten::abs") && !graph.contains("aten::sum"), "{graph}");
    Ok(())
}

#[test]
fn writes_out_of_place_warn_when_others_refer_to_the_memory() -> Result<()> {
    let options = TraceOptions::default().force_outplace(true);
    let shared = |x: &[Var]| {
        let y = (&x[0] + 1)?;
        y.at(0)?.mul_(2).call()?;
        Ok(y)
    };
    let trace = Session::new().trace(shared, &[counting(&[2, 2])], &options)?;
    let kinds: Vec<WarningKind> = trace.warnings.iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [WarningKind::SharedWrite, WarningKind::Different]);
    let alone = |x: &[Var]| (&x[0] + 1)?.relu_().call();
    let trace = Session::new().trace(alone, &[counting(&[2, 2])], &options)?;
    assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
    assert!(trace.graph("forward")?.to_string().contains("= aten::relu(%"));
    Ok(())
}

/// The warnings of PyTorch 2.15 with `_force_outplace=True`, word by word up to the first full stop.
#[test]
fn warnings_count_the_references_that_are_still_there() -> Result<()> {
    type Traced = fn(&[Var]) -> Result<Outputs>;
    let cases: [(Traced, Option<&str>); 8] = [
        (
            |x| {
                let y = (&x[0] + 1)?;
                y.set_at(0, 5)?; // y[0] = 5
                Ok(y.into())
            },
            Some("There are 2 live references to the data region being modified when tracing in-place operator fill_."),
        ),
        (
            |x| {
                let y = (&x[0] + 1)?;
                y.set_at((.., 0), x[0].at((.., 1))?)?; // y[:, 0] = x[:, 1]
                Ok(y.into())
            },
            Some(
                "There are 2 live references to the data region being modified when tracing in-place operator copy_ (possibly due to an assignment).",
            ),
        ),
        (
            |x| {
                let y = (&x[0] + 1)?;
                let v = y.detach().call()?;
                y.at(0)?.set_at(0, 1)?; // y[0][0] = 1
                Ok(Outputs::Tuple(vec![y.into(), v.into()]))
            },
            Some("There are 4 live references to the data region being modified when tracing in-place operator fill_."),
        ),
        (
            |x| {
                let y = (&x[0] + 1)?;
                let v = y.at(0)?;
                v.add_(1).call()?;
                Ok(y.into())
            },
            Some("There are 2 live references to the data region being modified when tracing in-place operator add_."),
        ),
        (
            |x| {
                let y = (&x[0] + 1)?;
                y.t().call()?; // dropped
                Ok(y.relu_().call()?.into())
            },
            None,
        ),
        (|x| Ok((&x[0] + 1)?.add_(1).call()?.into()), None),
        (|x| Ok(x[0].add_(1).call()?.into()), None),
        (
            |x| {
                let y = (&x[0] + 1)?;
                let z = y.clone();
                z.add_(1).call()?;
                Ok(y.into())
            },
            None,
        ),
    ];
    for (number, (traced, expected)) in cases.into_iter().enumerate() {
        for force_outplace in [true, false] {
            let options = TraceOptions::default()
                .force_outplace(force_outplace)
                .check_trace(false);
            let trace = Session::new().trace(traced, &[counting(&[2, 2])], &options)?;
            let texts: Vec<&str> = trace.warnings.iter().map(|w| w.text.as_str()).collect();
            match expected.filter(|_| force_outplace) {
                Some(expected) => assert!(
                    texts.len() == 1 && texts[0].starts_with(expected),
                    "{number}: {texts:?}"
                ),
                None => assert!(texts.is_empty(), "{number}: {texts:?}"),
            }
        }
    }
    Ok(())
}

/// Returns a convolution, a normalisation and a linear layer, in submodules.
fn net(p: &Scope, x: &[Var]) -> Result<Outputs> {
    let (conv, bn, fc) = (p.sub("features.0"), p.sub("features.1"), p.sub("fc"));
    let y = x[0]
        .conv2d(&conv.get("weight")?)
        .bias(conv.get("bias")?)
        .padding([1, 1])
        .call()?;
    let y = y
        .batch_norm(
            bn.get("weight")?,
            bn.get("bias")?,
            bn.get("running_mean")?,
            bn.get("running_var")?,
            false,
            0.1,
            1e-5,
            true,
        )
        .call()?;
    let y = y.relu().call()?.mean().dim([2, 3]).call()?;
    Ok(y.linear(&fc.get("weight")?).call()?.into())
}

fn parameters() -> Parameters {
    let mut parameters = Parameters::new("Net");
    parameters
        .parameter("features.0.weight", counting(&[2, 1, 3, 3]))
        .parameter("features.0.bias", counting(&[2]))
        .parameter("features.1.weight", counting(&[2]))
        .parameter("features.1.bias", counting(&[2]))
        .buffer("features.1.running_mean", counting(&[2]))
        .buffer(
            "features.1.running_var",
            Tensor::from_f32(&[1.0, 0.5], &[2]).expect("two"),
        )
        .parameter("fc.weight", counting(&[3, 2]));
    parameters
}

#[test]
fn parameters_become_attributes_that_freezing_folds() -> Result<()> {
    let session = Session::new();
    let x = counting(&[1, 1, 5, 5]);
    let forward = Method {
        name: "forward",
        function: &net,
        inputs: std::slice::from_ref(&x),
    };
    let options = TraceOptions::default().check_inputs(vec![vec![counting(&[2, 1, 4, 4])]]);
    let trace = session.trace_module(&parameters(), &[forward], &options)?;
    assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
    let model = trace.to_model();
    let names: Vec<String> = model
        .root()
        .named_parameters(&MemberOptions::default())?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            "features.0.weight",
            "features.0.bias",
            "features.1.weight",
            "features.1.bias",
            "fc.weight"
        ]
    );
    assert_eq!(model.root().named_buffers(&MemberOptions::default())?.len(), 2);
    let frozen = model.freeze(&FreezeOptions::default())?;
    let graph = frazil_graph(&frozen)?;
    assert!(!graph.contains("GetAttr") && !graph.contains("batch_norm"), "{graph}");
    // The archive contains the same model.
    let bytes = model.save_bytes(&frazil::SaveOptions::default())?;
    let Loaded::Model(again) = session.load_bytes(Path::new("net.pt"), bytes)? else {
        panic!("an archive holds a module");
    };
    let run = |model: &frazil::Model| -> Result<Vec<f64>> {
        let registry = model.session().registry().clone();
        let interpreter = frazil::runtime::interp::Interpreter::with_module(registry, model.module().clone())?;
        let result = interpreter.call("forward", &[x.clone().into()]).map_err(Error::Run)?;
        Ok(result.as_tensor().expect("a tensor").to_f64_vec())
    };
    let expected = run(&model)?;
    assert_eq!(run(&again)?, expected);
    for (a, b) in run(&frozen)?.iter().zip(&expected) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    Ok(())
}

fn frazil_graph(model: &frazil::Model) -> Result<String> {
    Ok(Loaded::Model(model.clone())
        .graph("forward")?
        .all_nodes()
        .iter()
        .fold(String::new(), |text, &n| {
            let graph = model.graph("forward").expect("it was there");
            text + graph.kind_name(n) + "\n"
        }))
}

#[test]
fn scripted_functions_keep_their_control_flow_in_a_trace() -> Result<()> {
    let session = Session::new();
    let source = "
def clip(x):
    if bool(x.sum() > 0):
        return x * 2
    else:
        return -x
";
    let Loaded::Graphs(functions) = session.load_bytes(Path::new("clip.py"), source.into())? else {
        panic!("functions alone");
    };
    let f = |x: &[Var]| -> Result<Outputs> {
        let y = (&x[0] + 1)?;
        functions.call_if_tracing("clip", y.ops(), &[&y], |_| {
            Err(Error::Unsupported("only in a trace".into()))
        })
    };
    let x = Tensor::from_f32(&[1.0, 2.0], &[2])?;
    let trace = session.trace(f, std::slice::from_ref(&x), &TraceOptions::default())?;
    assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
    assert_eq!(trace.call("forward", &[x])?[0].get().to_f64_vec(), [4.0, 6.0]);
    let negative = Tensor::from_f32(&[-3.0, -4.0], &[2])?;
    assert_eq!(trace.call("forward", &[negative])?[0].get().to_f64_vec(), [2.0, 3.0]);
    Ok(())
}

#[test]
fn results_that_the_trace_cannot_vary_are_refused_unless_wanted() -> Result<()> {
    let session = Session::new();
    let f = |x: &[Var]| Ok(vec![x[0].clone(), x[0].relu().call()?]);
    assert!(matches!(
        session.trace(f, &[counting(&[2])], &TraceOptions::default()),
        Err(Error::Unsupported(_))
    ));
    let options = TraceOptions::default().strict(false);
    let trace = session.trace(f, &[counting(&[2])], &options)?;
    assert_eq!(trace.call("forward", &[counting(&[2])])?.len(), 2);
    Ok(())
}
