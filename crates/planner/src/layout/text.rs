//! The choice of layouts as text, for `--emit=layout`.

use super::Layouts;
use frazil_runtime::structured::TensorId;
use frazil_tensor_ir::TensorGraph;
use frazil_tensor_ir::pattern::Class;
use std::fmt::Write;

/// Returns a line for each loop nest of `graph`, and for each other tensor that is not stored in row-major order.
///
/// ```text
/// %4 conv float32[1, 64, 112, 112] blocked 1x64x112x112
/// %9 pointwise float32[8, 512] rows %7, %8, %9 over 1 loop
/// %12 concat float32[1, 96, 28, 28] blocked 1x96x28x28, from channel 32 of %15
/// ```
pub fn text(graph: &TensorGraph, layouts: &Layouts) -> String {
    let mut out = String::new();
    for id in graph.live_ids() {
        let class = layouts.classes.get(&id);
        let places = places(layouts, id);
        if class.is_none() && places.is_empty() {
            continue;
        }
        let shape = graph.shape(id);
        let class = class.map_or("tensor", class_name);
        let dtype = shape.dtype.python_name();
        // Writing to a string cannot fail.
        let _ = write!(out, "{id} {class} {dtype}{:?}", shape.sizes.as_slice());
        let separated = places.join(", ");
        let _ = writeln!(out, "{}{separated}", if places.is_empty() { "" } else { " " });
    }
    out
}

fn class_name(class: &Class) -> &'static str {
    match class {
        Class::Conv(_) => "conv",
        Class::Gemm(_) => "gemm",
        Class::Pool(_) => "pool",
        Class::Concat(_) => "concat",
        Class::Pointwise => "pointwise",
        Class::General => "general",
    }
}

/// Describes where and how a tensor is stored. Returns nothing for a tensor in a row-major buffer of its own.
fn places(layouts: &Layouts, id: TensorId) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(images) = layouts.blocked.get(&id) {
        let (b, c, h, w) = (images.batch, images.channels, images.height, images.width);
        found.push(format!("blocked {b}x{c}x{h}x{w}"));
    }
    if let Some(inside) = layouts.inside.get(&id) {
        let unit = if layouts.blocked.contains_key(&id) {
            "channel"
        } else {
            "element"
        };
        found.push(format!("from {unit} {} of {}", inside.from, inside.parent));
    }
    if let Some(group) = layouts.rows.get(&id) {
        let members: Vec<String> = group.members.iter().map(ToString::to_string).collect();
        let plural = if group.outer == 1 { "" } else { "s" };
        found.push(format!("rows {} over {} loop{plural}", members.join(", "), group.outer));
    }
    if layouts.unread.contains(&id) {
        found.push("not stored".to_owned());
    }
    found
}
