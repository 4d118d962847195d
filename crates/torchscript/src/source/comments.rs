//! Signatures in comments, as in PEP 484 for Python 2: `# type: (Tensor, int) -> Tensor`.

use ruff_python_ast::StmtFunctionDef;
use ruff_text_size::{Ranged, TextSize};

use super::file::SourceFile;
use crate::error::Result;

/// The types in the type comments of a function's signature.
pub(crate) struct Comments {
    /// The type of each parameter, without `self`.
    pub(crate) parameters: Vec<String>,
    /// The return type.
    pub(crate) returns: String,
}

/// Returns the types in comments between the head of `def` and its body, if there are any.
pub(crate) fn signature(file: &SourceFile, def: &StmtFunctionDef) -> Result<Option<Comments>> {
    let start = def.parameters.start();
    let end = def.body.first().map_or(def.end(), Ranged::start);
    let head = text_between(file, start, end);
    if !head.contains("# type:") {
        return Ok(None);
    }
    let lines: Vec<&str> = head
        .lines()
        .filter_map(|line| line.split_once("# type:").map(|(_, ty)| ty.trim()))
        .filter(|ty| !ty.starts_with("ignore"))
        .collect();
    let Some((last, singles)) = lines.split_last() else {
        return Ok(None);
    };
    let wrong = |message: &str| file.error("type-comment", message, &def.name);
    let Some((parameters, returns)) = last.rsplit_once("->") else {
        return Err(wrong("Return type line '# type: (...) -> ...' not found on multiline type annotation").into());
    };
    let parameters = parameters.trim();
    let inner = parameters
        .strip_prefix('(')
        .and_then(|p| p.strip_suffix(')'))
        .ok_or_else(|| wrong("a type comment must be `# type: (...) -> ...`"))?;
    let parameters: Vec<String> = if inner.trim() == "..." {
        singles.iter().map(|ty| ty.trim_end_matches(',').to_owned()).collect()
    } else {
        split_top_level(inner)
    };
    let count = def.parameters.iter_non_variadic_params().count();
    let has_self = def
        .parameters
        .iter_non_variadic_params()
        .next()
        .is_some_and(|first| first.parameter.name.as_str() == "self");
    let count = count - usize::from(has_self);
    if parameters.len() != count {
        let message = format!(
            "Number of type annotations ({}) did not match the number of function parameters ({count})",
            parameters.len()
        );
        return Err(wrong(&message).into());
    }
    Ok(Some(Comments {
        parameters,
        returns: returns.trim().to_owned(),
    }))
}

fn text_between(file: &SourceFile, start: TextSize, end: TextSize) -> &str {
    file.text.get(start.to_usize()..end.to_usize()).unwrap_or_default()
}

/// Splits the text of a list at its outermost commas.
fn split_top_level(list: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let (mut depth, mut begin) = (0usize, 0usize);
    for (at, c) in list.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(list.get(begin..at).unwrap_or_default().trim().to_owned());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list.get(begin..).unwrap_or_default().trim().to_owned());
    parts.retain(|part| !part.is_empty());
    parts
}
