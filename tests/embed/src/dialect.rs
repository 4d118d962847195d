//! The dialect: a type of images, their pixels, and scaling.

use frazil::ir::schema::CatalogueError;
use frazil::runtime::Registry;
use frazil::runtime::pointwise::{Pointwise, Promotion};

/// `Image` is an opaque type: a class that no text defines.
const SCHEMAS: &str = "\
toy::pixels(__torch__.torch.classes.toy.Image image) -> Tensor
toy::scale(Tensor self, float by) -> Tensor";

const SCALE: Pointwise = Pointwise::new(&["self"], Promotion::IntToFloat, |b| b.x(0) * b.scalar("by"));

/// Adds the dialect. `toy::pixels` has no semantics: programs with it can be transformed, and cannot be run.
///
/// # Errors
/// When the schemas do not parse.
pub fn register(registry: &mut Registry) -> Result<(), CatalogueError> {
    registry.add_schemas(SCHEMAS)?;
    registry.pointwise("toy::scale", SCALE);
    Ok(())
}
