//! The integers of all forms: an expression for each, or a table with a value for each point.

use super::error::RangeError;
use super::fit::{Expr, Fitter};
use super::form::{Column, Form};
use super::grid::Grid;
use crate::aot::EmitFileError;
use crate::backend::CompileError;
use std::collections::HashMap;

/// Maximum size of all tables of a library, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// An integer of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An expression in the sizes.
    Expr(Expr),
    /// The element of the current point in the table with this index.
    Table(usize),
}

/// The integers of a form.
#[derive(Debug)]
pub struct FormValues {
    /// The distinct integers.
    pub values: Vec<Value>,
    /// For each column of the form, the index in `values` of its integer.
    pub of_columns: Vec<usize>,
}

/// A table with one element per point of the grid. Forms can share a table, because each point belongs to exactly one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Size of an element in bytes. Elements of 1, 2 or 4 bytes are unsigned integers, those of 8 bytes are signed.
    pub width: usize,
    values: Vec<i64>,
}

impl Table {
    /// Appends the elements to `out`, little-endian.
    pub fn write(&self, out: &mut Vec<u8>) {
        for value in &self.values {
            out.extend(value.to_le_bytes().iter().take(self.width));
        }
    }
}

/// Returns the smallest size of an element that can represent `value`, in bytes.
fn width(value: i64) -> usize {
    match value {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Returns the integers of `forms`, and the tables for the integers that no expression fits.
///
/// # Errors
/// If the tables are too large, or a limit is exceeded.
pub fn fit(forms: &[Form], grid: &Grid) -> Result<(Vec<FormValues>, Vec<Table>), EmitFileError> {
    let mut tables: Vec<Table> = Vec::new();
    let mut all = Vec::with_capacity(forms.len());
    for form in forms {
        let sizes = form.points.iter().map(|&point| grid.sizes(point as usize));
        let fitter = Fitter::new(sizes.collect());
        let mut values = Vec::new();
        let mut known: HashMap<&Column, usize> = HashMap::new();
        let mut unfitted: Vec<(usize, usize, &[i64])> = Vec::new();
        let mut of_columns = Vec::with_capacity(form.columns.len());
        for column in &form.columns {
            let index = *known.entry(column).or_insert(values.len());
            of_columns.push(index);
            if index < values.len() {
                continue;
            }
            frazil_limits::check().map_err(CompileError::from)?;
            values.push(match column {
                Column::Constant(value) => Value::Expr(Expr::constant(*value)),
                Column::Values(elements) => fitter.fit(elements).map_or_else(
                    || {
                        let widths = elements.iter().map(|v| width(*v));
                        unfitted.push((widths.max().unwrap_or(1), index, elements));
                        // Replaced below.
                        Value::Table(0)
                    },
                    Value::Expr,
                ),
            });
        }
        // Tables with wide elements first, so that those of other forms with wide elements use the same.
        unfitted.sort_by_key(|(width, ..)| std::cmp::Reverse(*width));
        for (number, (width, index, elements)) in unfitted.into_iter().enumerate() {
            if number == tables.len() {
                let values = vec![0; grid.points()];
                tables.push(Table { width: 1, values });
            }
            if let (Some(table), Some(value)) = (tables.get_mut(number), values.get_mut(index)) {
                table.width = table.width.max(width);
                *value = Value::Table(number);
                for (&point, &element) in form.points.iter().zip(elements) {
                    if let Some(place) = table.values.get_mut(point as usize) {
                        *place = element;
                    }
                }
            }
        }
        let bytes: usize = tables.iter().map(|t| t.width * t.values.len()).sum();
        if bytes > MOST_BYTES {
            let most = MOST_BYTES;
            return Err(RangeError::LargeTables { bytes, most }.into());
        }
        all.push(FormValues { values, of_columns });
    }
    Ok((all, tables))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aot::range::grid::SizeRange;
    use frazil_limits::{Budget, Limits, Phase};
    use std::time::Duration;

    #[test]
    fn fitting_ends_at_a_limit() {
        let range = SizeRange {
            name: "N".to_owned(),
            low: 1,
            high: 2,
        };
        let grid = Grid::new(vec![range]).unwrap();
        let form = Form {
            calls: Vec::new(),
            kernels: Vec::new(),
            points: vec![0, 1],
            columns: vec![Column::Values(vec![3, 5])],
        };
        assert!(fit(std::slice::from_ref(&form), &grid).is_ok());
        let mut limits = Limits::NONE;
        limits.compile_time = Some(Duration::ZERO);
        let _entered = Budget::new(&limits, Phase::Compile).enter();
        let error = fit(&[form], &grid).unwrap_err();
        assert!(
            matches!(error, EmitFileError::Compile(CompileError::Exceeded(_))),
            "{error}"
        );
    }
}
