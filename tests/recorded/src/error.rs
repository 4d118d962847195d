//! Errors of recorded cases.

use frazil_runtime::TensorError;
use safetensors::SafeTensorError;
use std::path::PathBuf;

/// The reason why a recorded case, or a value of one, cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A file is not JSON, or not the JSON of a case.
    #[error("{path} is not a case: {source}")]
    Json {
        /// The path of the file.
        path: PathBuf,
        /// The error in the JSON.
        #[source]
        source: serde_json::Error,
    },
    /// A member of a case is missing or invalid.
    #[error("{case}: {what}")]
    Case {
        /// The name of the case, or of its file.
        case: String,
        /// A description of the expected member.
        what: String,
    },
    /// A file is not in the `.safetensors` format.
    #[error("cannot read the tensors of {path}: {source}")]
    Tensors {
        /// The path of the file.
        path: PathBuf,
        /// The error in the format.
        #[source]
        source: SafeTensorError,
    },
    /// The file of tensors does not contain a tensor that the JSON names.
    #[error("the case asks for tensor `{0}`, which is not in its .safetensors file")]
    MissingTensor(String),
    /// The file of tensors was written together with other results than the JSON.
    #[error("the tensors beside it belong to another file: their checksum is {found}, expected {said}")]
    OtherTensors {
        /// The checksum of the tensors that the JSON contains.
        said: String,
        /// The actual checksum of the tensors.
        found: String,
    },
    /// A tensor has a dtype that cannot be read from, or written to, `.safetensors` files.
    #[error("tensor `{0}` has dtype {1}, which cannot be read or written")]
    DType(String, String),
    /// A tensor of the file cannot be created.
    #[error("tensor `{name}`: {source}")]
    Tensor {
        /// The name of the tensor.
        name: String,
        /// The reason why the tensor cannot be created.
        #[source]
        source: TensorError,
    },
    /// A JSON value does not represent a value of a program.
    #[error("expected a value such as {{\"int\": 3}}, found {0}")]
    Value(String),
    /// A value has no JSON representation: an object or a function.
    #[error("a result of type {0} cannot be written")]
    Unwritable(&'static str),
}
