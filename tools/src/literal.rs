//! Values on the command line, as in `--input '[1, 2]'`: Python literals, tensors of zeros or ones, and files.

use crate::Failure;
use crate::npy::read_npy;
use crate::shape::InputShape;
use frazil_ir::DType;
use frazil_recorded::value::{dict, list};
use frazil_runtime::element::DoubleElement;
use frazil_runtime::{Scalar, Tensor, Value};
use num_complex::Complex64;
use ruff_python_ast::{DictItem, Expr, ExprCall, ExprNumberLiteral, Number, Operator, UnaryOp};
use std::path::PathBuf;
use std::str::FromStr;

/// A parsed value from the command line.
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

/// Maximum nesting of lists, tuples and dictionaries in a value.
const MAX_DEPTH: usize = 64;

impl FromStr for Literal {
    type Err = String;

    fn from_str(text: &str) -> Result<Literal, String> {
        let text = text.trim();
        let parsed = as_python(text).and_then(|python| {
            let expression = ruff_python_parser::parse_expression(&python).map_err(|e| e.error.to_string())?;
            of_expression(expression.expr())
        });
        // Any other text is a path.
        let is_value = text.starts_with(['[', '(', '{', '"', '\''])
            || ["zeros:", "ones:", "tensor("]
                .iter()
                .any(|start| text.starts_with(start));
        match parsed {
            Err(_) if !is_value && !text.is_empty() => Ok(Literal::File(text.into())),
            other => other,
        }
    }
}

/// Rewrites notations that are not Python as calls: `zeros:2x3` becomes `zeros("2x3")`, and `x.npy` becomes `file("x.npy")`.
fn as_python(text: &str) -> Result<String, String> {
    let (mut out, mut rest, mut depth) = (String::new(), text, 0usize);
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '"' | '\'' => string_length(rest, c),
            '[' | '(' | '{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(format!("it is nested more than {MAX_DEPTH} deep"));
                }
                1
            }
            ']' | ')' | '}' => {
                depth = depth.saturating_sub(1);
                1
            }
            ',' | ':' | '=' => 1,
            c if c.is_whitespace() => c.len_utf8(),
            _ => {
                let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | ')' | '}');
                let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
                let fill = ["zeros", "ones"]
                    .into_iter()
                    .find_map(|name| Some((name, word.strip_prefix(name)?.strip_prefix(':')?)));
                if let Some((name, shape)) = fill {
                    out += &call(name, shape);
                    rest = &rest[word.len()..];
                    continue;
                }
                let word = &word[..word.find([':', '(', '[', '{', '"', '\'', '=']).unwrap_or(word.len())];
                if word.ends_with(".npy") {
                    out += &call("file", word);
                    rest = &rest[word.len()..];
                    continue;
                }
                word.len()
            }
        };
        out += &rest[..len];
        rest = &rest[len..];
    }
    Ok(out)
}

fn call(name: &str, argument: &str) -> String {
    format!("{name}(\"{}\")", argument.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the length in bytes of the string literal at the start of `text`; the whole length if the literal does not end.
fn string_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, c)| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

fn of_expression(expression: &Expr) -> Result<Literal, String> {
    let all = |items: &[Expr]| items.iter().map(of_expression).collect::<Result<Vec<_>, _>>();
    match expression {
        Expr::NoneLiteral(_) => Ok(Literal::None),
        Expr::BooleanLiteral(value) => Ok(Literal::Bool(value.value)),
        Expr::StringLiteral(text) => Ok(Literal::Str(text.value.to_str().to_owned())),
        Expr::NumberLiteral(number) => match &number.value {
            Number::Int(i) => i
                .as_i64()
                .map(Literal::Int)
                .ok_or_else(|| format!("`{i}` does not fit 64 bits")),
            Number::Float(f) => Ok(Literal::Float(*f)),
            Number::Complex { real, imag } => Ok(Literal::Complex(Complex64::new(*real, *imag))),
        },
        Expr::Name(name) => match name.id.as_str() {
            "none" | "null" => Ok(Literal::None),
            "true" => Ok(Literal::Bool(true)),
            "false" => Ok(Literal::Bool(false)),
            "inf" => Ok(Literal::Float(f64::INFINITY)),
            "nan" => Ok(Literal::Float(f64::NAN)),
            word => Err(format!(
                "`{word}` is no value: strings are written in quotes, and tensors as zeros:2x3 or FILE.npy"
            )),
        },
        Expr::List(list) => Ok(Literal::List(all(&list.elts)?)),
        Expr::Tuple(tuple) => Ok(Literal::Tuple(all(&tuple.elts)?)),
        Expr::Dict(dict) => {
            let entry = |item: &DictItem| match item.key.as_ref().map(of_expression).transpose()? {
                Some(
                    key @ (Literal::Str(_)
                    | Literal::Int(_)
                    | Literal::Float(_)
                    | Literal::Bool(_)
                    | Literal::Complex(_)),
                ) => Ok((key, of_expression(&item.value)?)),
                _ => Err("a key is a string or a number".to_owned()),
            };
            Ok(Literal::Dict(
                dict.items.iter().map(entry).collect::<Result<_, String>>()?,
            ))
        }
        Expr::UnaryOp(unary) => match (unary.op, &*unary.operand) {
            // The least integer has no positive counterpart.
            (
                UnaryOp::USub,
                Expr::NumberLiteral(ExprNumberLiteral {
                    value: Number::Int(i), ..
                }),
            ) => format!("-{i}")
                .parse()
                .map(Literal::Int)
                .map_err(|_| format!("`-{i}` does not fit 64 bits")),
            (sign, operand) => match (sign, of_expression(operand)?) {
                (UnaryOp::USub, Literal::Float(f)) => Ok(Literal::Float(-f)),
                (UnaryOp::USub, Literal::Complex(c)) => Ok(Literal::Complex(-c)),
                (UnaryOp::UAdd, number @ (Literal::Int(_) | Literal::Float(_) | Literal::Complex(_))) => Ok(number),
                _ => Err(NO_LITERAL.to_owned()),
            },
        },
        // A complex number is the sum of a real number and an imaginary one.
        Expr::BinOp(sum) => match (of_expression(&sum.left)?, sum.op, of_expression(&sum.right)?) {
            (
                re @ (Literal::Int(_) | Literal::Float(_)),
                sign @ (Operator::Add | Operator::Sub),
                Literal::Complex(c),
            ) => {
                let im = if sign == Operator::Add { c.im } else { -c.im };
                Ok(Literal::Complex(Complex64::new(real(&re), im)))
            }
            _ => Err(NO_LITERAL.to_owned()),
        },
        Expr::Call(call) => of_call(call),
        _ => Err(NO_LITERAL.to_owned()),
    }
}

const NO_LITERAL: &str = "expected a literal of Python, zeros:2x3, ones:2x3 or FILE.npy";

fn of_call(call: &ExprCall) -> Result<Literal, String> {
    let name = call.func.as_name_expr().map_or("", |name| name.id.as_str());
    match (name, &*call.arguments.args, &*call.arguments.keywords) {
        ("zeros" | "ones", [Expr::StringLiteral(shape)], []) => {
            let shape = shape.value.to_str().parse::<InputShape>().map_err(|e| e.to_string())?;
            Ok(Literal::Fill(f64::from(u8::from(name == "ones")), shape))
        }
        ("file", [Expr::StringLiteral(path)], []) => Ok(Literal::File(path.value.to_str().into())),
        ("tensor", [elements], keywords) => {
            let dtype = match keywords {
                [] => None,
                [only] if only.arg.as_deref() == Some("dtype") => Some(dtype_of(&only.value)?),
                _ => return Err("only `dtype=` may follow the elements of a tensor".to_owned()),
            };
            Ok(Literal::Tensor(Box::new(of_expression(elements)?), dtype))
        }
        _ => Err(NO_LITERAL.to_owned()),
    }
}

/// Parses a dtype: `float32` or `torch.float32`.
fn dtype_of(expression: &Expr) -> Result<DType, String> {
    let name = match expression {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    };
    DType::from_python_name(name).ok_or_else(|| format!("`{name}` is not a dtype"))
}

impl Literal {
    /// Returns the value of the literal.
    ///
    /// # Errors
    /// If a file cannot be read, or the elements of a tensor do not fit.
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

/// Returns a tensor with the elements of nested lists of numbers. As in `torch.tensor`, its dtype is that of the
/// elements by default.
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

/// Collects the numbers in nested lists, in row-major order. Returns false if the lists do not have the sizes `sizes`.
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
        assert_eq!(parsed("-9223372036854775808"), Literal::Int(i64::MIN));
        assert!("[1 + 2]".parse::<Literal>().is_err());
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
            ("[1, 2", "unexpected EOF"),
            ("[1 2]", "Expected `,`, found int"),
            ("{1 2}", "Expected `,`, found int"),
            ("{[1]: 2}", "a key is"),
            ("\"a", "missing closing quote"),
            ("[a]", "strings are written in quotes"),
            ("zeros:axb", "is not an extent"),
            ("[1] 2", "Unexpected token at the end"),
            ("", "Expected an expression"),
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
