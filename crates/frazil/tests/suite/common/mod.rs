//! Shared functions of the tests of the language.

#[path = "../../../../torchscript/tests/suite/common/listing.rs"]
pub mod listing;

/// Returns the programs of a topic: `### NAME`, source, and calls as comments, whose results are recorded in a file beside it.
pub fn programs(text: &str) -> Vec<(String, String)> {
    let parts = text
        .split("\n### ")
        .map(|part| part.strip_prefix("### ").unwrap_or(part));
    parts
        .map(|part| {
            let (name, source) = part.split_once('\n').unwrap_or((part, ""));
            (name.trim().to_owned(), format!("{}\n", source.trim_end()))
        })
        .collect()
}

/// Returns a graph as text without the defaults of NamedTuples' fields, which are not part of our types.
pub fn without_defaults(text: &str) -> String {
    let mut out = String::new();
    let mut open = Vec::new();
    let mut skipping = false;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open.push(text[..at].ends_with("NamedTuple")),
            ')' => skipping &= !open.pop().unwrap_or(false),
            ',' => skipping = false,
            ' ' if open.last() == Some(&true) && text[at..].starts_with(" = ") => skipping = true,
            _ => {}
        }
        if !skipping {
            out.push(c);
        }
    }
    out
}

/// Returns a listing with constants moved to their uses: PyTorch's order of constants at the head of a graph depends on its passes.
pub fn without_constants(listing: &[String]) -> Vec<String> {
    use std::collections::HashMap;
    let mut names: HashMap<String, String> = HashMap::new();
    let mut count = 0;
    let mut out = Vec::new();
    for line in listing {
        // Values are defined before ` = ` or in a head `(...):`, and used after it.
        let mut replaced = String::new();
        let mut rest = line.as_str();
        let constant = line
            .split_once(" = prim::Constant")
            .map(|(head, value)| (head.trim().to_owned(), value));
        if let Some((head, value)) = constant
            && let Some((name, ty)) = head.split_once(" : ")
        {
            let value = value.trim_end_matches("()");
            names.insert(name.to_owned(), format!("<{ty}{value}>"));
            continue;
        }
        while let Some(at) = rest.find('%') {
            replaced.push_str(&rest[..at]);
            let tail = &rest[at..];
            let end = tail[1..]
                .find(|c: char| !c.is_ascii_digit())
                .map_or(tail.len(), |end| end + 1);
            let name = names.entry(tail[..end].to_owned()).or_insert_with(|| {
                count += 1;
                format!("%{}", count - 1)
            });
            replaced.push_str(name);
            rest = &tail[end..];
        }
        replaced.push_str(rest);
        out.push(replaced);
    }
    out
}
