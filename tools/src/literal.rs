//! Values on the command line, as in `--input '[1, 2]'`: the literals of Python, tensors of zeros or ones, and files.

use crate::Failure;
use crate::npy::read_npy;
use crate::shape::InputShape;
use frazil_ir::DType;
use frazil_recorded::value::{dict, list};
use frazil_runtime::element::DoubleElement;
use frazil_runtime::{Scalar, Tensor, Value};
use num_complex::Complex64;
use std::path::PathBuf;
use std::str::FromStr;

/// A value as it is written on the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `None`, or `null`.
    None,
    /// `true`, `False`, ...
    Bool(bool),
    /// `3`
    Int(i64),
    /// `2.5`, `1e-3`, `inf`
    Float(f64),
    /// `2j`, `1+2j`
    Complex(Complex64),
    /// `"text"`, `'text'`
    Str(String),
    /// `[1, 2]`
    List(Vec<Literal>),
    /// `(1, 2)`
    Tuple(Vec<Literal>),
    /// `{"a": 1}`
    Dict(Vec<(Literal, Literal)>),
    /// `zeros:2x3:int64`, `ones:2`
    Fill(f64, InputShape),
    /// `tensor([[1, 2], [3, 4]], dtype=float32)`
    Tensor(Box<Literal>, Option<DType>),
    /// `x.npy`
    File(PathBuf),
}

/// Nested deeper, a literal is refused.
const MAX_DEPTH: usize = 64;

impl FromStr for Literal {
    type Err = String;

    fn from_str(text: &str) -> Result<Literal, String> {
        let text = text.trim();
        let mut parser = Parser { rest: text, depth: 0 };
        let parsed = parser.value(false).and_then(|value| match parser.rest.trim_start() {
            "" => Ok(value),
            rest => Err(format!("`{rest}` is left over")),
        });
        // Whatever looks like nothing else is a path.
        let is_path = !text.starts_with(['[', '(', '{', '"', '\'']) && !is_tensor(text);
        match parsed {
            Err(_) if is_path && !text.is_empty() => Ok(Literal::File(text.into())),
            other => other,
        }
    }
}

/// Whether the text starts as a tensor is written.
fn is_tensor(text: &str) -> bool {
    ["zeros:", "ones:", "tensor("]
        .iter()
        .any(|start| text.starts_with(start))
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl Parser<'_> {
    fn takes(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        match (self.takes(c), self.rest) {
            (true, _) => Ok(()),
            (false, "") => Err(format!("`{c}` is missing at the end")),
            (false, rest) => Err(format!("expected `{c}` before `{rest}`")),
        }
    }

    /// The error where a container goes on without a comma, or does not end.
    fn missing(&mut self, close: char) -> String {
        self.rest = self.rest.trim_start();
        match self.rest {
            "" => format!("`{close}` is missing at the end"),
            rest => format!("expected `,` before `{rest}`"),
        }
    }

    /// A value; before a colon, if it is the key of a dictionary.
    fn value(&mut self, is_key: bool) -> Result<Literal, String> {
        self.rest = self.rest.trim_start();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep"));
        }
        let value = match self.rest.chars().next() {
            None => Err("a value is missing".to_owned()),
            Some('[') => self.items('[', ']').map(|(items, _)| Literal::List(items)),
            Some('(') => self
                .items('(', ')')
                .map(|(mut items, comma)| match (items.len(), comma) {
                    (1, false) => items.remove(0),
                    _ => Literal::Tuple(items),
                }),
            Some('{') => self.dict(),
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some(_) if self.rest.starts_with("tensor(") => self.tensor(),
            Some(_) => {
                let end = |c: char| matches!(c, ',' | ']' | ')' | '}') || c.is_whitespace() || (is_key && c == ':');
                let (word, rest) = self.rest.split_at(self.rest.find(end).unwrap_or(self.rest.len()));
                self.rest = rest;
                of_word(word)
            }
        };
        self.depth -= 1;
        value
    }

    /// Values between brackets, and whether a comma comes after the last one.
    fn items(&mut self, open: char, close: char) -> Result<(Vec<Literal>, bool), String> {
        self.expect(open)?;
        let (mut items, mut comma) = (Vec::new(), false);
        while !self.takes(close) {
            if !items.is_empty() && !comma {
                return Err(self.missing(close));
            }
            items.push(self.value(false)?);
            comma = self.takes(',');
        }
        Ok((items, comma))
    }

    fn dict(&mut self) -> Result<Literal, String> {
        self.expect('{')?;
        let (mut entries, mut comma) = (Vec::new(), true);
        while !self.takes('}') {
            if !comma {
                return Err(self.missing('}'));
            }
            let key = self.value(true)?;
            if !matches!(
                key,
                Literal::Str(_) | Literal::Int(_) | Literal::Float(_) | Literal::Bool(_) | Literal::Complex(_)
            ) {
                return Err("a key is a string or a number".to_owned());
            }
            self.expect(':')?;
            entries.push((key, self.value(false)?));
            comma = self.takes(',');
        }
        Ok(Literal::Dict(entries))
    }

    fn string(&mut self, quote: char) -> Result<Literal, String> {
        let mut out = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.rest = &self.rest[at + c.len_utf8()..];
                return Ok(Literal::Str(out));
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some(c @ ('\\' | '\'' | '"')) => out.push(c),
                Some(c) => {
                    return Err(format!(
                        "`\\{c}` is no escape that is known: \\n \\t \\r \\0 \\\\ \\' \\\""
                    ));
                }
                None => break,
            }
        }
        Err(format!("the string {} does not end", self.rest))
    }

    fn tensor(&mut self) -> Result<Literal, String> {
        self.rest = self.rest.strip_prefix("tensor").unwrap_or(self.rest);
        self.expect('(')?;
        let elements = self.value(false)?;
        let mut dtype = None;
        if self.takes(',') {
            self.rest = self.rest.trim_start();
            let text = self
                .rest
                .strip_prefix("dtype=")
                .ok_or("only `dtype=` may follow the elements of a tensor")?;
            let (name, rest) = text.split_at(text.find(')').unwrap_or(text.len()));
            let name = name.trim().trim_start_matches("torch.");
            dtype = Some(DType::from_python_name(name).ok_or_else(|| format!("`{name}` is not a dtype"))?);
            self.rest = rest;
        }
        self.expect(')')?;
        Ok(Literal::Tensor(Box::new(elements), dtype))
    }
}

/// A value that is one word.
fn of_word(word: &str) -> Result<Literal, String> {
    for (prefix, value) in [("zeros:", 0.0), ("ones:", 1.0)] {
        if let Some(shape) = word.strip_prefix(prefix) {
            let shape = shape.parse::<InputShape>().map_err(|e| e.to_string())?;
            return Ok(Literal::Fill(value, shape));
        }
    }
    match word {
        "None" | "none" | "null" => return Ok(Literal::None),
        "True" | "true" => return Ok(Literal::Bool(true)),
        "False" | "false" => return Ok(Literal::Bool(false)),
        _ => {}
    }
    let integer = word.strip_prefix('+').unwrap_or(word).parse();
    if let Ok(n) = integer {
        return Ok(Literal::Int(n));
    }
    if let Some(number) = float(word) {
        return Ok(Literal::Float(number));
    }
    if let Some(number) = complex(word) {
        return Ok(Literal::Complex(number));
    }
    match word.ends_with(".npy") {
        true => Ok(Literal::File(word.into())),
        false => Err(format!(
            "`{word}` is no value: strings are written in quotes, and tensors as zeros:2x3 or FILE.npy"
        )),
    }
}

/// A number, `inf` or `nan`.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let starts = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (starts || matches!(unsigned, "inf" | "nan")).then(|| text.parse().ok())?
}

/// `2j`, `1+2j`, `1e-3-2.5j`
fn complex(text: &str) -> Option<Complex64> {
    let number = text.strip_suffix('j')?;
    if let Some(im) = float(number) {
        return Some(Complex64::new(0.0, im));
    }
    let sign = number.rfind(['+', '-']).filter(|&at| at > 0)?;
    let sign = match number[..sign].ends_with(['e', 'E']) {
        true => number[..sign].rfind(['+', '-']).filter(|&at| at > 0)?,
        false => sign,
    };
    Some(Complex64::new(float(&number[..sign])?, float(&number[sign..])?))
}

impl Literal {
    /// The value.
    ///
    /// # Errors
    /// When a file cannot be read, or the elements of a tensor do not fit.
    pub fn value(&self) -> Result<Value, Failure> {
        let all = |items: &[Literal]| items.iter().map(Literal::value).collect::<Result<Vec<_>, _>>();
        let failed = |e: frazil_runtime::TensorError| Failure::Other(e.to_string());
        Ok(match self {
            Literal::None => Value::None,
            Literal::Bool(b) => Value::Bool(*b),
            Literal::Int(i) => Value::Int(*i),
            Literal::Float(f) => Value::Float(*f),
            Literal::Complex(c) => Value::Complex(*c),
            Literal::Str(text) => Value::str(text),
            Literal::List(items) => list(all(items)?),
            Literal::Tuple(items) => Value::tuple(all(items)?),
            Literal::Dict(entries) => {
                let entries = entries.iter().map(|(key, value)| Ok((key.value()?, value.value()?)));
                dict(entries.collect::<Result<_, Failure>>()?)
            }
            Literal::Fill(value, shape) => {
                let value = Scalar::Float(*value);
                Tensor::full(shape.dtype, &shape.sizes, value).map_err(failed)?.into()
            }
            Literal::Tensor(elements, dtype) => tensor(elements, *dtype)?.into(),
            Literal::File(path) => read_npy(path)
                .map_err(|failure| match failure {
                    Failure::Io { .. } if !path.exists() => Failure::Other(format!(
                        "{failure}; an input is a literal (3, 2.5, '\"text\"', true, None, '[1, 2]', '{{\"a\": zeros:2}}'), a tensor (zeros:2x3, ones:2:int64) \
                         or a .npy file"
                    )),
                    other => other,
                })?
                .into(),
        })
    }
}

/// The tensor of nested lists of numbers; as `torch.tensor` finds it, its dtype is that of its elements.
fn tensor(elements: &Literal, dtype: Option<DType>) -> Result<Tensor, Failure> {
    let mut sizes = Vec::new();
    let mut at = elements;
    while let Literal::List(items) = at {
        sizes.push(items.len() as i64);
        match items.first() {
            Some(first) => at = first,
            None => break,
        }
    }
    let mut numbers = Vec::new();
    if !collect(elements, &sizes, &mut numbers) {
        return Err(Failure::Other(
            "the elements of a tensor are numbers in nested lists of equal lengths".to_owned(),
        ));
    }
    let has = |kind: fn(&Literal) -> bool| numbers.iter().any(|n| kind(n));
    let found = if has(|n| matches!(n, Literal::Complex(_))) {
        DType::ComplexFloat
    } else if numbers.is_empty() || has(|n| matches!(n, Literal::Float(_))) {
        DType::Float
    } else if has(|n| matches!(n, Literal::Int(_))) {
        DType::Long
    } else {
        DType::Bool
    };
    let made = if found.is_complex() {
        let parts = |n: &&Literal| match n {
            Literal::Complex(c) => [c.re, c.im],
            other => [real(other), 0.0],
        };
        let bytes: Vec<u8> = numbers.iter().flat_map(parts).flat_map(f64::to_le_bytes).collect();
        Tensor::from_bytes(DType::ComplexDouble, &sizes, &bytes)
    } else if found.is_floating_point() {
        let numbers: Vec<f64> = numbers.iter().map(|n| real(n)).collect();
        Tensor::from_elements::<DoubleElement>(&numbers, &sizes)
    } else {
        let integer = |n: &&Literal| match n {
            Literal::Int(i) => *i,
            other => i64::from(**other == Literal::Bool(true)),
        };
        Tensor::from_i64(&numbers.iter().map(integer).collect::<Vec<_>>(), &sizes)
    };
    let made = made.and_then(|t| t.to_dtype(dtype.unwrap_or(found)));
    made.map_err(|e| Failure::Other(e.to_string()))
}

fn real(number: &Literal) -> f64 {
    match number {
        Literal::Int(i) => *i as f64,
        Literal::Float(f) => *f,
        Literal::Bool(true) => 1.0,
        _ => 0.0,
    }
}

/// Collects the numbers in row-major order; false when they do not have these sizes.
fn collect<'l>(elements: &'l Literal, sizes: &[i64], out: &mut Vec<&'l Literal>) -> bool {
    match (elements, sizes.split_first()) {
        (Literal::List(items), Some((&size, inner))) => {
            items.len() as i64 == size && items.iter().all(|item| collect(item, inner, out))
        }
        (Literal::Int(_) | Literal::Float(_) | Literal::Bool(_) | Literal::Complex(_), None) => {
            out.push(elements);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Literal {
        text.parse()
            .unwrap_or_else(|e: String| Literal::Str(format!("error: {e}")))
    }

    #[test]
    fn words_are_what_python_reads() {
        assert_eq!(parsed("3"), Literal::Int(3));
        assert_eq!(parsed(" -7 "), Literal::Int(-7));
        assert_eq!(parsed("2.5"), Literal::Float(2.5));
        assert_eq!(parsed("1e-3"), Literal::Float(1e-3));
        assert_eq!(parsed("-inf"), Literal::Float(f64::NEG_INFINITY));
        assert!(matches!(parsed("nan"), Literal::Float(f) if f.is_nan()));
        assert_eq!(parsed("true"), Literal::Bool(true));
        assert_eq!(parsed("False"), Literal::Bool(false));
        assert_eq!(parsed("None"), Literal::None);
        assert_eq!(parsed("1e-3-2.5j"), Literal::Complex(Complex64::new(1e-3, -2.5)));
        assert_eq!(parsed("2j"), Literal::Complex(Complex64::new(0.0, 2.0)));
        assert_eq!(parsed("'a\"\\n'"), Literal::Str("a\"\n".into()));
        assert_eq!(parsed("infinity.npy"), Literal::File("infinity.npy".into()));
        assert_eq!(parsed("dir with space/x"), Literal::File("dir with space/x".into()));
    }

    #[test]
    fn containers_nest() {
        let ints = |items: &[i64]| items.iter().map(|&i| Literal::Int(i)).collect::<Vec<_>>();
        assert_eq!(parsed("[1, 2,]"), Literal::List(ints(&[1, 2])));
        assert_eq!(parsed("[]"), Literal::List(Vec::new()));
        assert_eq!(parsed("(1,)"), Literal::Tuple(ints(&[1])));
        assert_eq!(parsed("(1)"), Literal::Int(1));
        assert_eq!(parsed("()"), Literal::Tuple(Vec::new()));
        let shape = InputShape {
            dtype: DType::Long,
            sizes: vec![2],
        };
        let entries = vec![
            (Literal::Str("a".into()), Literal::Fill(0.0, shape)),
            (Literal::Int(1), Literal::List(vec![Literal::File("x.npy".into())])),
        ];
        assert_eq!(parsed("{\"a\": zeros:2:int64, 1: [x.npy]}"), Literal::Dict(entries));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("[1, 2", "`]` is missing"),
            ("[1 2]", "expected `,` before `2]`"),
            ("{1 2}", "expected `:`"),
            ("{[1]: 2}", "a key is"),
            ("\"a", "does not end"),
            ("[a]", "strings are written in quotes"),
            ("zeros:axb", "is not an extent"),
            ("[1] 2", "`2` is left over"),
            ("", "a value is missing"),
            ("tensor([1], size=3)", "only `dtype=`"),
        ] {
            let error = text.parse::<Literal>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!("[".repeat(100_000).parse::<Literal>().is_err());
    }

    #[test]
    fn tensors_have_the_dtype_of_their_elements() {
        for (text, dtype, sizes) in [
            ("tensor([[1, 2], [3, 4]])", DType::Long, &[2, 2][..]),
            ("tensor([1., 2])", DType::Float, &[2]),
            ("tensor(True)", DType::Bool, &[]),
            ("tensor([1+2j])", DType::ComplexFloat, &[1]),
            ("tensor([1, 2], dtype=torch.float16)", DType::Half, &[2]),
            ("tensor([])", DType::Float, &[0]),
            ("tensor([[], []])", DType::Float, &[2, 0]),
        ] {
            let tensor = parsed(text).value().ok().and_then(|v| v.as_tensor()).expect(text);
            assert_eq!((tensor.dtype(), tensor.sizes()), (dtype, sizes), "{text}");
        }
        assert!(parsed("tensor([[1], [2, 3]])").value().is_err());
    }
}
