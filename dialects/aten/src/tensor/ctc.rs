//! Connectionist temporal classification (CTC): a recursion over time steps and labels, whose program would be too
//! long.

use frazil_runtime::Tensor;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};

pub(super) const ENTRIES: &[Row] = &[("aten::ctc_loss", Entry::kernel(ctc_loss))];

fn raised<T>(message: String) -> Result<T, OpError> {
    Err(OpError::raised(message))
}

/// Returns the lengths, one per sequence, in argument `index`, which is a tensor or a list.
fn lengths(call: &Call<'_>, index: usize, name: &str, batch: usize) -> Result<Vec<i64>, OpError> {
    let lengths = match call.tensor(index) {
        Ok(tensor) if tensor.dtype().is_floating_point() => return raised(format!("{name} must be integral")),
        Ok(tensor) => tensor.to_i64_vec(),
        Err(_) => call.ints(index)?,
    };
    if lengths.len() != batch {
        return raised(format!("{name} must be of size batch_size"));
    }
    Ok(lengths)
}

fn ctc_loss(call: &Call<'_>) -> Result<Results, OpError> {
    let (log_probs, targets) = (call.tensor(0)?, call.tensor(1)?);
    let (blank, reduction, zero_infinity) = (call.int(4)?, call.int(5)?, call.flag(6)?);
    let (steps, batch, classes) = match *log_probs.sizes() {
        [steps, batch, classes] => (steps, batch, classes),
        [steps, classes] => (steps, 1, classes),
        _ => return raised("log_probs must have 2 or 3 dimensions".to_owned()),
    };
    if !log_probs.dtype().is_floating_point() {
        let dtype = log_probs.dtype().type_name();
        return raised(format!("\"ctc_loss_cpu\" not implemented for '{dtype}'"));
    }
    if targets.dtype().is_floating_point() {
        return raised("targets must be integral".to_owned());
    }
    if !(0..classes).contains(&blank) {
        return raised("blank must be in label range".to_owned());
    }
    let inputs = lengths(call, 2, "input_lengths", batch as usize)?;
    let wanted = lengths(call, 3, "target_lengths", batch as usize)?;
    let place = "(while checking arguments for ctc_loss_allocate_outputs)";
    for &length in &inputs {
        if length < 0 {
            return raised(format!(
                "Expected input_lengths to have value at least 0, but got value {length} {place}"
            ));
        }
        if length > steps {
            return raised(format!(
                "Expected input_lengths to have value at most {steps}, but got value {length} {place}"
            ));
        }
    }
    if let Some(length) = wanted.iter().find(|&&length| length < 0) {
        return raised(format!(
            "Expected target_lengths to have value at least 0, but got value {length} {place}"
        ));
    }
    let values = log_probs.to_f64_vec();
    let labels = targets.to_i64_vec();
    let mut losses = Vec::with_capacity(wanted.len());
    let mut start = 0usize;
    for (n, (&input, &length)) in inputs.iter().zip(&wanted).enumerate() {
        let length = length as usize;
        let first = match *targets.sizes() {
            [_, width] if length as i64 <= width => n * width as usize,
            [_] => start,
            _ => labels.len(),
        };
        start += length;
        let Some(target) = labels.get(first..first.saturating_add(length)) else {
            return raised(format!(
                "Expected tensor to have size at least {length} at dimension {}, but got size {} for argument #2 'targets' (while checking arguments for ctc_loss_cpu)",
                targets.dim().saturating_sub(1),
                targets.sizes().last().copied().unwrap_or(0)
            ));
        };
        if target.iter().any(|label| !(0..classes).contains(label)) {
            return raised("index out of range in self".to_owned());
        }
        // Returns the log-probabilities of all classes for sequence `n` at a time step.
        let row = |step: usize| &values[(step * batch as usize + n) * classes as usize..][..classes as usize];
        let loss = negative_log_likelihood(input as usize, target, blank as usize, row);
        losses.push(if zero_infinity && loss == f64::INFINITY {
            0.0
        } else {
            loss
        });
    }
    let (losses, sizes) = match reduction {
        0 if log_probs.dim() == 2 => (losses, vec![]),
        0 => (losses, vec![batch]),
        1 => {
            let scaled = losses.iter().zip(&wanted).map(|(loss, &n)| loss / n.max(1) as f64);
            (vec![scaled.sum::<f64>() / losses.len() as f64], vec![])
        }
        _ => (vec![losses.iter().sum()], vec![]),
    };
    one(Tensor::from_elements::<DoubleElement>(&losses, &sizes)?.to_dtype(log_probs.dtype())?)
}

/// Returns -log of the probability that `steps` classes, after removal of repetitions and blanks, are `target`. The states of the recursion are the labels,
/// with blanks around them.
fn negative_log_likelihood<'v>(steps: usize, target: &[i64], blank: usize, row: impl Fn(usize) -> &'v [f64]) -> f64 {
    let states = 2 * target.len() + 1;
    if steps == 0 {
        return if target.is_empty() { 0.0 } else { f64::INFINITY };
    }
    let class = |state: usize| match state % 2 {
        0 => blank,
        _ => target[state / 2] as usize,
    };
    let mut scores: Vec<f64> = (0..states)
        .map(|state| {
            if state < 2 {
                row(0)[class(state)]
            } else {
                f64::NEG_INFINITY
            }
        })
        .collect();
    for step in 1..steps {
        let now = row(step);
        // From the end, since a state reads those before it as they were.
        for state in (0..states).rev() {
            let mut from = [scores[state], f64::NEG_INFINITY, f64::NEG_INFINITY];
            if state > 0 {
                from[1] = scores[state - 1];
            }
            if state > 1 && class(state) != class(state - 2) {
                from[2] = scores[state - 2];
            }
            scores[state] = log_sum(&from) + now[class(state)];
        }
    }
    -log_sum(&scores[states.saturating_sub(2)..])
}

/// Computes log Σ exp(x) over `values`.
fn log_sum(values: &[f64]) -> f64 {
    let largest = values.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
    if largest == f64::NEG_INFINITY {
        return if values.iter().any(|x| x.is_nan()) {
            f64::NAN
        } else {
            largest
        };
    }
    largest + values.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
}
