//! What the tests of the language share.

#[path = "../../../../torchscript/tests/suite/common/listing.rs"]
pub mod listing;

/// The programs of a topic: `### NAME`, source, and calls as comments, which are recorded beside.
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

/// A graph as text without the defaults of NamedTuples' fields, which are no part of the types here.
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

/// A listing without its constants, which stand where they are used instead: PyTorch's order at a graph's head follows its passes.
pub fn without_constants(listing: &[String]) -> Vec<String> {
    use std::collections::HashMap;
    let mut names: HashMap<String, String> = HashMap::new();
    let mut count = 0;
    let mut out = Vec::new();
    for line in listing {
        // Values are defined in front of ` = ` or in a head `(...):`, and used behind.
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
