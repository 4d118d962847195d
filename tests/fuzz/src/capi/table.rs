//! All functions of `frazil.h`, with what each argument may be.

use super::arguments::*;
use super::callbacks::*;
use super::machine::Machine;
use super::texts::*;
use frazil_capi::{FrazilErrorKind, FrazilValueKind};

/// Declares the functions for C, and makes of each a step that chooses its arguments, calls it and checks what it gives.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(improper_ctypes, reason = "handles are opaque")]
        unsafe extern "C" {
            $(fn $name($($argument: <$kind as Argument>::Raw),*) $(-> <$result as Returned>::Raw)?;)*
        }

        /// The functions by name.
        pub const FUNCTIONS: &[(&str, fn(&mut Machine<'_>))] = &[
            $((stringify!($name), |machine| {
                machine.begin();
                $(let mut $argument = <$kind as Argument>::choose(machine);)*
                // SAFETY: the declaration is that of the header, and the arguments are what it asks for, or NULL.
                let returned = unsafe { $name($($argument.raw()),*) };
                let failed = functions!(@finish machine, returned $(, $result)?);
                $($argument.done(machine, failed);)*
                let _ = failed;
            })),*
        ];
    };
    (@finish $machine:ident, $returned:ident, $result:ty) => {
        <$result as Returned>::finish($returned, $machine)
    };
    (@finish $machine:ident, $returned:ident) => {{
        let () = $returned;
        false
    }};
}

functions! {
    fn frazil_aliases_new(model: In<Model>, method: Text, out: Out<Aliases>) -> Failure;
    fn frazil_aliases_free(aliases: Taken<Aliases>);
    fn frazil_aliases_may_alias(aliases: In<Aliases>, a: Text, b: Text, out: Put<bool>) -> Failure;
    fn frazil_aliases_may_contain_alias(aliases: In<Aliases>, a: Text, b: Text, out: Put<bool>) -> Failure;
    fn frazil_aliases_has_writers(aliases: In<Aliases>, value: Text, out: Put<bool>) -> Failure;
    fn frazil_aliases_may_alias_wildcard(aliases: In<Aliases>, value: Text, out: Put<bool>) -> Failure;
    fn frazil_aliases_escapes(aliases: In<Aliases>, value: Text, out: Put<bool>) -> Failure;
    fn frazil_model_alias_text(model: In<Model>, out: OutText) -> Failure;
    fn frazil_model_save_with(model: In<Model>, path: FilePath, files: ExtraFiles, len: Len) -> Failure;
    fn frazil_model_save_bytes(model: In<Model>, files: ExtraFiles, len: Len, out: Out<Bytes>) -> Failure;
    fn frazil_model_extra_file_count(model: In<Model>, out: Put<usize>) -> Failure;
    fn frazil_model_extra_file_name(model: In<Model>, index: usize, out: OutText) -> Failure;
    fn frazil_model_extra_file(model: In<Model>, name: Text, out: Out<Bytes>) -> Failure;
    fn frazil_bytes_data(bytes: In<Bytes>) -> BorrowedBytes;
    fn frazil_bytes_len(bytes: In<Bytes>) -> usize;
    fn frazil_bytes_free(bytes: Taken<Bytes>);
    fn frazil_model_attribute(model: In<Model>, path: Text, out: Out<Value>) -> Failure;
    fn frazil_model_has_attribute(model: In<Model>, path: Text, out: Put<bool>) -> Failure;
    fn frazil_model_set_attribute(model: In<Model>, path: Text, value: In<Value>, out: Out<Model>) -> Failure;
    fn frazil_model_register_parameter(model: In<Model>, name: Text, tensor: In<Tensor>, requires_grad: bool, out: Out<Model>) -> Failure;
    fn frazil_model_register_buffer(model: In<Model>, name: Text, tensor: In<Tensor>, persistent: bool, out: Out<Model>) -> Failure;
    fn frazil_model_register_attribute(model: In<Model>, name: Text, value: In<Value>, out: Out<Model>) -> Failure;
    fn frazil_model_set_submodule(model: In<Model>, path: Text, child: In<Model>, out: Out<Model>) -> Failure;
    fn frazil_model_define(model: In<Model>, source: Source, out: Out<Model>) -> Failure;
    fn frazil_model_named_attributes(model: In<Model>, recurse: bool, out: Out<Value>) -> Failure;
    fn frazil_model_named_parameters(model: In<Model>, recurse: bool, out: Out<Value>) -> Failure;
    fn frazil_model_named_buffers(model: In<Model>, recurse: bool, out: Out<Value>) -> Failure;
    fn frazil_model_named_modules(model: In<Model>, out: Out<Value>) -> Failure;
    fn frazil_model_compile(model: In<Model>, inputs: Specs, len: Len, options: In<Options>, out: Out<Compiled>) -> Failure;
    fn frazil_model_emit(model: In<Model>, method: Text, inputs: Specs, len: Len, stage: i32, options: In<Options>, out: Out<Bytes>) -> Failure;
    fn frazil_model_write_library(model: In<Model>, method: Text, inputs: Specs, len: Len, options: In<Options>, path: FilePath) -> Failure;
    fn frazil_model_write_range_library(model: In<Model>, method: Text, inputs: Specs, len: Len, ranges: Ranges, range_len: Len, options: In<Options>, path: FilePath) -> Failure;
    fn frazil_compiled_input_count(compiled: In<Compiled>) -> usize;
    fn frazil_compiled_input_name(compiled: In<Compiled>, index: usize) -> BorrowedText;
    fn frazil_compiled_output_count(compiled: In<Compiled>) -> usize;
    fn frazil_compiled_output_name(compiled: In<Compiled>, index: usize) -> BorrowedText;
    fn frazil_compiled_free(compiled: Taken<Compiled>);
    fn frazil_compiled_run(compiled: In<Compiled>, inputs: Many<Tensor>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_value_count(value: In<Value>, out: Put<usize>) -> Failure;
    fn frazil_value_item(value: In<Value>, index: usize, out: Out<Value>) -> Failure;
    fn frazil_value_dict(session: In<Session>, keys: Many<Value>, items: Many<Value>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_value_entry(value: In<Value>, index: usize, out_key: Out<Value>, out_value: Out<Value>) -> Failure;
    fn frazil_value_get(value: In<Value>, key: In<Value>, out: Out<Value>) -> Failure;
    fn frazil_value_has(value: In<Value>, key: In<Value>, out: Put<bool>) -> Failure;
    fn frazil_engine_new(model: In<Model>, options: In<Options>, out: Out<Engine>) -> Failure;
    fn frazil_engine_load(session: In<Session>, path: FilePath, options: In<Options>, out: Out<Engine>) -> Failure;
    fn frazil_engine_snapshot(engine: In<Engine>, out: Out<Model>) -> Failure;
    fn frazil_engine_graph(engine: In<Engine>, method: Text, out: OutText) -> Failure;
    fn frazil_engine_free(engine: Taken<Engine>);
    fn frazil_engine_call(engine: In<Engine>, method: Text, arguments: Many<Value>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_engine_call_module(engine: In<Engine>, arguments: Many<Value>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_engine_call_named(engine: In<Engine>, method: Text, arguments: Many<Value>, len: Len, names: Texts, named: Many<Value>, named_len: Len, out: Out<Value>) -> Failure;
    fn frazil_engine_notes(engine: In<Engine>, out: OutText) -> Failure;
    fn frazil_engine_compile_seconds(engine: In<Engine>, out: Put<f64>) -> Failure;
    fn frazil_error_kind(error: In<Error>) -> FrazilErrorKind;
    fn frazil_error_message(error: In<Error>) -> BorrowedText;
    fn frazil_error_place_count(error: In<Error>) -> usize;
    fn frazil_error_place(error: In<Error>, index: usize) -> BorrowedText;
    fn frazil_error_new(kind: i32, message: Text) -> New<Error>;
    fn frazil_error_free(error: Taken<Error>);
    fn frazil_engine_register_forward_pre_hook(engine: In<Engine>, hook: PreHook, context: Context, release: Release, out: Put<u64>) -> Failure;
    fn frazil_engine_register_forward_hook(engine: In<Engine>, hook: Hook, context: Context, release: Release, out: Put<u64>) -> Failure;
    fn frazil_engine_remove_hook(engine: In<Engine>, hook: u64, out: Put<bool>) -> Failure;
    fn frazil_string_free(text: NoText);
    fn frazil_version() -> BorrowedText;
    fn frazil_session_new(out: Out<Session>) -> Failure;
    fn frazil_session_new_with_limits(limits: Text, out: Out<Session>) -> Failure;
    fn frazil_session_free(session: Taken<Session>);
    fn frazil_model_load(session: In<Session>, path: FilePath, out: Out<Model>) -> Failure;
    fn frazil_model_load_bytes(session: In<Session>, name: Text, bytes: File, len: DataLen, out: Out<Model>) -> Failure;
    fn frazil_model_free(model: Taken<Model>);
    fn frazil_model_freeze(model: In<Model>, options: In<Options>, out: Out<Model>) -> Failure;
    fn frazil_model_eval(model: In<Model>, out: Out<Model>) -> Failure;
    fn frazil_model_train(model: In<Model>, mode: bool, out: Out<Model>) -> Failure;
    fn frazil_model_is_training(model: In<Model>, out: Put<bool>) -> Failure;
    fn frazil_model_optimize_for_inference(model: In<Model>, options: In<Options>, out: Out<Model>) -> Failure;
    fn frazil_model_run_passes(model: In<Model>, pipeline: Pipeline, out: Out<Model>) -> Failure;
    fn frazil_model_save(model: In<Model>, path: FilePath) -> Failure;
    fn frazil_model_save_ir(model: In<Model>, path: FilePath) -> Failure;
    fn frazil_model_dot(model: In<Model>, out: OutText) -> Failure;
    fn frazil_model_function(model: In<Model>, name: Text, out: Out<Model>) -> Failure;
    fn frazil_model_restored(model: In<Model>, out: Out<Model>) -> Failure;
    fn frazil_model_ir(model: In<Model>, out: OutText) -> Failure;
    fn frazil_model_code(model: In<Model>, method: Text, out: OutText) -> Failure;
    fn frazil_model_code_with_constants(model: In<Model>, method: Text, out_code: OutText, out_constants: Out<Value>) -> Failure;
    fn frazil_model_graph(model: In<Model>, method: Text, out: OutText) -> Failure;
    fn frazil_model_class_name(model: In<Model>, out: OutText) -> Failure;
    fn frazil_model_method_count(model: In<Model>, out: Put<usize>) -> Failure;
    fn frazil_model_method_name(model: In<Model>, index: usize, out: OutText) -> Failure;
    fn frazil_value_class(session: In<Session>, value: In<Value>, out: OutText) -> Failure;
    fn frazil_value_field_name(session: In<Session>, value: In<Value>, index: usize, out: OutText) -> Failure;
    fn frazil_value_attribute_count(model: In<Model>, value: In<Value>, out: Put<usize>) -> Failure;
    fn frazil_value_attribute_name(model: In<Model>, value: In<Value>, index: usize, out: OutText) -> Failure;
    fn frazil_value_attribute(model: In<Model>, value: In<Value>, name: Text, out: Out<Value>) -> Failure;
    fn frazil_value_object(model: In<Model>, class_: Text, names: Texts, items: Many<Value>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_value_enum(model: In<Model>, class_: Text, member: Text, out: Out<Value>) -> Failure;
    fn frazil_value_enum_name(value: In<Value>, out: OutText) -> Failure;
    fn frazil_value_enum_value(value: In<Value>, out: Out<Value>) -> Failure;
    fn frazil_ops_new(session: In<Session>, out: Out<Ops>) -> Failure;
    fn frazil_ops_free(ops: Taken<Ops>);
    fn frazil_ops_call(ops: In<Ops>, operator_: OperatorName, arguments: Many<Value>, len: Len, names: Texts, named: Many<Value>, named_len: Len, out: Out<Value>) -> Failure;
    fn frazil_ops_call_function(ops: In<Ops>, functions: In<Model>, name: Text, arguments: Many<Value>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_ops_parameter(ops: In<Ops>, path: Text, out: Out<Value>) -> Failure;
    fn frazil_ops_set_place(ops: In<Ops>, file: Text, line: u32) -> Failure;
    fn frazil_ops_is_tracing(ops: In<Ops>, out: Put<bool>) -> Failure;
    fn frazil_ops_name(ops: In<Ops>, tensor: In<Value>, name: Text) -> Failure;
    fn frazil_ops_size(ops: In<Ops>, tensor: In<Value>, dim: i64, out: Out<Value>) -> Failure;
    fn frazil_ops_item(ops: In<Ops>, tensor: In<Value>, out: Out<Value>) -> Failure;
    fn frazil_options_new() -> New<Options>;
    fn frazil_options_free(options: Taken<Options>);
    fn frazil_options_set_threads(options: In<Options>, threads: usize) -> Failure;
    fn frazil_options_set_eval(options: In<Options>, eval: bool) -> Failure;
    fn frazil_options_set_interpret(options: In<Options>, interpret: bool) -> Failure;
    fn frazil_options_set_strict(options: In<Options>, strict: bool) -> Failure;
    fn frazil_options_set_fusion(options: In<Options>, fuse: bool) -> Failure;
    fn frazil_options_set_specialisations(options: In<Options>, most: usize) -> Failure;
    fn frazil_options_set_static_shapes(options: In<Options>, most: usize) -> Failure;
    fn frazil_options_set_optimize_numerics(options: In<Options>, optimize: bool) -> Failure;
    fn frazil_options_add_method(options: In<Options>, method: Text) -> Failure;
    fn frazil_options_preserve(options: In<Options>, name: Text) -> Failure;
    fn frazil_options_set_target_cpu(options: In<Options>, cpu: Text) -> Failure;
    fn frazil_options_set_name(options: In<Options>, name: Text) -> Failure;
    fn frazil_options_set_cache_dir(options: In<Options>, path: FilePath) -> Failure;
    fn frazil_options_set_cache_bytes(options: In<Options>, bytes: u64) -> Failure;
    fn frazil_options_set_tune(options: In<Options>, path: FilePath) -> Failure;
    fn frazil_model_signature(model: In<Model>, method: Text, out: Out<Signature>) -> Failure;
    fn frazil_signature_free(signature: Taken<Signature>);
    fn frazil_signature_text(signature: In<Signature>) -> BorrowedText;
    fn frazil_signature_argument_count(signature: In<Signature>) -> usize;
    fn frazil_signature_argument_name(signature: In<Signature>, index: usize) -> BorrowedText;
    fn frazil_signature_argument_type(signature: In<Signature>, index: usize) -> BorrowedText;
    fn frazil_signature_argument_by_name_only(signature: In<Signature>, index: usize) -> bool;
    fn frazil_signature_argument_has_default(signature: In<Signature>, index: usize) -> bool;
    fn frazil_signature_argument_default(signature: In<Signature>, index: usize, out: Out<Value>) -> Failure;
    fn frazil_signature_result_count(signature: In<Signature>) -> usize;
    fn frazil_signature_result_name(signature: In<Signature>, index: usize) -> BorrowedText;
    fn frazil_signature_result_type(signature: In<Signature>, index: usize) -> BorrowedText;
    fn frazil_signature_find_argument(signature: In<Signature>, name: Text, out: Put<usize>) -> Failure;
    fn frazil_model_state_dict(model: In<Model>, out: Out<Value>) -> Failure;
    fn frazil_model_load_state_dict(model: In<Model>, state: In<Value>, strict: bool, missing: Out<Value>, unexpected: Out<Value>, out: Out<Model>) -> Failure;
    fn frazil_read_safetensors(path: FilePath, out: Out<Value>) -> Failure;
    fn frazil_write_safetensors(state: In<Value>, path: FilePath) -> Failure;
    fn frazil_model_to(model: In<Model>, dtype: DTypeNumber, out: Out<Model>) -> Failure;
    fn frazil_model_to_type(model: In<Model>, dtype: DTypeNumber, out: Out<Model>) -> Failure;
    fn frazil_model_half(model: In<Model>, out: Out<Model>) -> Failure;
    fn frazil_model_bfloat16(model: In<Model>, out: Out<Model>) -> Failure;
    fn frazil_model_float(model: In<Model>, out: Out<Model>) -> Failure;
    fn frazil_model_double(model: In<Model>, out: Out<Model>) -> Failure;
    fn frazil_model_requires_grad(model: In<Model>, requires_grad: bool, out: Out<Model>) -> Failure;
    fn frazil_tensor_new(dtype: DTypeNumber, sizes: Sizes, rank: Len, data: Data, len: DataLen, out: Out<Tensor>) -> Failure;
    fn frazil_tensor_new_strided(dtype: DTypeNumber, sizes: Sizes, strides: Sizes, rank: Len, data: Data, len: DataLen, out: Out<Tensor>) -> Failure;
    fn frazil_tensor_share(dtype: DTypeNumber, sizes: Sizes, rank: Len, data: SharedData, len: DataLen, release: Release, context: Context, out: Out<Tensor>) -> Failure;
    fn frazil_tensor_share_strided(dtype: DTypeNumber, sizes: Sizes, strides: Sizes, rank: Len, data: SharedData, len: DataLen, release: Release, context: Context, out: Out<Tensor>) -> Failure;
    fn frazil_tensor_free(tensor: Taken<Tensor>);
    fn frazil_tensor_dtype(tensor: In<Tensor>) -> i32;
    fn frazil_tensor_rank(tensor: In<Tensor>) -> usize;
    fn frazil_tensor_size(tensor: In<Tensor>, index: usize) -> i64;
    fn frazil_tensor_stride(tensor: In<Tensor>, index: usize) -> i64;
    fn frazil_tensor_is_contiguous(tensor: In<Tensor>) -> bool;
    fn frazil_tensor_to(tensor: In<Tensor>, dtype: DTypeNumber, out: Out<Tensor>) -> Failure;
    fn frazil_tensor_bytes(tensor: In<Tensor>, out: Put<usize>) -> Failure;
    fn frazil_tensor_read(tensor: In<Tensor>, data: Space, len: DataLen) -> Failure;
    fn frazil_trace_options_new() -> New<TraceOptions>;
    fn frazil_trace_options_free(options: Taken<TraceOptions>);
    fn frazil_trace_options_add_name(options: In<TraceOptions>, name: Text) -> Failure;
    fn frazil_trace_options_set_check(options: In<TraceOptions>, check: bool) -> Failure;
    fn frazil_trace_options_add_check_inputs(options: In<TraceOptions>, inputs: Many<Tensor>, len: Len) -> Failure;
    fn frazil_trace_options_set_tolerance(options: In<TraceOptions>, tolerance: f64) -> Failure;
    fn frazil_trace_options_set_strict(options: In<TraceOptions>, strict: bool) -> Failure;
    fn frazil_trace_options_set_force_outplace(options: In<TraceOptions>, force: bool) -> Failure;
    fn frazil_parameters_new(name: Text, out: Out<Parameters>) -> Failure;
    fn frazil_parameters_free(parameters: Taken<Parameters>);
    fn frazil_parameters_add(parameters: In<Parameters>, path: Text, tensor: In<Tensor>, is_buffer: bool) -> Failure;
    fn frazil_parameters_share(parameters: In<Parameters>, path: Text, other: Text) -> Failure;
    fn frazil_trace(session: In<Session>, function: TraceFunction, context: Context, inputs: Many<Tensor>, len: Len, options: In<TraceOptions>, out_warnings: OutText, out: Out<Model>) -> Failure;
    fn frazil_trace_module(session: In<Session>, parameters: In<Parameters>, methods: TraceMethods, len: Len, options: In<TraceOptions>, out_warnings: OutText, out: Out<Model>) -> Failure;
    fn frazil_value_none(out: Out<Value>) -> Failure;
    fn frazil_value_bool(value: bool, out: Out<Value>) -> Failure;
    fn frazil_value_int(value: i64, out: Out<Value>) -> Failure;
    fn frazil_value_float(value: f64, out: Out<Value>) -> Failure;
    fn frazil_value_complex(re: f64, im: f64, out: Out<Value>) -> Failure;
    fn frazil_value_device(name: Text, out: Out<Value>) -> Failure;
    fn frazil_value_str(value: Text, out: Out<Value>) -> Failure;
    fn frazil_value_str_of(data: Data, len: DataLen, out: Out<Value>) -> Failure;
    fn frazil_value_convert(session: In<Session>, value: In<Value>, ty: Text, out: Out<Value>) -> Failure;
    fn frazil_value_tensor(tensor: In<Tensor>, out: Out<Value>) -> Failure;
    fn frazil_value_list(session: In<Session>, items: Many<Value>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_value_tuple(items: Many<Value>, len: Len, out: Out<Value>) -> Failure;
    fn frazil_value_free(value: Taken<Value>);
    fn frazil_value_kind(value: In<Value>) -> FrazilValueKind;
    fn frazil_value_as_bool(value: In<Value>, out: Put<bool>) -> Failure;
    fn frazil_value_as_int(value: In<Value>, out: Put<i64>) -> Failure;
    fn frazil_value_as_float(value: In<Value>, out: Put<f64>) -> Failure;
    fn frazil_value_as_str(value: In<Value>, out: OutText) -> Failure;
    fn frazil_value_as_str_bytes(value: In<Value>, out: Out<Bytes>) -> Failure;
    fn frazil_value_as_tensor(value: In<Value>, out: Out<Tensor>) -> Failure;
    fn frazil_value_as_complex(value: In<Value>, re: Put<f64>, im: Put<f64>) -> Failure;
    fn frazil_value_as_device(value: In<Value>, out: OutText) -> Failure;
    fn frazil_value_type(session: In<Session>, value: In<Value>, out: OutText) -> Failure;
    fn frazil_value_repr(session: In<Session>, value: In<Value>, out: OutText) -> Failure;
}
