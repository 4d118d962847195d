//! The eager API: overload resolution, names and defaults, views, writes, indexing, and shared memory.

use frazil::eager::{Elements, Index, Ops, Var};
use frazil::ir::DType;
use frazil::runtime::element::{FloatElement, LongElement};
use frazil::{Error, Session, Tensor, Value};

fn ops() -> Ops {
    Session::new().eager()
}

/// Returns 0, 1, 2, ... as floats.
fn counting(ops: &Ops, sizes: &[i64]) -> Var {
    let n: i64 = sizes.iter().product();
    let data: Vec<f32> = (0..n).map(|i| i as f32).collect();
    ops.var(Tensor::from_f32(&data, sizes).expect("as many as there are"))
}

fn elements(var: &Var) -> Vec<f64> {
    var.get().to_f64_vec()
}

#[test]
fn overloads_follow_what_is_given() -> Result<(), Error> {
    let ops = ops();
    let x = counting(&ops, &[2, 3]);
    assert_eq!(elements(&x.sum().call()?), [15.0]);
    assert_eq!(elements(&x.sum().dim(0).call()?), [3.0, 5.0, 7.0]);
    assert_eq!(elements(&x.sum().dim([0, 1]).keepdim(true).call()?), [15.0]);
    assert_eq!(x.sum().dtype(DType::Double).call()?.get().dtype(), DType::Double);
    assert_eq!(elements(&x.max().call()?), [5.0]);
    assert_eq!(
        elements(&x.max().other(&(&x * -1i64)?).call()?),
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    );
    let [values, indices] = x.max().dim(1).call_tuple()?;
    assert_eq!(
        (elements(&values), indices.get().to_i64_vec()),
        (vec![2.0, 5.0], vec![2, 2])
    );
    assert_eq!(
        elements(&x.add(&x).alpha(10).call()?),
        [0.0, 11.0, 22.0, 33.0, 44.0, 55.0]
    );
    assert_eq!(elements(&x.pow(2).call()?), [0.0, 1.0, 4.0, 9.0, 16.0, 25.0]);
    assert_eq!(x.to().dtype(DType::Long).call()?.get().dtype(), DType::Long);
    let parts = x.split(2).dim(1).call_list()?;
    assert_eq!(parts.iter().map(Var::sizes).collect::<Vec<_>>(), [[2, 2], [2, 1]]);
    assert!(matches!(x.dim().call_value()?, Value::Int(2)));
    Ok(())
}

#[test]
fn operators_without_a_tensor_at_first_belong_to_the_session() -> Result<(), Error> {
    let ops = ops();
    assert_eq!(elements(&ops.zeros([2]).call()?), [0.0, 0.0]);
    assert_eq!(elements(&ops.arange(1).end(4).call()?), [1.0, 2.0, 3.0]);
    let x = counting(&ops, &[1, 2]);
    assert_eq!(elements(&ops.cat([&x, &x]).dim(1).call()?), [0.0, 1.0, 0.0, 1.0]);
    assert_eq!(
        ops.full([2, 2], 1.5).dtype(DType::Double).call()?.get().dtype(),
        DType::Double
    );
    Ok(())
}

/// `mse_loss` is defined in TorchScript, `conv2d` calls another operator, `batch_norm` has five results within.
#[test]
fn composites_run_too() -> Result<(), Error> {
    let ops = ops();
    let x = counting(&ops, &[2, 2]);
    assert_eq!(elements(&x.mse_loss(&(&x + 2)?).call()?), [4.0]);
    let image = counting(&ops, &[1, 1, 3, 3]);
    let kernel = ops.ones([1, 1, 2, 2]).call()?;
    assert_eq!(elements(&image.conv2d(&kernel).call()?), [8.0, 12.0, 20.0, 24.0]);
    assert_eq!(
        image.conv2d(&kernel).padding([1, 1]).stride(2).call()?.sizes(),
        [1, 1, 2, 2]
    );
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error_that_lists_what_would() {
    let ops = ops();
    let x = counting(&ops, &[2]);
    let message = x.relu().alpha(2).call().expect_err("relu has no alpha").to_string();
    assert!(message.contains("aten::relu(Tensor self) -> Tensor"), "{message}");
    let message = x
        .softmax("one")
        .call()
        .expect_err("a dimension is no string")
        .to_string();
    assert!(message.contains("no overload takes these arguments"), "{message}");
    let message = ops.start("aten::nope").call().expect_err("there is none").to_string();
    assert_eq!(message, "there is no operator `aten::nope`");
    let message = (&x + &counting(&ops, &[3])).expect_err("sizes differ").to_string();
    assert!(message.contains("must match the size"), "{message}");
    assert!(x.split(1).call().is_err(), "a list is not one tensor");
}

#[test]
fn views_share_memory_and_in_place_methods_write_it() -> Result<(), Error> {
    let ops = ops();
    let x = counting(&ops, &[2, 3]);
    let column = x.at((.., 1))?;
    column.mul_(10).call()?;
    assert_eq!(elements(&x), [0.0, 10.0, 2.0, 3.0, 40.0, 5.0]);
    x.set_at((0, 1..), -1.0)?;
    assert_eq!(elements(&x), [0.0, -1.0, -1.0, 3.0, 40.0, 5.0]);
    x.t_().call()?;
    assert_eq!(x.sizes(), [3, 2]);
    Ok(())
}

/// The results are those of the same expressions in Python.
#[test]
fn indices_mean_what_they_mean_in_python() -> Result<(), Error> {
    let ops = ops();
    let x = counting(&ops, &[2, 3, 4]);
    let shape = |var: Var| var.sizes();
    assert_eq!(shape(x.at(1)?), [3, 4]);
    assert_eq!(shape(x.at((Index::Ellipsis, -1))?), [2, 3]);
    assert_eq!(
        shape(x.at((Index::NewAxis, .., 1..3, Index::NewAxis, 0))?),
        [1, 2, 2, 1]
    );
    assert_eq!(elements(&x.at((1, .., 0))?), [12.0, 16.0, 20.0]);
    assert_eq!(elements(&x.at((0, 0, Index::Slice(None, None, 2)))?), [0.0, 2.0]);
    let rows = ops.from_vec::<LongElement>(vec![2, 0], &[2])?;
    assert_eq!(elements(&x.at((0, &rows, 1))?), [9.0, 1.0]);
    let mask = x.gt(20).call()?;
    assert_eq!(elements(&x.at(&mask)?), [21.0, 22.0, 23.0]);
    x.set_at(&mask, 0.0)?;
    assert_eq!(elements(&x.sum().call()?), [(0..=20).sum::<i64>() as f64]);
    assert!(x.at((0, 0, 0, 0)).is_err());
    assert!(x.at(2).is_err());
    Ok(())
}

#[test]
fn numbers_stand_on_both_sides() -> Result<(), Error> {
    let ops = ops();
    let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 4.0], &[3])?);
    assert_eq!(elements(&(1.0 - &x)?), [0.0, -1.0, -3.0]);
    assert_eq!(elements(&(8.0 / &x)?), [8.0, 4.0, 2.0]);
    assert_eq!(elements(&((&x % 3)? * 2)?), [2.0, 4.0, 2.0]);
    assert_eq!(elements(&(-&x)?), [-1.0, -2.0, -4.0]);
    let longs = ops.from_vec::<LongElement>(vec![6, 3], &[2])?;
    assert_eq!((&longs & 3)?.get().to_i64_vec(), [2, 3]);
    assert_eq!((&longs / 2)?.get().dtype(), DType::Float);
    assert_eq!((&longs * 2.5)?.get().dtype(), DType::Float);
    Ok(())
}

#[test]
fn memory_goes_in_and_out_without_being_copied() -> Result<(), Error> {
    let ops = ops();
    let data = vec![1.0f32, 2.0, 3.0, 4.0];
    let address = data.as_ptr();
    let x = ops.from_vec::<FloatElement>(data, &[2, 2])?;
    let elements = Elements::of::<FloatElement>(&x.get())?;
    assert_eq!(elements.as_slice().map(<[f32]>::as_ptr), Some(address));
    x.add_(1).call()?;
    assert_eq!(elements.as_slice(), Some(&[1.0, 2.0, 3.0, 4.0][..]), "a snapshot");
    assert_eq!(x.get().to_vec::<f32>(), [2.0, 3.0, 4.0, 5.0]);
    let transposed = Elements::of::<FloatElement>(&x.t().call()?.get())?;
    assert_eq!(transposed.as_slice(), None);
    assert!(Elements::of::<LongElement>(&x.get()).is_err());
    assert!(ops.from_vec::<FloatElement>(vec![0.0; 3], &[2, 2]).is_err());
    Ok(())
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_keep_their_strides() -> Result<(), Error> {
    let ops = ops();
    let array = ndarray::Array2::from_shape_fn((2, 3), |(i, j)| (3 * i + j) as f32);
    let address = array.as_ptr();
    let x = ops.from_array::<FloatElement, _>(array.clone())?;
    assert_eq!(elements(&x), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let moved = ops.from_array::<FloatElement, _>(array)?;
    let seen = Elements::of::<FloatElement>(&moved.get())?;
    assert_eq!(seen.view().map(|v| v.as_ptr()), Some(address));
    let transposed = Elements::of::<FloatElement>(&x.t().call()?.get())?;
    let view = transposed.view().expect("strides are no hindrance");
    assert_eq!((view.shape(), view[[2, 1]]), (&[3, 2][..], 5.0));
    Ok(())
}

/// Calls cache preparations for later calls. Each call here needs other preparations than the previous one; comments have the results of PyTorch 2.15.
#[test]
fn calls_of_other_kinds_get_what_they_ask_for() {
    let ops = ops();
    let f = |data: &[f32], sizes: &[i64]| ops.var(Tensor::from_f32(data, sizes).unwrap());
    let i = |data: &[i64], sizes: &[i64]| ops.var(Tensor::from_i64(data, sizes).unwrap());
    type Sum = (Var, Var, DType, Vec<i64>, Vec<f64>);
    let pairs: Vec<Sum> = vec![
        (f(&[1.5], &[1]), f(&[2.0], &[1]), DType::Float, vec![1], vec![3.5]),
        (i(&[3], &[1]), i(&[4], &[1]), DType::Long, vec![1], vec![7.0]),
        (i(&[3], &[]), f(&[0.5], &[1]), DType::Float, vec![1], vec![3.5]),
        (f(&[0.5], &[]), i(&[3, 4], &[2]), DType::Float, vec![2], vec![3.5, 4.5]),
        (
            i(&[3], &[1, 1]),
            i(&[4, 5], &[2]),
            DType::Long,
            vec![1, 2],
            vec![7.0, 8.0],
        ),
        (
            i(&[4, 5], &[2]),
            i(&[3], &[1, 1]),
            DType::Long,
            vec![1, 2],
            vec![7.0, 8.0],
        ),
        (
            f(&[1.0, 2.0], &[2, 1]),
            f(&[10.0, 20.0], &[2]),
            DType::Float,
            vec![2, 2],
            vec![11.0, 21.0, 12.0, 22.0],
        ),
        (
            f(&[1.0, 2.0], &[1, 2]),
            f(&[10.0, 20.0], &[1, 2]),
            DType::Float,
            vec![1, 2],
            vec![11.0, 22.0],
        ),
        (f(&[], &[0]), f(&[1.0], &[1]), DType::Float, vec![0], vec![]),
    ];
    // Numbers are compiled in, and there are more of them than are cached.
    let long: Vec<f32> = (0..3000).map(|n| n as f32).collect();
    let long = f(&long, &[3000]);
    for round in 0..3 {
        for (a, b, dtype, sizes, data) in &pairs {
            let sum = a.add(b).call().unwrap().get();
            assert_eq!(
                (sum.dtype(), sum.sizes(), sum.to_f64_vec()),
                (*dtype, &sizes[..], data.clone())
            );
        }
        for n in 0..7 {
            let n = f64::from(n + round);
            assert_eq!((&pairs[0].0 + n).unwrap().to_vec(), [1.5 + n]);
            assert_eq!((&pairs[0].0 + -n).unwrap().to_vec(), [1.5 - n]);
        }
        let sum = long.add(&long).alpha(2).call().unwrap().to_vec();
        assert!(sum.iter().enumerate().all(|(n, s)| *s == 3.0 * n as f64));
        // Strided operands, and writes after a call.
        let x = f(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
        let t = x.t().call().unwrap();
        assert_eq!(x.add(&t).call().unwrap().to_vec(), [2.0, 5.0, 5.0, 8.0]);
        x.mul_(2).call().unwrap();
        assert_eq!(x.add(&t).call().unwrap().to_vec(), [4.0, 10.0, 10.0, 16.0]);
        let message = pairs[6]
            .1
            .add(f(&[1.0; 3], &[3]))
            .call()
            .expect_err("sizes do not fit")
            .to_string();
        assert!(message.contains("must match the size of tensor b (3)"), "{message}");
    }
}

#[test]
fn threads_that_call_one_operator_do_not_meet() {
    let ops = ops();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let ops = ops.clone();
            scope.spawn(move || {
                for n in 0..500 {
                    let x = ops.var(Tensor::from_f32(&[n as f32, thread as f32], &[2]).unwrap());
                    let y = (&x * &x).unwrap().selu().call().unwrap();
                    let scale = 1.050_700_9_f32;
                    let wanted = [(n * n) as f32 * scale, (thread * thread) as f32 * scale];
                    assert!(
                        y.to_vec()
                            .iter()
                            .zip(wanted)
                            .all(|(a, b)| (a - f64::from(b)).abs() <= f64::from(b) * 1e-6)
                    );
                }
            });
        }
    });
}

#[test]
fn calls_that_were_made_before_do_the_same() -> Result<(), Error> {
    let ops = ops();
    // The first call of a kind makes preparations for later ones.
    for round in 1..=3 {
        let x = counting(&ops, &[2, 3]);
        let row = x.at(1)?;
        row.add_(&row).call()?;
        assert_eq!(elements(&x), [0.0, 1.0, 2.0, 6.0, 8.0, 10.0], "round {round}");
        x.t().call()?.mul_(-1.0).call()?;
        assert_eq!(elements(&row), [-6.0, -8.0, -10.0]);
        // A snapshot exists while its storage is written.
        let before = x.get().to_f64_vec();
        let detached = x.detach().call()?;
        x.relu_().call()?;
        assert_eq!(elements(&detached), vec![0.0; 6]);
        assert_ne!(before, elements(&x));
        assert_eq!(elements(&x.add(1).call()?.sum().call()?), [6.0]);
        let twice = x.add(1).call()?.mm(counting(&ops, &[3, 2])).call()?;
        assert_eq!(elements(&twice), [6.0, 9.0, 6.0, 9.0]);

        let counts = ops.var(Tensor::from_i64(&[4, 0], &[2])?);
        let refused = [
            counts.add_(counting(&ops, &[2])).call(),
            counts.add_(ops.var(Tensor::from_i64(&[1, 2, 3, 4], &[2, 2])?)).call(),
            counts.remainder(&counts).call(),
        ];
        assert!(refused.iter().all(Result::is_err), "round {round}: {refused:?}");
        assert_eq!(counts.get().to_i64_vec(), [4, 0]);
    }
    Ok(())
}

#[test]
fn one_value_may_be_written_where_elements_share_memory() -> Result<(), Error> {
    let ops = ops();
    for _ in 0..2 {
        let x = counting(&ops, &[3, 1]);
        let wide = x.expand([2, 3, 4]).call()?;
        // PyTorch: `fill_` and `zero_` write, all others refuse.
        assert!(wide.add_(1).call().is_err());
        wide.at(0)?.fill_(7).call()?;
        assert_eq!(elements(&x), [7.0; 3]);
        wide.zero_().call()?;
        assert_eq!(elements(&x), [0.0; 3]);
    }
    Ok(())
}
