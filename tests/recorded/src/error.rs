//! Errors of recorded cases.

use frazil_runtime::TensorError;
use safetensors::SafeTensorError;
use std::path::PathBuf;

/// A recorded case, or a value of one, that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// A file or folder that could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// A file that is not JSON, or not the JSON of a case.
    #[error("{path} is not a case: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
    /// A case with a missing or invalid member.
    #[error("{case}: {what}")]
    Case {
        /// The case, or its file.
        case: String,
        /// What was expected.
        what: String,
    },
    /// A file that is not in the `.safetensors` format.
    #[error("cannot read the tensors of {path}: {source}")]
    Tensors {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: SafeTensorError,
    },
    /// A tensor that the file does not have.
    #[error("the case asks for tensor `{0}`, which is not in its .safetensors file")]
    MissingTensor(String),
    /// Tensors that were written together with other results.
    #[error("the tensors beside it belong to another file: their checksum is {found}, expected {said}")]
    OtherTensors {
        /// The checksum in the JSON.
        said: String,
        /// The checksum of the tensors.
        found: String,
    },
    /// A dtype that has no counterpart.
    #[error("tensor `{0}` has dtype {1}, which cannot be read or written")]
    DType(String, String),
    /// A tensor that cannot be created.
    #[error("tensor `{name}`: {source}")]
    Tensor {
        /// The name of the tensor.
        name: String,
        /// The reason.
        #[source]
        source: TensorError,
    },
    /// JSON that is not a value.
    #[error("expected a value such as {{\"int\": 3}}, found {0}")]
    Value(String),
    /// A value without a written form (an object, a function).
    #[error("a result of type {0} cannot be written")]
    Unwritable(&'static str),
}
