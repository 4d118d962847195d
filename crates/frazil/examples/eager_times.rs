//! Measures eager calls on small tensors, for `tools/bench_eager.py`: for each line on standard input, the name of a call below, writes a line of
//! JSON: nanoseconds of a call, and of the operator alone on prepared arguments. Exits without input.

#![allow(clippy::print_stdout, reason = "a program for a script to read")]

use frazil::eager::{OpCall, Var};
use frazil::runtime::Value;
use frazil::runtime::interp::Interpreter;
use frazil::{Session, Tensor};
use std::hint::black_box;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// A call, and its operator with all arguments but the tensors, in order.
struct Case {
    name: &'static str,
    call: for<'a> fn(&'a Var, &'a Var) -> OpCall<'a>,
    overload: (&'static str, &'static str),
    rest: fn() -> Vec<Value>,
    tensors: usize,
}

const CASES: &[Case] = &[
    Case {
        name: "add",
        call: |x, y| x.add(y),
        overload: ("aten::add", "Tensor"),
        rest: || vec![Value::Int(1)],
        tensors: 2,
    },
    Case {
        name: "mul",
        call: |x, y| x.mul(y),
        overload: ("aten::mul", "Tensor"),
        rest: Vec::new,
        tensors: 2,
    },
    Case {
        name: "relu",
        call: |x, _| x.relu(),
        overload: ("aten::relu", ""),
        rest: Vec::new,
        tensors: 1,
    },
    Case {
        name: "t",
        call: |x, _| x.t(),
        overload: ("aten::t", ""),
        rest: Vec::new,
        tensors: 1,
    },
    Case {
        name: "selu",
        call: |x, _| x.selu(),
        overload: ("aten::selu", ""),
        rest: Vec::new,
        tensors: 1,
    },
    Case {
        name: "sum",
        call: |x, _| x.sum(),
        overload: ("aten::sum", ""),
        rest: || vec![Value::None],
        tensors: 1,
    },
    Case {
        name: "mm",
        call: |x, y| x.mm(y),
        overload: ("aten::mm", ""),
        rest: Vec::new,
        tensors: 2,
    },
    Case {
        name: "add_",
        call: |x, y| x.add_(y),
        overload: ("aten::add_", "Tensor"),
        rest: || vec![Value::Int(1)],
        tensors: 2,
    },
];

const ROUNDS: u32 = 20_000;

fn main() -> Result<(), Failure> {
    let session = Session::new();
    let ops = session.eager();
    let interpreter = Interpreter::new(session.registry().clone());
    let x = ops.var(Tensor::from_f32(&[1.0], &[1, 1])?);
    let y = ops.var(Tensor::from_f32(&[2.0], &[1, 1])?);
    for line in std::io::stdin().lines() {
        let line = line?;
        let case = CASES.iter().find(|c| c.name == line);
        let case = case.ok_or_else(|| format!("there is no call `{line}`"))?;
        let (name, overload) = case.overload;
        let operator = session.registry().find(name, overload).ok_or("no such operator")?;
        let mut values = vec![Value::from(x.get()), Value::from(y.get())];
        values.truncate(case.tensors);
        values.extend((case.rest)());
        let call = nanoseconds(|| (case.call)(&x, &y).call().is_ok())?;
        let alone = nanoseconds(|| interpreter.run_operator(&operator, &values).is_ok())?;
        println!(r#"{{"call": {call:.1}, "operator": {alone:.1}}}"#);
    }
    Ok(())
}

fn nanoseconds(mut call: impl FnMut() -> bool) -> Result<f64, Failure> {
    for _ in 0..ROUNDS / 10 {
        if !black_box(call()) {
            return Err("a call failed".into());
        }
    }
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(call());
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS))
}
