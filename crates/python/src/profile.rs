//! Profiles: the time of each kernel of a compiled method.

use crate::graph::escaped;
use frazil::Profile;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The time of each kernel in a call, the slowest first. Notebooks show it as a table; ``str()`` is the same as text.
#[pyclass(frozen, module = "frazil", name = "Profile")]
pub(crate) struct ProfileTable(pub(crate) Profile);

impl ProfileTable {
    fn seconds(&self) -> f64 {
        self.0.rows.iter().map(|row| row.time.as_secs_f64()).sum()
    }
}

#[pymethods]
impl ProfileTable {
    /// Number of runs that were measured.
    #[getter]
    fn runs(&self) -> u32 {
        self.0.runs
    }

    /// Seconds in kernels per run, on average.
    #[getter]
    fn total_seconds(&self) -> f64 {
        self.seconds()
    }

    /// Returns one dict for each kernel: ``kernel``, ``calls`` of it in a run, their ``seconds``, ``flops``, the minimum of ``bytes`` that they read and write,
    /// and the ``operators`` that they compute.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let row = |row: &frazil::ProfileRow| {
            let out = PyDict::new(py);
            out.set_item("kernel", &row.kernel)?;
            out.set_item("calls", row.calls)?;
            out.set_item("seconds", row.time.as_secs_f64())?;
            out.set_item("flops", row.flops)?;
            out.set_item("bytes", row.bytes)?;
            out.set_item("operators", &row.origins)?;
            Ok(out)
        };
        PyList::new(py, self.0.rows.iter().map(row).collect::<PyResult<Vec<_>>>()?)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (count, milliseconds) = (self.0.rows.len(), self.seconds() * 1e3);
        format!("<frazil.Profile of {count} kernels, {milliseconds:.3} ms>")
    }

    fn _repr_html_(&self) -> String {
        let total = self.seconds().max(1e-12);
        let row = |row: &frazil::ProfileRow| {
            let seconds = row.time.as_secs_f64();
            format!(
                "<tr><td>{:.1}</td><td>{:.1} %</td><td>{}</td><td>{:.1}</td><td style=\"text-align:left\">{}</td><td style=\"text-align:left\">{}</td></tr>",
                seconds * 1e6,
                100.0 * seconds / total,
                row.calls,
                row.flops as f64 / seconds.max(1e-12) / 1e9,
                escaped(&row.kernel),
                escaped(&row.origins.join(", "))
            )
        };
        let rows: String = self.0.rows.iter().map(row).collect();
        format!(
            "<table><caption>{:.3} ms in kernels, mean of {} runs</caption><tr><th>µs</th><th>share</th><th>calls</th><th>GFLOP/s</th><th>kernel</th><th>operators</th></tr>{rows}</table>",
            total * 1e3,
            self.0.runs
        )
    }
}
