//! Templates of modules: source with placeholders, and the shapes of its arguments.
//!
//! A template is a file of Python source that defines `net`. Lines of comments describe it:
//!
//! ```text
//! # for WIDTH: 64 | 256          each value is put in the place of {WIDTH}
//! # size ROWS: 1 2 17            sizes of dimensions of inputs
//! # input: ROWS {WIDTH}          an argument: the sizes of a tensor, in order
//! # input: 2*ROWS 8 int64        likewise, with a product as a size, and another element type than float32
//! ```
//!
//! There is a module for each combination of values, and a call for each combination of sizes.

use frazil_ir::DType;

/// A module to be planned, and the arguments of its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The values that were put into the source, for messages.
    pub values: String,
    /// The source.
    pub source: String,
    /// The element types and sizes of the tensors of each call.
    pub calls: Vec<Vec<(DType, Vec<i64>)>>,
}

/// A name with the texts that it may stand for.
type Choice<'t> = (&'t str, Vec<&'t str>);

/// Returns the modules of a template.
///
/// # Errors
/// If a description is malformed; the error says which one.
pub fn instances(text: &str) -> Result<Vec<Instance>, String> {
    let (mut values, mut sizes, mut inputs) = (Vec::<Choice<'_>>::new(), Vec::<Choice<'_>>::new(), Vec::new());
    for line in text.lines() {
        let Some((key, rest)) = line.strip_prefix("# ").and_then(|l| l.split_once(':')) else {
            continue;
        };
        match key.split_once(' ') {
            Some(("for", name)) => values.push((name, rest.split(" | ").map(str::trim).collect())),
            Some(("size", name)) => sizes.push((name, rest.split_whitespace().collect())),
            None if key == "input" => inputs.push(rest),
            _ => {}
        }
    }
    if inputs.is_empty() {
        return Err("there is no line `# input: SIZES`".to_owned());
    }
    let instance = |chosen: Vec<(&str, &str)>| {
        let filled = |text: &str| {
            let fill = |text: String, (name, value): &(&str, &str)| text.replace(&format!("{{{name}}}"), value);
            chosen.iter().fold(text.to_owned(), fill)
        };
        let inputs: Vec<String> = inputs.iter().map(|input| filled(input)).collect();
        let calls = combinations(&sizes).into_iter();
        let calls = calls.map(|sizes| inputs.iter().map(|input| argument(input, &sizes)).collect());
        Ok(Instance {
            values: chosen.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(", "),
            source: filled(text),
            calls: calls.collect::<Result<_, String>>()?,
        })
    };
    combinations(&values).into_iter().map(instance).collect()
}

/// Returns all combinations with one text for each name.
fn combinations<'t>(choices: &[Choice<'t>]) -> Vec<Vec<(&'t str, &'t str)>> {
    let mut found = vec![Vec::new()];
    for (name, texts) in choices {
        let with = |before: &Vec<(&'t str, &'t str)>, text: &'t str| {
            let mut with = before.clone();
            with.push((*name, text));
            with
        };
        found = found
            .iter()
            .flat_map(|before| texts.iter().map(|text| with(before, text)))
            .collect();
    }
    found
}

/// Returns the element type and the sizes of the tensor that `text` describes.
fn argument(text: &str, sizes: &[(&str, &str)]) -> Result<(DType, Vec<i64>), String> {
    let (mut dtype, mut shape) = (DType::Float, Vec::new());
    for word in text.split_whitespace() {
        match word {
            "int64" => dtype = DType::Long,
            "bool" => dtype = DType::Bool,
            word => shape
                .push(product(word, sizes).ok_or_else(|| format!("`{word}` is neither a size nor an element type"))?),
        }
    }
    Ok((dtype, shape))
}

/// Returns the product of sizes: `2*ROWS`.
fn product(text: &str, sizes: &[(&str, &str)]) -> Option<i64> {
    let number = |factor: &str| {
        let named = sizes.iter().find(|(name, _)| *name == factor);
        named.map_or(factor, |(_, size)| *size).parse::<i64>().ok()
    };
    text.split('*')
        .try_fold(1_i64, |product, factor| product.checked_mul(number(factor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_module_for_each_combination() {
        let text = "# for ACT: relu | gelu('tanh')\n# for W: 8 | 16\n# size N: 1 3\n# input: N {W}\n# input: 2*N 2 int64\nnet = {ACT}({W})\n";
        let found = instances(text).unwrap();
        let sources: Vec<&str> = found.iter().map(|i| i.source.lines().last().unwrap()).collect();
        assert_eq!(
            sources,
            [
                "net = relu(8)",
                "net = relu(16)",
                "net = gelu('tanh')(8)",
                "net = gelu('tanh')(16)"
            ]
        );
        assert_eq!(found[1].values, "relu, 16");
        let call = |n| vec![(DType::Float, vec![n, 16]), (DType::Long, vec![2 * n, 2])];
        assert_eq!(found[1].calls, [call(1), call(3)]);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(instances("net = 1\n").unwrap_err().contains("# input"));
        assert!(instances("# input: N 3\n").unwrap_err().contains("`N`"));
    }
}
