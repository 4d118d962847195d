//! Reading of the data items of module files: storages, tensors, extra files.

use super::element;
use super::parse::Parser;
use super::tensors::TensorSource;
use crate::diagnostics::{Parsed, Reported};
use crate::parse::value::parse_constant;
use frazil_ir::{DType, Device, Diagnostic, Dim, DimsId, Encoding, Storage, TensorData, TypeKind};
use std::collections::HashMap;
use std::sync::Arc;

impl Parser<'_, '_> {
    /// Reads a storage: `<3> = 256 bytes on cpu in "key"` or `<3> = 2 bytes "00ff"`.
    pub(super) fn storage(
        &mut self,
        source: &dyn TensorSource,
        storages: &mut HashMap<u32, Arc<Storage>>,
    ) -> Parsed<()> {
        let number = self.number()?;
        self.cur.expect(b'=', "behind the storage's number")?;
        storages.insert(number, Arc::new(self.bytes(source)?));
        Ok(())
    }

    /// Reads the bytes of a storage: `256 bytes on cpu in "key"` or `2 bytes "00ff"`.
    fn bytes(&mut self, source: &dyn TensorSource) -> Parsed<Storage> {
        let start = self.cur.pos;
        let len = self.cur.integer("the number of bytes")?;
        if !self.cur.eat_word("bytes") {
            return Err(self.cur.unexpected("`bytes`"));
        }
        let mut device = Device::CPU;
        if self.cur.eat_word("on") {
            self.cur.skip_space();
            let at = self.cur.pos;
            while !matches!(self.cur.peek(), b' ' | b'\n' | 0) {
                self.cur.pos += 1;
            }
            device = Device::parse(self.cur.since(at)).ok_or_else(|| {
                let span = self.cur.span_from(at);
                self.cur
                    .sink
                    .error("bad-module", "there is no such device", span, "not a device")
            })?;
        }
        let (bytes, what) = if self.cur.eat_word("in") {
            let at = self.cur.pos;
            let key = self.cur.string()?;
            match source.storage(&key, device) {
                Some(bytes) => (bytes, "the tensor file has"),
                None => {
                    let span = self.cur.span_from(at);
                    return Err(self.cur.sink.report(
                        Diagnostic::error(
                            "unknown-reference",
                            format!("the tensor file has no entry `{key}`"),
                            span,
                            "not in the file",
                        )
                        .with_help("the line `tensors \"NAME.safetensors\"` names the file; it stands beside the text"),
                    ));
                }
            }
        } else {
            let at = self.cur.pos;
            let digits = self.cur.string()?;
            match element::from_hex(&digits) {
                Some(bytes) => (Storage::new(Arc::new(bytes), device), "the text has"),
                None => {
                    let span = self.cur.span_from(at);
                    return Err(self.cur.sink.error(
                        "bad-module",
                        "bytes are written as pairs of hexadecimal digits",
                        span,
                        "something else",
                    ));
                }
            }
        };
        let found = bytes.len();
        if i64::try_from(found) != Ok(len) {
            let span = self.cur.span_from(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-module",
                    format!("{len} bytes are wanted, {what} {found}"),
                    span,
                    "here",
                )
                .with_help("do text and tensor file belong together?"),
            ));
        }
        Ok(bytes)
    }

    /// Reads a tensor: `<1> = Float(2, strides=[1], requires_grad=0) [1., 2.]`, or `storage<3> offset 4` in place of the numbers.
    pub(super) fn tensor(&mut self, storages: &HashMap<u32, Arc<Storage>>) -> Parsed<()> {
        let number = self.number()?;
        self.cur.expect(b'=', "behind the tensor's number")?;
        self.cur.skip_space();
        let at = self.cur.pos;
        let ty = self.ty()?;
        let known = match self.ctx.type_kind(ty) {
            TypeKind::Tensor(t) => Some(t),
            _ => None,
        };
        let numbers = |dims: Option<DimsId>| -> Option<Vec<i64>> {
            let one = |d: &Dim| match d {
                Dim::Known(n) => Some(*n),
                Dim::Unknown | Dim::Symbolic(_) => None,
            };
            self.ctx.dims(dims?).iter().map(one).collect()
        };
        let (Some(dtype), Some(sizes), Some(strides)) = (
            known.and_then(|t| t.dtype),
            known.and_then(|t| numbers(t.sizes)),
            known.and_then(|t| numbers(t.strides)),
        ) else {
            let span = self.cur.span_from(at);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-module",
                    "the type of a tensor must say all",
                    span,
                    "says too little",
                )
                .with_help("dtype, sizes and strides: `Float(2, 3, strides=[3, 1], requires_grad=0)`"),
            ));
        };
        let encoding = self.encoding()?;
        self.cur.skip_space();
        let at = self.cur.pos;
        let (storage, offset) = if self.cur.eat_word("elided") {
            let span = self.cur.span_from(at);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "elided-constant",
                    "the elements were left out of the text",
                    span,
                    "no data",
                )
                .with_help("print the module without eliding constants"),
            ));
        } else if self.cur.peek() == b'[' {
            let bytes = self.elements(dtype)?;
            (Arc::new(Storage::new(Arc::new(bytes), Device::CPU)), 0)
        } else {
            if !self.cur.eat_word("storage") {
                return Err(self.cur.unexpected("`[`, `storage<...>` or `elided`"));
            }
            let number = self.number()?;
            let Some(storage) = storages.get(&number).cloned() else {
                if self.env.declared.contains(&("storage", number)) {
                    // An error in its definition has been reported: storages are read before tensors.
                    return Err(Reported);
                }
                let span = self.cur.span_from(at);
                let message = format!("there is no storage<{number}>");
                return Err(self
                    .cur
                    .sink
                    .error("unknown-reference", message, span, "refers to nothing"));
            };
            let offset = if self.cur.eat_word("offset") {
                self.cur.integer("the first element's number")?
            } else {
                0
            };
            (storage, offset)
        };
        let tensor = TensorData::new(dtype, sizes.as_slice(), strides.as_slice(), offset, storage);
        let mut tensor = tensor.map_err(|e| {
            let span = self.cur.span_from(at);
            self.cur.sink.error("bad-module", e.to_string(), span, "this data")
        })?;
        tensor.encoding = encoding.map(Arc::new);
        tensor.requires_grad = known.and_then(|t| t.requires_grad).unwrap_or(false);
        self.env.tensors.insert(number, Arc::new(tensor));
        Ok(())
    }

    /// Reads the encoding of a tensor, if it has one: ` per_tensor_affine (0.1, 128)` or ` sparse_coo (tensor<0>, tensor<1>)`.
    fn encoding(&mut self) -> Parsed<Option<Encoding>> {
        self.cur.skip_space();
        if !["per_", "sparse_"]
            .iter()
            .any(|start| self.cur.rest().starts_with(start))
        {
            return Ok(None);
        }
        let start = self.cur.pos;
        let name = self.cur.word();
        let parameters = parse_constant(self.cur, self.ctx, &self.env, None)?;
        let encoding = element::encoding(name, &parameters);
        if encoding.is_none() {
            let span = self.cur.span_from(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "bad-module",
                    "there is no such encoding of a tensor",
                    span,
                    "name and parameters",
                )
                .with_help(
                    "`per_tensor_affine (scale, zero point)`, `per_channel_affine (scales, zero points, dimension)`, \
                     `sparse_coo (indices, values)` or `sparse_csr (rows, columns, values)`",
                ),
            ));
        }
        Ok(encoding)
    }

    /// Reads the elements of a tensor: `[1., 2.5]`.
    fn elements(&mut self, dtype: DType) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::new();
        self.cur.expect(b'[', "before the elements")?;
        if self.cur.eat(b']') {
            return Ok(bytes);
        }
        loop {
            self.cur.skip_space();
            let start = self.cur.pos;
            let text = self.cur.number();
            if text.is_empty() {
                return Err(self.cur.unexpected("an element"));
            }
            if element::read(dtype, text, &mut bytes).is_none() {
                let span = self.cur.span_from(start);
                let message = format!("`{text}` is no element of a {} tensor", dtype.type_name());
                return Err(self.cur.sink.error("bad-number", message, span, "this number"));
            }
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b']', "behind the elements")?;
        Ok(bytes)
    }

    /// Reads an extra file: ` "name" = "text"` or ` "name" = 3 bytes ...`.
    pub(super) fn extra(&mut self, source: &dyn TensorSource) -> Parsed<(String, Arc<[u8]>)> {
        let name = self.cur.string()?.into_owned();
        self.cur.expect(b'=', "behind the file's name")?;
        self.cur.skip_space();
        if self.cur.peek() == b'"' {
            let text = self.cur.string()?;
            return Ok((name, Arc::from(text.as_bytes())));
        }
        Ok((name, Arc::from(self.bytes(source)?.bytes())))
    }
}
