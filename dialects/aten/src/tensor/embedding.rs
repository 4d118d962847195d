//! Embeddings (lookup of table rows by index) and one-hot encoding.

use frazil_ir::DType;
use frazil_runtime::elements::Join;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::memory;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::{Scalar, Tensor};

pub(super) const ENTRIES: &[Row] = &[
    ("aten::embedding_bag", Entry::kernel(embedding_bag).fixed_sizes()),
    ("aten::one_hot", Entry::kernel(one_hot)),
];

/// Computes the sum (0), mean (1) or maximum (2) of the rows of each bag. Bags start at `offsets`.
fn embedding_bag(call: &Call<'_>) -> Result<Results, OpError> {
    let (weight, indices, offsets) = (
        call.tensor(0)?,
        call.tensor(1)?.to_i64_vec(),
        call.tensor(2)?.to_i64_vec(),
    );
    let (mode, include_last) = (call.int(4)?, call.flag(7)?);
    let padding = if call.args.len() > 8 { call.opt_int(8)? } else { None };
    let [rows, width] = weight.sizes() else {
        return Err(OpError::raised("'weight' must be 2-D"));
    };
    if let Some(given) = padding.filter(|p| !(-rows..*rows).contains(p)) {
        return Err(OpError::raised(format!(
            "padding_idx must be within the number of embeddings, -{rows} through {}, but got {given}",
            rows - 1
        )));
    }
    let padding = padding.map(|p| if p < 0 { p + rows } else { p });
    let scale = call.opt_tensor(6)?.map(|t| t.to_f64_vec());
    let table = weight.to_f64_vec();
    let bags = offsets.len().saturating_sub(usize::from(include_last));
    let total = Tensor::byte_size(DType::Double, &[bags as i64, *width])? / size_of::<f64>();
    let mut out = memory::with_capacity(total)?;
    let mut bag_of = memory::filled(indices.len(), 0i64)?;
    if let Some(&first) = offsets.first()
        && first != 0
    {
        return Err(OpError::raised(format!(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {first}"
        )));
    }
    if let Some(&last) = offsets.last()
        && last > indices.len() as i64
    {
        return Err(OpError::raised(format!(
            "offsets[-1] can not be greater than input's length {} but got offsets[-1] of {last}",
            indices.len()
        )));
    }
    let ordered = offsets.is_sorted();
    let (mut bag_sizes, mut max_indices) = (Vec::new(), Vec::new());
    for b in 0..bags {
        let (start, end) = match (ordered, mode) {
            (false, 2) => started(&offsets, b, indices.len() as i64)?,
            _ => {
                let end = offsets.get(b + 1).copied();
                (offsets[b], end.unwrap_or(indices.len() as i64))
            }
        };
        if start < 0 || end < start || end > indices.len() as i64 {
            return Err(OpError::raised(
                "offsets have to be non-decreasing and inside of the indices",
            ));
        }
        let mut sum = vec![if mode == 2 { f64::NEG_INFINITY } else { 0.0 }; *width as usize];
        let mut best = vec![0i64; *width as usize];
        let mut count = 0;
        for at in start as usize..end as usize {
            let i = indices[at];
            bag_of[at] = b as i64;
            if !(0..*rows).contains(&i) {
                return Err(OpError::raised("index out of range in self"));
            }
            if Some(i) == padding {
                continue;
            }
            count += 1;
            let factor = scale.as_ref().and_then(|s| s.get(at).copied()).unwrap_or(1.0);
            for (j, total) in sum.iter_mut().enumerate() {
                let x = table[i as usize * *width as usize + j];
                if mode == 2 {
                    if x > *total {
                        (*total, best[j]) = (x, i);
                    }
                } else {
                    *total += x * factor;
                }
            }
        }
        if mode == 1 && count > 0 {
            sum.iter_mut().for_each(|s| *s /= f64::from(count));
        }
        if mode == 2 && count == 0 {
            sum.fill(0.0);
        }
        bag_sizes.push(i64::from(count));
        max_indices.extend(best);
        out.extend(sum);
    }
    let sizes = [bags as i64, *width];
    let out =
        Tensor::from_elements::<frazil_runtime::element::DoubleElement>(&out, &sizes)?.to_dtype(weight.dtype())?;
    let max = if mode == 2 {
        Tensor::from_i64(&max_indices, &sizes)?
    } else {
        Tensor::from_i64(&[], &[0])?
    };
    Ok(smallvec::smallvec![
        out.into(),
        Tensor::from_i64(&bag_of, &[bag_of.len() as i64])?.into(),
        Tensor::from_i64(&bag_sizes, &[bags as i64])?.into(),
        max.into(),
    ])
}

/// Returns the range of indices of bag `b` for the maximum, where offsets may be unsorted. The bag of an index is one less than the number of offsets that are
/// at most the index.
fn started(offsets: &[i64], b: usize, indices: i64) -> Result<(i64, i64), OpError> {
    if offsets.iter().any(|o| !(0..=indices).contains(o)) {
        return Err(OpError::raised("index out of range in self"));
    }
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    Ok((sorted[b], sorted.get(b + 1).copied().unwrap_or(indices)))
}

fn one_hot(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if t.dtype() != DType::Long {
        return Err(OpError::raised(
            "one_hot is only applicable to index tensor of type LongTensor.",
        ));
    }
    let classes = t.to_i64_vec();
    if classes.iter().any(|&c| c < 0) {
        return Err(OpError::raised("Class values must be non-negative."));
    }
    let needed = classes.iter().max().map_or(0, |m| m.saturating_add(1));
    let n = match call.int(1)? {
        -1 if classes.is_empty() => {
            return Err(OpError::raised(
                "Can not infer total number of classes from empty tensor.",
            ));
        }
        -1 => needed,
        n if n < needed => return Err(OpError::raised("Class values must be smaller than num_classes.")),
        n => n,
    };
    let mut sizes = t.sizes().to_vec();
    sizes.push(n);
    let out = Tensor::zeros(DType::Long, &sizes)?;
    let positions: Vec<i64> = (0..).zip(&classes).map(|(i, c)| i * n + c).collect();
    out.put_(
        &positions,
        &Tensor::full(DType::Long, &[positions.len() as i64], Scalar::Int(1))?,
        Join::Replace,
    )?;
    one(out)
}
