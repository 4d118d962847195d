//! What the fuzz targets do with an input. They panic when something is wrong. `tests/tests/suite/fuzz_targets.rs` runs them too, so that they are compiled and
//! tried on a few inputs with everything else.

pub mod archive;
pub mod capi;
pub mod choices;
pub mod files;
pub mod interp;
pub mod memory;
pub mod package;
pub mod pipelines;
pub mod program;
pub mod roundtrip;
pub mod source;
pub mod tensors;
pub mod text;

use frazil_ir::Context;
use frazil_ir::schema::Catalogue;
use std::sync::Arc;

/// A context and the catalogue of all operators, fresh for every input: names that one input brings must not pile up.
pub fn catalogue() -> (Arc<Context>, Catalogue) {
    const SCHEMAS: [&str; 2] = [
        // All of the tensor operators would take longer to read than any input.
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
aten::relu(Tensor self) -> Tensor
aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor
aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor
aten::size.int(Tensor self, int dim) -> int
aten::cat(Tensor[] tensors, int dim=0) -> Tensor
",
        include_str!("../../../dialects/prim/src/schemas.txt"),
    ];
    let ctx = Arc::new(Context::new());
    let mut catalogue = Catalogue::new(Arc::clone(&ctx));
    SCHEMAS.iter().for_each(|text| catalogue.add_lines(text));
    (ctx, catalogue)
}
