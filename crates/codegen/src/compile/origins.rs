//! The operators that a kernel computes, in texts of the kernel: as locations of MLIR, and as comments. Objects do not contain them, so the cache of objects does
//! not depend on them.

use frazil_tensor_ir::Origin;
use melior::Context;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{BlockLike, Location, Module, RegionLike};

/// Returns the location of the kernel `name` that computes `origins`: for each operator its name, at its place in the source. Several operators are
/// fused.
fn location<'c>(context: &'c Context, name: &str, origins: &[Origin]) -> Location<'c> {
    let places: Vec<Location<'c>> = origins.iter().map(|origin| operator(context, origin)).collect();
    match places.as_slice() {
        [] => Location::unknown(context),
        [place] => *place,
        places => Location::fused(context, places, StringAttribute::new(context, name).into()),
    }
}

fn operator<'c>(context: &'c Context, origin: &Origin) -> Location<'c> {
    let place = origin.source.as_deref().and_then(place);
    let place = match place {
        Some((file, line, column)) => Location::new(context, file, line, column),
        None => Location::unknown(context),
    };
    Location::name(context, &origin.operator, place)
}

/// Splits the place `file:line:column`; `None` for other text.
fn place(source: &str) -> Option<(&str, usize, usize)> {
    let mut parts = source.rsplitn(3, ':');
    let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((parts.next()?, line, column))
}

/// Sets the location of all operations of a module to that of the kernel `name` that computes `origins`.
pub(super) fn locate<'c>(context: &'c Context, module: &mut Module<'c>, name: &str, origins: &[Origin]) {
    set_locations(&mut module.as_operation_mut(), location(context, name, origins));
}

/// Sets the location of an operation, and of all operations in it, to `location`.
fn set_locations<'c>(operation: &mut OperationRefMut<'c, '_>, location: Location<'c>) {
    operation.set_location(location);
    for region in operation.regions() {
        let mut next_block = region.first_block();
        while let Some(block) = next_block {
            let mut next = block.first_operation_mut();
            while let Some(mut inner) = next {
                set_locations(&mut inner, location);
                next = inner.next_in_block_mut();
            }
            next_block = block.next_in_region();
        }
    }
}

/// Returns a comment with the operators that the kernel `name` computes; nothing if they are unknown. `mark` begins comments.
pub(super) fn comment(mark: &str, name: &str, origins: &[Origin]) -> String {
    if origins.is_empty() {
        return String::new();
    }
    let operators: Vec<String> = origins.iter().map(Origin::to_string).collect();
    // A file name may contain the end of a line.
    let operators = operators.join(", ").replace(char::is_control, " ");
    format!("{mark} {name}: {operators}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn origin(operator: &str, source: Option<&str>) -> Origin {
        Origin {
            operator: operator.into(),
            source: source.map(Arc::from),
        }
    }

    #[test]
    fn places_are_split_from_the_end() {
        assert_eq!(place("net.py:7:15"), Some(("net.py", 7, 15)));
        assert_eq!(place("C:/a:b.py:7:15"), Some(("C:/a:b.py", 7, 15)));
        for other in ["", "net.py", "net.py:7", "net.py:7:x", "7:15"] {
            assert_eq!(place(other), None, "{other}");
        }
    }

    #[test]
    fn locations_name_operators_and_places() {
        let context = Context::new();
        let text = |origins: &[Origin]| location(&context, "kernel", origins).to_string();
        let (add, relu) = (origin("aten::add", Some("net.py:7:15")), origin("aten::relu", None));
        assert_eq!(text(&[]), "loc(unknown)");
        assert_eq!(text(std::slice::from_ref(&add)), "loc(\"aten::add\"(\"net.py\":7:15))");
        assert_eq!(
            text(&[add, relu]),
            "loc(fused<\"kernel\">[\"aten::add\"(\"net.py\":7:15), \"aten::relu\"])"
        );
    }

    #[test]
    fn comments_have_one_line() {
        let origins = [origin("aten::add", Some("a\nb.py:1:2")), origin("aten::relu", None)];
        assert_eq!(
            comment("#", "kernel", &origins),
            "# kernel: aten::add (a b.py:1:2), aten::relu\n"
        );
        assert_eq!(comment("#", "kernel", &[]), "");
    }
}
