//! A compiler for the made-up language "toy", of Frazil's parts: the IR, the passes, freezing, the interpreter and, with the feature `native`, code
//! generation. Everything hangs on a session; nothing is registered globally, and sessions with other dialects can stand beside.
//!
//! The program is `jit-opt` with that session: `toy-opt graph.ir --pass-pipeline=fuse-scales,dce`. The tests below and in `tests/` are what
//! `make test-full` runs.

mod dialect;
mod fuse_scales;

use frazil::Session;

/// Returns a session with our dialect and our pass, in addition to those of Frazil.
fn session() -> Session {
    Session::builder()
        .operators(dialect::register)
        .expect("the schemas parse")
        .pass(&fuse_scales::INFO)
        .build()
}

/// The driver: `jit-opt` with our operators and our pass.
fn main() {
    frazil_tools::leave(frazil_tools::jit_opt::main_with(session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::runtime::interp::Interpreter;
    use frazil::trace::{Method, Parameters, TraceOptions};
    use frazil::{FreezeOptions, Loaded, Model, PassOptions, Tensor};
    use std::path::Path;

    /// Reads text, runs our pass, and gives the graph back.
    fn compile(session: &Session, text: String) -> Result<Loaded, frazil::Error> {
        let mut loaded = session.load_bytes(Path::new("graph.ir"), text.into_bytes())?;
        loaded.run_passes("fuse-scales,dce", &PassOptions::default())?;
        Ok(loaded)
    }

    const TWO_SCALES: &str = "graph(%image : __torch__.torch.classes.toy.Image):
  %two : float = prim::Constant[value=2.]()
  %three : float = prim::Constant[value=3.]()
  %x : Tensor = toy::pixels(%image)
  %y : Tensor = toy::scale(%x, %two)
  %z : Tensor = toy::scale(%y, %three)
  return (%z)
";

    #[test]
    fn our_type_and_operators_are_parsed_and_printed() {
        let loaded = session()
            .load_bytes(Path::new("graph.ir"), TWO_SCALES.into())
            .expect("it parses");
        assert_eq!(loaded.ir_text(None), TWO_SCALES);
    }

    #[test]
    fn our_pass_stands_in_pipelines() {
        let text = compile(&session(), TWO_SCALES.into())
            .expect("it compiles")
            .ir_text(None);
        assert_eq!(text.matches("toy::scale").count(), 1, "{text}");
        assert!(text.contains("value=6."), "{text}");
    }

    #[test]
    fn sessions_know_nothing_of_one_another() {
        let ours = session();
        assert!(ours.registry().find("toy::scale", "").is_some());
        assert!(Session::new().registry().find("toy::scale", "").is_none());
        assert!(Session::new().passes().find("fuse-scales").is_none());
    }

    /// A module that uses our operator, traced.
    fn model() -> (Model, Tensor) {
        let x = Tensor::from_f32(&[1.0, -2.0, 3.0], &[3]).expect("three");
        let mut parameters = Parameters::new("Net");
        parameters.parameter("shift", Tensor::from_f32(&[0.5, 0.5, 0.5], &[3]).expect("three"));
        let forward = Method {
            name: "forward",
            function: &|p, x| {
                let twice = x[0].start("toy::scale").positional(2.0).call()?;
                let scaled = twice.start("toy::scale").positional(3.0).call()?;
                Ok((scaled + &p.get("shift")?)?.relu().call()?.into())
            },
            inputs: std::slice::from_ref(&x),
        };
        let trace = session()
            .trace_module(&parameters, &[forward], &TraceOptions::default())
            .expect("it traces");
        assert!(trace.warnings.is_empty(), "{:?}", trace.warnings);
        (trace.to_model(), x)
    }

    const RESULT: [f64; 3] = [6.5, 0.0, 18.5];

    #[test]
    fn freezing_works_on_our_graphs() {
        let (model, x) = model();
        let frozen = model.freeze(&FreezeOptions::default()).expect("it freezes");
        let (fused, _) = frozen
            .run_passes("fuse-scales,dce", &PassOptions::default())
            .expect("it runs");
        let graph = fused.graph("forward").expect("it is there");
        let kinds: Vec<&str> = graph.all_nodes().into_iter().map(|n| graph.kind_name(n)).collect();
        assert_eq!(kinds.iter().filter(|k| **k == "toy::scale").count(), 1, "{kinds:?}");
        assert!(!kinds.contains(&"prim::GetAttr"), "{kinds:?}");
        let interpreter =
            Interpreter::with_module(fused.session().registry().clone(), fused.module().clone()).expect("it fits");
        let result = interpreter.call("forward", &[x.into()]).expect("it runs");
        assert_eq!(result.as_tensor().expect("a tensor").to_f64_vec(), RESULT);
    }

    #[cfg(feature = "native")]
    #[test]
    fn our_operator_becomes_native_code() {
        let (model, x) = model();
        let frozen = model.freeze(&FreezeOptions::default()).expect("it freezes");
        let input = frazil::InputSpec::new(frazil::ir::DType::Float, &[3]);
        let mut forward = frozen
            .compile(&[input], &frazil::CompileOptions::default())
            .expect("it compiles");
        let result = forward.run(&[x]).expect("it runs");
        assert_eq!(result.as_tensor().expect("a tensor").to_f64_vec(), RESULT);
    }
}
