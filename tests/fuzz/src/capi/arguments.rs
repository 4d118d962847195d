//! What arguments of C functions are chosen from, and what is checked when a function has returned.

use super::machine::{Machine, PROGRAMS};
use frazil_capi::*;
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;

/// An argument of a function.
pub trait Argument: Sized {
    /// Its type in C.
    type Raw;
    /// Chooses one.
    fn choose(machine: &mut Machine<'_>) -> Self;
    /// What the function is given.
    fn raw(&mut self) -> Self::Raw;
    /// When the function has returned.
    fn done(self, _machine: &mut Machine<'_>, _failed: bool) {}
}

/// What a function returns.
pub trait Returned {
    /// Its type in C.
    type Raw;
    /// Checks it, and tells whether the function failed.
    fn finish(raw: Self::Raw, machine: &mut Machine<'_>) -> bool;
}

/// What a handle stands for.
pub trait Handle: 'static {
    /// The number of its pool.
    const KIND: usize;
    /// Frees one.
    ///
    /// # Safety
    /// It is a handle, and is not used any more.
    unsafe fn free(handle: *mut Self);
    /// Reads what can be read of it without choices.
    fn look_at(_handle: *mut Self) {}
}

macro_rules! handles {
    ($($number:literal: $name:ident, $type:ident, $free:ident $(, $look:expr)?;)*) => {
        $(
            pub type $name = $type;

            impl Handle for $type {
                const KIND: usize = $number;

                unsafe fn free(handle: *mut Self) {
                    // SAFETY: handles are boxes.
                    $free(Some(unsafe { Box::from_raw(handle) }));
                }

                $(fn look_at(handle: *mut Self) {
                    // SAFETY: it has just been given.
                    ($look)(unsafe { &*handle });
                })?
            }
        )*

        /// The number of kinds.
        pub const KINDS: usize = [$($number),*].len();

        /// What frees a handle of each kind.
        pub fn free_functions() -> [unsafe fn(*mut c_void); KINDS] {
            // SAFETY: the caller keeps the rules.
            [$(|handle| unsafe { <$type as Handle>::free(handle.cast()) }),*]
        }
    };
}

handles! {
    0: Session, FrazilSession, frazil_session_free;
    1: Model, FrazilModel, frazil_model_free;
    2: Options, FrazilOptions, frazil_options_free;
    3: Engine, FrazilEngine, frazil_engine_free;
    4: Value, FrazilValue, frazil_value_free;
    5: Tensor, FrazilTensor, frazil_tensor_free;
    6: Aliases, FrazilAliases, frazil_aliases_free;
    7: Bytes, FrazilBytes, frazil_bytes_free, |b: &FrazilBytes| read(frazil_bytes_data(Some(b)), frazil_bytes_len(Some(b)));
    8: Compiled, FrazilCompiled, frazil_compiled_free;
    9: Error, FrazilError, frazil_error_free;
    10: Ops, FrazilOps, frazil_ops_free;
    11: Signature, FrazilSignature, frazil_signature_free;
    12: Parameters, FrazilParameters, frazil_parameters_free;
    13: TraceOptions, FrazilTraceOptions, frazil_trace_options_free;
}

/// Reads bytes that were given, so that the sanitizer notices those that are not there.
fn read(first: *const u8, len: usize) {
    if len > 0 {
        assert!(!first.is_null(), "bytes that are not there");
        // SAFETY: that many have been given.
        let bytes = unsafe { std::slice::from_raw_parts(first, len) };
        std::hint::black_box(bytes.iter().fold(0u8, |sum, b| sum.wrapping_add(*b)));
    }
}

/// Reads text that was given.
fn read_text(text: *const c_char) {
    if !text.is_null() {
        // SAFETY: text ends with a zero byte.
        let text = unsafe { CStr::from_ptr(text) };
        assert!(text.to_str().is_ok(), "text that is not UTF-8");
    }
}

/// A handle that is used.
pub struct In<T>(*mut T);

impl<T: Handle> Argument for In<T> {
    type Raw = *mut T;

    fn choose(machine: &mut Machine<'_>) -> Self {
        In(machine.handle())
    }

    fn raw(&mut self) -> *mut T {
        self.0
    }
}

/// A handle that is freed.
pub struct Taken<T>(*mut T);

impl<T: Handle> Argument for Taken<T> {
    type Raw = *mut T;

    fn choose(machine: &mut Machine<'_>) -> Self {
        Taken(machine.take())
    }

    fn raw(&mut self) -> *mut T {
        self.0
    }
}

/// Where a handle is written.
pub struct Out<T> {
    is_null: bool,
    slot: *mut T,
}

impl<T: Handle> Argument for Out<T> {
    type Raw = *mut *mut T;

    fn choose(machine: &mut Machine<'_>) -> Self {
        Out {
            is_null: machine.choices.byte() == 255,
            slot: null_mut(),
        }
    }

    fn raw(&mut self) -> *mut *mut T {
        if self.is_null { null_mut() } else { &mut self.slot }
    }

    fn done(self, machine: &mut Machine<'_>, failed: bool) {
        assert!(!failed || self.slot.is_null(), "a result beside an error");
        assert!(
            failed || self.is_null || !self.slot.is_null(),
            "neither a result nor an error"
        );
        if !self.slot.is_null() {
            machine.add(self.slot);
        }
    }
}

/// Where a number is written.
pub struct Put<T>(T);

impl<T: Default> Argument for Put<T> {
    type Raw = *mut T;

    fn choose(_: &mut Machine<'_>) -> Self {
        Put(T::default())
    }

    fn raw(&mut self) -> *mut T {
        &mut self.0
    }
}

/// Where text is written.
pub struct OutText(*mut c_char);

impl Argument for OutText {
    type Raw = *mut *mut c_char;

    fn choose(_: &mut Machine<'_>) -> Self {
        OutText(null_mut())
    }

    fn raw(&mut self) -> *mut *mut c_char {
        &mut self.0
    }

    fn done(self, _: &mut Machine<'_>, failed: bool) {
        assert!(!failed || self.0.is_null(), "a result beside an error");
        read_text(self.0);
        // SAFETY: it was given to be freed.
        unsafe { frazil_string_free(self.0) };
    }
}

/// No text, to be freed.
pub struct NoText;

impl Argument for NoText {
    type Raw = *mut c_char;

    fn choose(_: &mut Machine<'_>) -> Self {
        NoText
    }

    fn raw(&mut self) -> *mut c_char {
        null_mut()
    }
}

/// An array of handles.
pub struct Many<T>(Vec<*mut T>);

impl<T: Handle> Argument for Many<T> {
    type Raw = *const *mut T;

    fn choose(machine: &mut Machine<'_>) -> Self {
        Many((0..machine.len).map(|_| machine.handle()).collect())
    }

    fn raw(&mut self) -> *const *mut T {
        self.0.as_ptr()
    }
}

/// The number of elements of arrays.
pub struct Len(usize);

impl Argument for Len {
    type Raw = usize;

    fn choose(machine: &mut Machine<'_>) -> Self {
        Len(machine.len)
    }

    fn raw(&mut self) -> usize {
        self.0
    }
}

/// Sizes or strides.
pub struct Sizes(Vec<i64>);

impl Argument for Sizes {
    type Raw = *const i64;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let sizes: Vec<i64> = (0..machine.len).map(|_| machine.choices.int()).collect();
        let product = sizes.iter().try_fold(1i64, |product, n| product.checked_mul(*n));
        machine.elements = product.map_or(0, |n| n.clamp(0, 1 << 12) as usize);
        Sizes(sizes)
    }

    fn raw(&mut self) -> *const i64 {
        self.0.as_ptr()
    }
}

/// A type of elements.
pub struct DTypeNumber(i32);

impl Argument for DTypeNumber {
    type Raw = i32;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let (number, bytes) = *machine.choices.pick(&[
            (6, 4),
            (4, 8),
            (11, 1),
            (7, 8),
            (5, 2),
            (0, 1),
            (9, 8),
            (15, 2),
            (99, 1),
            (-1, 1),
        ]);
        machine.dtype_bytes = bytes;
        DTypeNumber(number)
    }

    fn raw(&mut self) -> i32 {
        self.0
    }
}

/// Bytes: as many as a tensor of the chosen type and sizes has, or others.
pub struct Data(Vec<u8>);

impl Argument for Data {
    type Raw = *const c_void;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let len = match machine.choices.byte() {
            n @ 200.. => usize::from(n - 200),
            _ => machine.elements * machine.dtype_bytes,
        };
        machine.data_len = len;
        let fill = machine.choices.byte();
        Data(vec![fill; len])
    }

    fn raw(&mut self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

/// Bytes that are not modified while they are in use.
pub struct SharedData;

static SHARED: [f64; 1 << 12] = [0.5; 1 << 12];

impl Argument for SharedData {
    type Raw = *const c_void;

    fn choose(machine: &mut Machine<'_>) -> Self {
        machine.data_len = (machine.elements * machine.dtype_bytes).min(size_of_val(&SHARED));
        SharedData
    }

    fn raw(&mut self) -> *const c_void {
        SHARED.as_ptr().cast()
    }
}

/// Room for bytes.
pub struct Space(Vec<u8>);

impl Argument for Space {
    type Raw = *mut c_void;

    fn choose(machine: &mut Machine<'_>) -> Self {
        machine.data_len = machine.choices.below(64);
        Space(vec![0; machine.data_len])
    }

    fn raw(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// The content of a file.
pub struct File(Vec<u8>);

impl Argument for File {
    type Raw = *const u8;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let bytes = match machine.choices.byte() {
            n @ 240.. => machine.choices.take(4 * usize::from(n - 240)).to_vec(),
            n => PROGRAMS[usize::from(n) % PROGRAMS.len()].as_bytes().to_vec(),
        };
        machine.data_len = bytes.len();
        File(bytes)
    }

    fn raw(&mut self) -> *const u8 {
        self.0.as_ptr()
    }
}

/// The number of bytes.
pub struct DataLen(usize);

impl Argument for DataLen {
    type Raw = usize;

    fn choose(machine: &mut Machine<'_>) -> Self {
        DataLen(machine.data_len)
    }

    fn raw(&mut self) -> usize {
        self.0
    }
}

macro_rules! numbers {
    ($($type:ty: $choose:expr;)*) => {
        $(
            impl Argument for $type {
                type Raw = $type;

                fn choose(machine: &mut Machine<'_>) -> Self {
                    let choose: fn(&mut Machine<'_>) -> $type = $choose;
                    choose(machine)
                }

                fn raw(&mut self) -> $type {
                    *self
                }
            }
        )*
    };
}

numbers! {
    bool: |m| m.choices.below(2) == 1;
    i32: |m| m.choices.below(12) as i32 - 1;
    u32: |m| m.choices.int() as u32;
    i64: |m| m.choices.int();
    u64: |m| m.choices.below(6) as u64;
    f64: |m| m.choices.float();
    usize: |m| match m.choices.byte() {
        255 => usize::MAX,
        n => usize::from(n) % 6,
    };
}

macro_rules! plain_results {
    ($($type:ty),*) => {
        $(impl Returned for $type {
            type Raw = $type;

            fn finish(_: $type, _: &mut Machine<'_>) -> bool {
                false
            }
        })*
    };
}

plain_results!(bool, i32, i64, usize, FrazilErrorKind, FrazilValueKind);

/// An error or NULL.
pub struct Failure;

impl Returned for Failure {
    type Raw = Option<Box<FrazilError>>;

    fn finish(error: Option<Box<FrazilError>>, machine: &mut Machine<'_>) -> bool {
        let Some(error) = error else { return false };
        let kind = frazil_error_kind(Some(&error));
        assert_ne!(kind, FrazilErrorKind::Internal, "{error}");
        assert_ne!(kind, FrazilErrorKind::None, "{error}");
        read_text(frazil_error_message(Some(&error)));
        for place in 0..frazil_error_place_count(Some(&error)) {
            read_text(frazil_error_place(Some(&error), place));
        }
        machine.add(Box::into_raw(error));
        true
    }
}

/// A handle that is returned.
pub struct New<T>(PhantomData<T>);

impl<T: Handle> Returned for New<T> {
    type Raw = *mut T;

    fn finish(handle: *mut T, machine: &mut Machine<'_>) -> bool {
        assert!(!handle.is_null(), "no handle is returned");
        machine.add(handle);
        false
    }
}

/// Text that belongs to a handle.
pub struct BorrowedText;

impl Returned for BorrowedText {
    type Raw = *const c_char;

    fn finish(text: *const c_char, _: &mut Machine<'_>) -> bool {
        read_text(text);
        false
    }
}

/// Bytes that belong to a handle, which have been looked at when it was made.
pub struct BorrowedBytes;

impl Returned for BorrowedBytes {
    type Raw = *const u8;

    fn finish(_: *const u8, _: &mut Machine<'_>) -> bool {
        false
    }
}
