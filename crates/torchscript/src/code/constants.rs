//! Printing of constants: as literals, or as entries of the table of constants.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use frazil_ir::nesting::Extent;
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{Constant, Context, Device, TensorData, TypeId, TypeKind, literal};

use super::error::CodeError;

/// Maximum nesting of containers in a literal. More deeply nested constants are put into the table, because a literal repeats the types of all its parts.
const MAX_LITERAL: usize = 64;

/// An entry of a [`ConstantTable`].
#[derive(Clone, Debug)]
pub enum TableEntry {
    /// A constant, which is stored in the archive.
    Value(Constant),
    /// An elided value in the text from which the graph was read, as printed there (`<Tensor>`). Code with such an entry cannot be loaded.
    Elided(Arc<str>),
}

/// The constants that code names `CONSTANTS.c0`, `CONSTANTS.c1`, ...: tensors, objects, and values with non-ASCII characters.
#[derive(Clone, Debug, Default)]
pub struct ConstantTable {
    entries: Vec<TableEntry>,
    /// Indices of entries that are tensors, keyed by a digest of the tensor. Equal tensors share an entry.
    tensors: HashMap<u64, Vec<usize>>,
}

impl ConstantTable {
    /// Returns the entries; entry `n` is named `CONSTANTS.cN` in code.
    pub fn entries(&self) -> &[TableEntry] {
        &self.entries
    }

    /// Returns the constants, in the order of their numbers.
    ///
    /// # Errors
    /// When one was elided.
    pub fn values(&self) -> Result<Vec<Constant>, CodeError> {
        let value = |entry: &TableEntry| match entry {
            TableEntry::Value(constant) => Ok(constant.clone()),
            TableEntry::Elided(text) => Err(CodeError::Constant(format!(
                "the text of the graph left it out: {text}"
            ))),
        };
        self.entries.iter().map(value).collect()
    }

    /// Adds an entry for an elided value and returns its number.
    pub(super) fn add_elided(&mut self, text: &Arc<str>) -> usize {
        self.push(TableEntry::Elided(Arc::clone(text)))
    }

    fn add(&mut self, constant: &Constant) -> usize {
        let Constant::Tensor(tensor) = constant else {
            return self.push(TableEntry::Value(constant.clone()));
        };
        let digest = digest(tensor);
        let alike = self.tensors.get(&digest).map_or(&[][..], Vec::as_slice);
        let known = alike.iter().copied().find(|&index| match self.entries.get(index) {
            Some(TableEntry::Value(Constant::Tensor(other))) => equal(tensor, other),
            _ => false,
        });
        known.unwrap_or_else(|| {
            let index = self.push(TableEntry::Value(constant.clone()));
            self.tensors.entry(digest).or_default().push(index);
            index
        })
    }

    fn push(&mut self, entry: TableEntry) -> usize {
        self.entries.push(entry);
        self.entries.len() - 1
    }
}

fn digest(tensor: &TensorData) -> u64 {
    let mut hasher = DefaultHasher::new();
    tensor.sizes.hash(&mut hasher);
    tensor.to_bytes().hash(&mut hasher);
    hasher.finish()
}

/// Returns whether two tensors are bitwise equal. (PyTorch also merges the constants 0.0 and -0.0.)
fn equal(a: &Arc<TensorData>, b: &Arc<TensorData>) -> bool {
    Arc::ptr_eq(a, b)
        || a.dtype == b.dtype
            && a.sizes == b.sizes
            && a.storage.device() == b.storage.device()
            && a.to_bytes() == b.to_bytes()
}

/// Appends the literal of `value`, or adds `value` to the table if it has no literal.
pub(super) fn write_constant(
    ctx: &Context,
    table: &mut ConstantTable,
    value: &Constant,
    out: &mut String,
) -> Result<(), CodeError> {
    let mut writer = Writer { ctx, table, out };
    match Extent::of(value).levels > MAX_LITERAL {
        true => writer.tabled(value),
        false => writer.constant(value)?,
    }
    Ok(())
}

/// Returns the constant converted to type `ty`: `.ir` text represents bools as numbers, and devices as strings.
pub(super) fn typed(ctx: &Context, value: &Constant, ty: TypeId) -> Constant {
    match (ctx.type_kind(ty), value) {
        (TypeKind::Bool, Constant::Int(i)) => Constant::Bool(*i != 0),
        (TypeKind::Device, Constant::Str(text)) => Device::parse(text).map_or_else(|| value.clone(), Constant::Device),
        _ => value.clone(),
    }
}

struct Writer<'w> {
    ctx: &'w Context,
    table: &'w mut ConstantTable,
    out: &'w mut String,
}

impl Writer<'_> {
    /// Prints the name of the table entry of `value`, which is added if necessary.
    fn tabled(&mut self, value: &Constant) {
        let index = self.table.add(value);
        let _ = write!(self.out, "CONSTANTS.c{index}");
    }

    fn constant(&mut self, value: &Constant) -> Result<(), CodeError> {
        if matches!(value, Constant::Tensor(_) | Constant::Object(_)) || !is_ascii(value) {
            self.tabled(value);
            return Ok(());
        }
        match value {
            Constant::None => self.out.push_str("None"),
            Constant::Bool(b) => self.out.push_str(if *b { "True" } else { "False" }),
            Constant::Int(i) => {
                let _ = write!(self.out, "{i}");
            }
            Constant::Float(f) => self.float(*f),
            Constant::Complex(c) => literal::complex(c.re, c.im, self.out),
            Constant::Str(text) => literal::quoted(text, false, self.out),
            Constant::Device(device) => {
                let _ = write!(self.out, "torch.device(\"{device}\")");
            }
            Constant::Enum(member) => {
                let _ = write!(self.out, "{}.{}", self.ctx.name(member.class), member.name);
            }
            Constant::Function(name) => self.out.push_str(self.ctx.name(*name)),
            Constant::List(list) => {
                let vague = list.items.is_empty() || is_vague(self.ctx, list.element);
                self.annotated(vague, ", ", value, |this| this.items(["[", "]"], &list.items))?;
            }
            Constant::Tuple(tuple) => {
                if let TypeKind::NamedTuple(name, ..) = self.ctx.type_kind(tuple.ty) {
                    self.out.push_str(self.ctx.name(name));
                }
                let close = if tuple.items.len() == 1 { ",)" } else { ")" };
                self.items(["(", close], &tuple.items)?;
            }
            Constant::Dict(dict) => {
                let vague = dict.entries.is_empty() || is_vague(self.ctx, dict.value);
                // PyTorch has no space behind this comma.
                self.annotated(vague, ",", value, |this| {
                    this.out.push('{');
                    for (i, (key, value)) in dict.entries.iter().enumerate() {
                        this.out.push_str(if i > 0 { ", " } else { "" });
                        this.constant(key)?;
                        this.out.push_str(": ");
                        this.constant(value)?;
                    }
                    this.out.push('}');
                    Ok(())
                })?;
            }
            Constant::Tensor(_) | Constant::Object(_) => {}
        }
        Ok(())
    }

    /// Writes a double. PyTorch writes whole numbers from 1e10 on without a dot and reads them back as integers; here the dot is kept.
    fn float(&mut self, value: f64) {
        let start = self.out.len();
        literal::double(value, self.out);
        if value.is_finite() && self.out[start..].bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
            self.out.push('.');
        }
    }

    fn annotated(
        &mut self,
        annotate: bool,
        comma: &str,
        value: &Constant,
        inner: impl FnOnce(&mut Self) -> Result<(), CodeError>,
    ) -> Result<(), CodeError> {
        if !annotate {
            return inner(self);
        }
        let ty = display_type(self.ctx, value.ty(self.ctx), TypeStyle::Annotation);
        let _ = write!(self.out, "annotate({ty}{comma}");
        inner(self)?;
        self.out.push(')');
        Ok(())
    }

    fn items(&mut self, [open, close]: [&str; 2], items: &[Constant]) -> Result<(), CodeError> {
        self.out.push_str(open);
        for (i, item) in items.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.constant(item)?;
        }
        self.out.push_str(close);
        Ok(())
    }
}

/// Returns whether the elements of a container do not determine its type.
pub(super) fn is_vague(ctx: &Context, element: TypeId) -> bool {
    matches!(
        ctx.type_kind(element),
        TypeKind::Union(_) | TypeKind::Optional(_) | TypeKind::Number | TypeKind::Interface(_) | TypeKind::Any
    )
}

/// Returns whether all strings in the constant are ASCII. Readers of code decode escapes of non-ASCII characters differently.
fn is_ascii(value: &Constant) -> bool {
    // Containers and strings still to be looked at.
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Constant::Str(text) if !text.is_ascii() => return false,
            Constant::List(list) => pending.extend(&list.items),
            Constant::Tuple(tuple) => pending.extend(&tuple.items),
            Constant::Dict(dict) => pending.extend(dict.entries.iter().flat_map(|(key, value)| [key, value])),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::{DType, types};

    fn shown(table: &mut ConstantTable, value: &Constant) -> String {
        let mut out = String::new();
        write_constant(&Context::new(), table, value, &mut out).unwrap();
        out
    }

    #[test]
    fn containers_are_annotated_where_their_elements_do_not_tell_the_type() {
        let ctx = Context::new();
        let mut table = ConstantTable::default();
        let mut shown = |value: &Constant| shown(&mut table, value);
        assert_eq!(shown(&Constant::ints([1, -2])), "[1, -2]");
        assert_eq!(shown(&Constant::ints([])), "annotate(List[int], [])");
        let one = Constant::tuple(&ctx, vec![Constant::Float(1.0)]);
        assert_eq!(shown(&one), "(1.,)");
        let numbers = Constant::list(types::NUMBER, vec![Constant::Int(1), Constant::Float(0.5)]);
        assert_eq!(shown(&numbers), "annotate(List[number], [1, 0.5])");
    }

    #[test]
    fn doubles_read_back_as_doubles() {
        let mut table = ConstantTable::default();
        let mut shown = |value: f64| shown(&mut table, &Constant::Float(value));
        assert_eq!(
            [shown(1e9), shown(-1e16), shown(1e20)],
            ["1000000000.", "-10000000000000000.", "1e+20"]
        );
        assert_eq!(
            [shown(f64::INFINITY), shown(f64::NAN), shown(0.1)],
            ["inf", "nan", "0.10000000000000001"]
        );
    }

    #[test]
    fn equal_tensors_share_an_entry() {
        let tensor = |values: [f32; 2]| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            Constant::Tensor(Arc::new(TensorData::contiguous(DType::Float, &[2], bytes).unwrap()))
        };
        let mut table = ConstantTable::default();
        assert_eq!(shown(&mut table, &tensor([1.0, f32::NAN])), "CONSTANTS.c0");
        assert_eq!(shown(&mut table, &Constant::str("é")), "CONSTANTS.c1");
        assert_eq!(shown(&mut table, &tensor([1.0, f32::NAN])), "CONSTANTS.c0");
        assert_eq!(shown(&mut table, &tensor([1.0, 2.0])), "CONSTANTS.c2");
        assert_eq!(table.values().unwrap().len(), 3);
        table.add_elided(&"<Tensor>".into());
        assert!(table.values().is_err());
    }
}
