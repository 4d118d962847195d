// The C interface of the compiler: load, freeze, analyse aliases, compile, run.
//
// `include/frazil.h` is generated from these declarations; `tests/header.rs` compares it, and writes it with
// `FRAZIL_BLESS=1`. The page [docs/c-api.md](https://github.com/frazil-compiler/frazil/blob/main/docs/c-api.md) has a program
// that uses it.
//
// # Rules
//
// - Handles are opaque. The handle that a function returns through its last argument belongs to the caller, who frees it with the function of its type;
//   handles do not depend on each other, and may be freed in any order. `NULL` may be freed.
// - A function that can fail returns an error, which the caller frees, or `NULL`. With an error, no result is written.
// - Text is UTF-8 and ends with a zero byte. A pointer with a length points to that number of elements; it may be `NULL` if the length is 0.
// - Sessions, models, aliases, tensors and options may be used by several threads at once; options only while no thread sets them. An engine and a compiled
//   method run one call at a time: a concurrent call of another thread is an error of kind `FRAZIL_ERROR_KIND_BUSY`.
// - A `NULL` pointer where none is allowed is an error. The caller guarantees that any other pointer is valid and of the documented type.
// - A panic, which would be a bug, ends at this boundary as an error of kind `FRAZIL_ERROR_KIND_INTERNAL`.
//
// Made by cbindgen; see crates/capi.

#ifndef FRAZIL_H
#define FRAZIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Stage of native code: fused kernels, with their shapes and memory, as text.
#define FRAZIL_STAGE_KERNELS 0

// Stage of native code: the kernels in MLIR.
#define FRAZIL_STAGE_MLIR 1

// Stage of native code: the kernels in LLVM IR.
#define FRAZIL_STAGE_LLVM 2

// Stage of native code: the kernels in assembler.
#define FRAZIL_STAGE_ASM 3

// Stage of native code: an object file.
#define FRAZIL_STAGE_OBJECT 4

// Element type: unsigned 8-bit integers. The numbers of element types are PyTorch's.
#define FRAZIL_DTYPE_UINT8 0

// Element type: 8-bit integers.
#define FRAZIL_DTYPE_INT8 1

// Element type: 16-bit integers.
#define FRAZIL_DTYPE_INT16 2

// Element type: 32-bit integers.
#define FRAZIL_DTYPE_INT32 3

// Element type: 64-bit integers.
#define FRAZIL_DTYPE_INT64 4

// Element type: 16-bit floats.
#define FRAZIL_DTYPE_FLOAT16 5

// Element type: 32-bit floats.
#define FRAZIL_DTYPE_FLOAT32 6

// Element type: 64-bit floats.
#define FRAZIL_DTYPE_FLOAT64 7

// Element type: complex numbers of two 16-bit floats.
#define FRAZIL_DTYPE_COMPLEX32 8

// Element type: complex numbers of two 32-bit floats.
#define FRAZIL_DTYPE_COMPLEX64 9

// Element type: complex numbers of two 64-bit floats.
#define FRAZIL_DTYPE_COMPLEX128 10

// Element type: bools, one byte each.
#define FRAZIL_DTYPE_BOOL 11

// Element type: bfloat16, the upper 16 bits of 32-bit floats.
#define FRAZIL_DTYPE_BFLOAT16 15

// The kind of an error.
typedef enum {
  // There is no error.
  FRAZIL_ERROR_KIND_NONE = 0,
  // The call itself is wrong: a NULL pointer, text that is not UTF-8, an index out of range.
  FRAZIL_ERROR_KIND_ARGUMENT = 1,
  // A file could not be read or written.
  FRAZIL_ERROR_KIND_IO = 2,
  // The input is malformed, or a call does not fit it: an unknown method, a tensor of another shape.
  FRAZIL_ERROR_KIND_INPUT = 3,
  // Not supported: unavailable for this model or in this build.
  FRAZIL_ERROR_KIND_UNSUPPORTED = 4,
  // The program raised an exception.
  FRAZIL_ERROR_KIND_RAISED = 5,
  // Anything else.
  FRAZIL_ERROR_KIND_FAILED = 6,
  // A bug in the compiler.
  FRAZIL_ERROR_KIND_INTERNAL = 7,
  // The object runs one call at a time, and another thread uses it. Nothing has been run.
  FRAZIL_ERROR_KIND_BUSY = 8,
  // A limit of the session was exceeded, or the allowance for reading an archive of its size.
  FRAZIL_ERROR_KIND_LIMIT = 9,
  // The work was interrupted.
  FRAZIL_ERROR_KIND_INTERRUPTED = 10,
} FrazilErrorKind;

// The kind of a value.
typedef enum {
  // `None`.
  FRAZIL_VALUE_KIND_NONE = 0,
  // A bool.
  FRAZIL_VALUE_KIND_BOOL = 1,
  // An integer.
  FRAZIL_VALUE_KIND_INT = 2,
  // A float.
  FRAZIL_VALUE_KIND_FLOAT = 3,
  // A string.
  FRAZIL_VALUE_KIND_STR = 4,
  // A tensor.
  FRAZIL_VALUE_KIND_TENSOR = 5,
  // A list.
  FRAZIL_VALUE_KIND_LIST = 6,
  // A tuple.
  FRAZIL_VALUE_KIND_TUPLE = 7,
  // A dictionary, whose items are tuples of a key and a value.
  FRAZIL_VALUE_KIND_DICT = 8,
  // A value of another kind. It can be passed to calls, and has no accessors here.
  FRAZIL_VALUE_KIND_OTHER = 9,
  // A complex number.
  FRAZIL_VALUE_KIND_COMPLEX = 10,
  // A device.
  FRAZIL_VALUE_KIND_DEVICE = 11,
  // An object of a class.
  FRAZIL_VALUE_KIND_OBJECT = 12,
  // A member of an enumeration.
  FRAZIL_VALUE_KIND_ENUM = 13,
} FrazilValueKind;

// Alias analysis of the graph of a method. Values are named as in the graph's text, with or without the percent sign.
typedef struct FrazilAliases FrazilAliases;

// Bytes that a function returned.
typedef struct FrazilBytes FrazilBytes;

// A method that was compiled for inputs of given shapes.
typedef struct FrazilCompiled FrazilCompiled;

// An instance of a model: changes that a call makes are visible to the next one.
typedef struct FrazilEngine FrazilEngine;

// An error: a kind, a message, and the places in source or text that it refers to.
typedef struct FrazilError FrazilError;

// A module, or graphs that belong to none. No function changes one: functions that change something return a new model, which shares the weights.
typedef struct FrazilModel FrazilModel;

// The operators of a session. In a traced function they also record: the compiler passes them to the function, which does not free them.
typedef struct FrazilOps FrazilOps;

// Options for freezing, compiling and running. New options have the defaults; where a function takes options, NULL means the defaults.
typedef struct FrazilOptions FrazilOptions;

// The parameters and buffers of a module to be traced, by dotted path.
typedef struct FrazilParameters FrazilParameters;

// State that models share: names and types, the operators, and the passes. Models keep the parts that they need.
typedef struct FrazilSession FrazilSession;

// The signature of a method: its arguments without `self`, and its results.
typedef struct FrazilSignature FrazilSignature;

// A tensor.
typedef struct FrazilTensor FrazilTensor;

// Options for tracing.
typedef struct FrazilTraceOptions FrazilTraceOptions;

// A value.
typedef struct FrazilValue FrazilValue;

// A file that an archive contains beside the model.
typedef struct {
  // Its name.
  const char *name;
  // The content of the file.
  const uint8_t *data;
  // Number of bytes.
  size_t len;
} FrazilExtraFile;

// The element type and the sizes of an input.
typedef struct {
  // Element type: one of `FRAZIL_DTYPE_`.
  int32_t dtype;
  // Number of dimensions.
  size_t rank;
  // The sizes of the dimensions, in elements.
  const int64_t *sizes;
} FrazilInputSpec;

// A size that callers of a library choose.
typedef struct {
  // The name: capital letters, digits and underscores, a letter first.
  const char *name;
  // The smallest size, at least 0.
  int64_t low;
  // The largest size.
  int64_t high;
} FrazilSizeRange;

// A function that runs before `forward` and receives the arguments of the call as a tuple. It may replace them: it writes a tuple, or a single
// value, to `replacement`, which is NULL when the function is called. The arguments belong to the compiler, and so does the replacement once it is
// written. Returns NULL or an error, which ends the call. It must not use the engine.
typedef FrazilError *(*FrazilPreHook)(void *context, const FrazilValue *arguments, FrazilValue **replacement);

// A function that runs after `forward` and receives the arguments of the call, a tuple, and its result. It may replace the result as `FrazilPreHook` replaces
// arguments.
typedef FrazilError *(*FrazilHook)(void *context,
                                   const FrazilValue *arguments,
                                   const FrazilValue *result,
                                   FrazilValue **replacement);

// A function to be traced. It is called with `len` input tensors, which belong to the compiler, and calls operators with `frazil_ops_call` of `ops`,
// which it does not free. It writes its result to `result`: a tensor, or a tuple, list or dictionary of tensors, which belongs to the compiler from
// then on. It returns NULL or an error, which ends tracing. It runs several times, on the calling thread, if the trace is checked.
typedef FrazilError *(*FrazilTraceFunction)(void *context,
                                            const FrazilOps *ops,
                                            const FrazilValue *const *inputs,
                                            size_t len,
                                            FrazilValue **result);

// A method of a module to be traced.
typedef struct {
  // Its name: `forward`.
  const char *name;
  // The function to trace.
  FrazilTraceFunction function;
  // The argument that the function is called with.
  void *context;
  // Example inputs.
  const FrazilTensor *const *inputs;
  // Number of inputs.
  size_t len;
} FrazilTraceMethod;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Analyses the graph of a method; for a model that is a graph, analyses this graph.
FrazilError *frazil_aliases_new(const FrazilModel *model, const char *method, FrazilAliases **out);

// Frees an analysis.
void frazil_aliases_free(FrazilAliases *aliases);

// Returns whether two values may be one object, or tensors on one storage.
FrazilError *frazil_aliases_may_alias(const FrazilAliases *aliases, const char *a, const char *b, bool *out);

// Returns whether some object may be reached from both values.
FrazilError *frazil_aliases_may_contain_alias(const FrazilAliases *aliases, const char *a, const char *b, bool *out);

// Returns whether some node may write to a value.
FrazilError *frazil_aliases_has_writers(const FrazilAliases *aliases, const char *value, bool *out);

// Returns whether a value may be held outside of the graph.
FrazilError *frazil_aliases_may_alias_wildcard(const FrazilAliases *aliases, const char *value, bool *out);

// Returns whether a value, or something in it, may be reachable from outside once the graph has run.
FrazilError *frazil_aliases_escapes(const FrazilAliases *aliases, const char *value, bool *out);

// Returns the whole alias analysis of a model as text, in PyTorch's layout, and the reason why each attribute that freezing keeps is kept.
FrazilError *frazil_model_alias_text(const FrazilModel *model,
                                     char **out);

// Writes the model as a `.pt` archive with extra files, beside those that it was loaded with or in place of them.
FrazilError *frazil_model_save_with(const FrazilModel *model,
                                    const char *path,
                                    const FrazilExtraFile *files,
                                    size_t len);

// Returns the model as a `.pt` archive in memory, with extra files.
FrazilError *frazil_model_save_bytes(const FrazilModel *model,
                                     const FrazilExtraFile *files,
                                     size_t len,
                                     FrazilBytes **out);

// Returns the number of extra files that a model was loaded with.
FrazilError *frazil_model_extra_file_count(const FrazilModel *model, size_t *out);

// Returns the name of extra file number `index` of a model.
FrazilError *frazil_model_extra_file_name(const FrazilModel *model, size_t index, char **out);

// Returns the content of an extra file of a model.
FrazilError *frazil_model_extra_file(const FrazilModel *model, const char *name, FrazilBytes **out);

// Returns the bytes, which live as long as their handle; NULL for NULL.
const uint8_t *frazil_bytes_data(const FrazilBytes *bytes);

// Returns the number of bytes that there are; 0 for NULL.
size_t frazil_bytes_len(const FrazilBytes *bytes);

// Frees bytes.
void frazil_bytes_free(FrazilBytes *bytes);

// Returns the attribute at a dotted path: `encoder.scale`.
FrazilError *frazil_model_attribute(const FrazilModel *model, const char *path, FrazilValue **out);

// Returns whether there is an attribute at a dotted path.
FrazilError *frazil_model_has_attribute(const FrazilModel *model, const char *path, bool *out);

// Returns the model with another value of the attribute at a dotted path, which must be of the attribute's type.
FrazilError *frazil_model_set_attribute(const FrazilModel *model,
                                        const char *path,
                                        const FrazilValue *value,
                                        FrazilModel **out);

// Returns the model with one more parameter.
FrazilError *frazil_model_register_parameter(const FrazilModel *model,
                                             const char *name,
                                             const FrazilTensor *tensor,
                                             bool requires_grad,
                                             FrazilModel **out);

// Returns the model with one more buffer. State dictionaries contain the buffer only if it is persistent.
FrazilError *frazil_model_register_buffer(const FrazilModel *model,
                                          const char *name,
                                          const FrazilTensor *tensor,
                                          bool persistent,
                                          FrazilModel **out);

// Returns the model with one more attribute, of the value's type.
FrazilError *frazil_model_register_attribute(const FrazilModel *model,
                                             const char *name,
                                             const FrazilValue *value,
                                             FrazilModel **out);

// Returns the model with another module at a dotted path, which replaces an existing one. Both modules belong to one session.
FrazilError *frazil_model_set_submodule(const FrazilModel *model,
                                        const char *path,
                                        const FrazilModel *child,
                                        FrazilModel **out);

// Returns the model with the functions of a source text as methods; each has the module as its first argument.
FrazilError *frazil_model_define(const FrazilModel *model, const char *source, FrazilModel **out);

// Returns a dictionary of all attributes but submodules, by dotted path; without `recurse` only those of the module itself.
FrazilError *frazil_model_named_attributes(const FrazilModel *model,
                                           bool recurse,
                                           FrazilValue **out);

// Returns a dictionary of parameters, by dotted path; without `recurse` only those of the module itself.
FrazilError *frazil_model_named_parameters(const FrazilModel *model, bool recurse, FrazilValue **out);

// Returns a dictionary of buffers, by dotted path; without `recurse` only those of the module itself.
FrazilError *frazil_model_named_buffers(const FrazilModel *model, bool recurse, FrazilValue **out);

// Returns a dictionary from the dotted path of each module to the name of its class; the path of the module itself is empty.
FrazilError *frazil_model_named_modules(const FrazilModel *model,
                                        FrazilValue **out);

// Compiles `forward` of a frozen model for inputs of these shapes.
FrazilError *frazil_model_compile(const FrazilModel *model,
                                  const FrazilInputSpec *inputs,
                                  size_t len,
                                  const FrazilOptions *options,
                                  FrazilCompiled **out);

// Returns the text or bytes of a stage of native code for a method of a frozen model, for inputs of these shapes. `stage` is one of `FRAZIL_STAGE_`.
FrazilError *frazil_model_emit(const FrazilModel *model,
                               const char *method,
                               const FrazilInputSpec *inputs,
                               size_t len,
                               int32_t stage,
                               const FrazilOptions *options,
                               FrazilBytes **out);

// Writes a shared library that runs a method of a frozen model on inputs of these shapes, and its C header beside it.
FrazilError *frazil_model_write_library(const FrazilModel *model,
                                        const char *method,
                                        const FrazilInputSpec *inputs,
                                        size_t len,
                                        const FrazilOptions *options,
                                        const char *path);

// Writes a shared library that runs a method of a frozen model on inputs whose sizes are in these ranges, and its C header beside it. In the shapes of the
// inputs, -1 stands for the size of the first range, -2 for that of the second, and so on.
FrazilError *frazil_model_write_range_library(const FrazilModel *model,
                                              const char *method,
                                              const FrazilInputSpec *inputs,
                                              size_t len,
                                              const FrazilSizeRange *ranges,
                                              size_t range_len,
                                              const FrazilOptions *options,
                                              const char *path);

// Returns the number of inputs that a compiled method takes; 0 for NULL.
size_t frazil_compiled_input_count(const FrazilCompiled *compiled);

// Returns the name that the program has for input number `index`, which lives as long as the compiled method; NULL when there is none.
const char *frazil_compiled_input_name(const FrazilCompiled *compiled,
                                       size_t index);

// Returns the number of tensors that the result of a compiled method has; 0 for NULL.
size_t frazil_compiled_output_count(const FrazilCompiled *compiled);

// Returns the name that the program has for tensor number `index` of the result (a variable, a field, a key), which lives as long as the compiled method;
// NULL when there is none.
const char *frazil_compiled_output_name(const FrazilCompiled *compiled,
                                        size_t index);

// Frees a compiled method.
void frazil_compiled_free(FrazilCompiled *compiled);

// Runs a compiled method on tensors of the element types and sizes that it was compiled for; others are an error.
FrazilError *frazil_compiled_run(const FrazilCompiled *compiled,
                                 const FrazilTensor *const *inputs,
                                 size_t len,
                                 FrazilValue **out);

// Returns the number of items that a list, tuple or dictionary has.
FrazilError *frazil_value_count(const FrazilValue *value, size_t *out);

// Returns item number `index` of a list, tuple or dictionary.
FrazilError *frazil_value_item(const FrazilValue *value, size_t index, FrazilValue **out);

// Returns a dictionary with these keys and values, in this order. Keys have one type: strings, integers, floats, complex numbers, bools or
// tensors. Values have one type too, and some may be `None`. Without entries the dictionary is one from strings to tensors. Of equal keys the last
// value counts.
FrazilError *frazil_value_dict(const FrazilSession *session,
                               const FrazilValue *const *keys,
                               const FrazilValue *const *items,
                               size_t len,
                               FrazilValue **out);

// Returns the key and value of entry number `index` of a dictionary, in the order in which they were added. Either place may be NULL.
FrazilError *frazil_value_entry(const FrazilValue *value,
                                size_t index,
                                FrazilValue **out_key,
                                FrazilValue **out_value);

// Returns the value of a dictionary at a key. A missing key is an error of kind `FRAZIL_ERROR_KIND_ARGUMENT`; `frazil_value_has` checks for it.
FrazilError *frazil_value_get(const FrazilValue *value,
                              const FrazilValue *key,
                              FrazilValue **out);

// Returns whether a dictionary has a key.
FrazilError *frazil_value_has(const FrazilValue *value, const FrazilValue *key, bool *out);

// Returns an engine, which freezes the model and compiles each method for the arguments of its calls, or interprets it if the options say so.
FrazilError *frazil_engine_new(const FrazilModel *model,
                               const FrazilOptions *options,
                               FrazilEngine **out);

// Returns an engine for the model in a file. With a `cache_dir` among the options, the file is read and the model frozen only when a method is called for
// which no compiled code is stored.
FrazilError *frazil_engine_load(const FrazilSession *session,
                                const char *path,
                                const FrazilOptions *options,
                                FrazilEngine **out);

// Returns the model with the current attributes of an engine, which its calls may have changed.
FrazilError *frazil_engine_snapshot(const FrazilEngine *engine, FrazilModel **out);

// Returns the graph that an engine runs for a method, as text: the frozen one, for engines that compile.
FrazilError *frazil_engine_graph(const FrazilEngine *engine, const char *method, char **out);

// Frees an engine.
void frazil_engine_free(FrazilEngine *engine);

// Calls a method. Arguments are checked and converted as PyTorch does for arguments from Python; missing ones at the end take their defaults.
// No hooks run, not even for `forward`: `frazil_engine_call_module` calls the module. The path of a submodule without a method's name
// (`encoder`) calls the submodule, with its hooks.
FrazilError *frazil_engine_call(const FrazilEngine *engine,
                                const char *method,
                                const FrazilValue *const *arguments,
                                size_t len,
                                FrazilValue **out);

// Calls the module: its forward pre-hooks, `forward`, its forward hooks. Without hooks, this is a call of `forward`.
FrazilError *frazil_engine_call_module(const FrazilEngine *engine,
                                       const FrazilValue *const *arguments,
                                       size_t len,
                                       FrazilValue **out);

// Calls a method, or the module where `method` is NULL, with arguments by position and `named_len` more by name.
FrazilError *frazil_engine_call_named(const FrazilEngine *engine,
                                      const char *method,
                                      const FrazilValue *const *arguments,
                                      size_t len,
                                      const char *const *names,
                                      const FrazilValue *const *named,
                                      size_t named_len,
                                      FrazilValue **out);

// Returns one line for each method that an engine compiled, and one line with the reason for each method that it did not compile.
FrazilError *frazil_engine_notes(const FrazilEngine *engine,
                                 char **out);

// Returns the number of seconds that an engine has spent on compiling so far.
FrazilError *frazil_engine_compile_seconds(const FrazilEngine *engine, double *out);

// Returns the kind of an error; `FRAZIL_ERROR_KIND_NONE` for NULL.
FrazilErrorKind frazil_error_kind(const FrazilError *error);

// Returns the message of an error, which lives as long as the error; empty for NULL.
const char *frazil_error_message(const FrazilError *error);

// Returns the number of places in source or text that an error refers to; 0 for NULL.
size_t frazil_error_place_count(const FrazilError *error);

// Returns place number `index` that an error refers to, as `file:line:column`, the innermost call first. It lives as long as the error; NULL if there is none.
const char *frazil_error_place(const FrazilError *error,
                               size_t index);

// Returns a new error, for a callback that fails: with kind `FRAZIL_ERROR_KIND_RAISED`, the program raises there. The compiler frees an error that a
// callback returns. Text that is NULL or not UTF-8 means no message.
FrazilError *frazil_error_new(int32_t kind,
                              const char *message);

// Frees an error.
void frazil_error_free(FrazilError *error);

// Runs `hook` on the arguments of every later call of the module: `frazil_engine_call_module`, and not `frazil_engine_call`, not even of `forward`. The
// hook is called on the thread of the call. Unless it is NULL, `release` is called with `context` once the hook is removed or the engine freed. Returns
// a number for `frazil_engine_remove_hook`.
FrazilError *frazil_engine_register_forward_pre_hook(const FrazilEngine *engine,
                                                     FrazilPreHook hook,
                                                     void *context,
                                                     void (*release)(void*),
                                                     uint64_t *out);

// Runs `hook` on the arguments and the result of every later call of the module, as `frazil_engine_register_forward_pre_hook` does before it.
FrazilError *frazil_engine_register_forward_hook(const FrazilEngine *engine,
                                                 FrazilHook hook,
                                                 void *context,
                                                 void (*release)(void*),
                                                 uint64_t *out);

// Removes a hook. Returns false if there is no hook with this number, or it was removed before.
FrazilError *frazil_engine_remove_hook(const FrazilEngine *engine, uint64_t hook, bool *out);

// Frees text that a function returned.
void frazil_string_free(char *text);

// Returns the version of the compiler: `0.1.0`. The caller does not free it.
const char *frazil_version(void);

// Returns a session with the operators of PyTorch and the standard passes.
FrazilError *frazil_session_new(FrazilSession **out);

// Returns a session whose models are read, transformed and run within limits. These are given as text: `untrusted` for the limits for untrusted input,
// and `NAME=VALUE`, with commas between: `untrusted,memory=2G`. The names are `memory` (bytes, or with K, M or G), `nodes`, `load-time`,
// `freeze-time`, `pass-time`, `compile-time`, `call-time` (seconds), `repetitions` and `elements`. If one is exceeded, the error's kind is
// `FRAZIL_ERROR_KIND_LIMIT`.
FrazilError *frazil_session_new_with_limits(const char *limits,
                                            FrazilSession **out);

// Frees a session.
void frazil_session_free(FrazilSession *session);

// Reads a `.pt` archive, `.ir` text or TorchScript source.
FrazilError *frazil_model_load(const FrazilSession *session, const char *path, FrazilModel **out);

// Reads a `.pt` archive, `.ir` text or TorchScript source from memory. `name` is used in messages, and its extension distinguishes source (`.py`) from `.ir`
// text.
FrazilError *frazil_model_load_bytes(const FrazilSession *session,
                                     const char *name,
                                     const uint8_t *bytes,
                                     size_t len,
                                     FrazilModel **out);

// Frees a model.
void frazil_model_free(FrazilModel *model);

// Returns the frozen form of a model, as `torch.jit.freeze` returns it.
FrazilError *frazil_model_freeze(const FrazilModel *model, const FrazilOptions *options, FrazilModel **out);

// Returns the model in evaluation mode: the training flag of the module and of all below it is off. Functions and graphs have no mode.
FrazilError *frazil_model_eval(const FrazilModel *model,
                               FrazilModel **out);

// Returns the model in training mode, or in evaluation mode where `mode` is false. Functions and graphs have no mode.
FrazilError *frazil_model_train(const FrazilModel *model, bool mode, FrazilModel **out);

// Returns whether a model is in training mode; functions and graphs are not.
FrazilError *frazil_model_is_training(const FrazilModel *model, bool *out);

// Returns the model optimised for inference, as `torch.jit.optimize_for_inference` returns it.
FrazilError *frazil_model_optimize_for_inference(const FrazilModel *model,
                                                 const FrazilOptions *options,
                                                 FrazilModel **out);

// Returns the model after the passes of a pipeline: `inline,constant-propagation,dce`.
FrazilError *frazil_model_run_passes(const FrazilModel *model, const char *pipeline, FrazilModel **out);

// Writes the model as a `.pt` archive.
FrazilError *frazil_model_save(const FrazilModel *model, const char *path);

// Writes the model as `.ir` text, with its larger tensors in a `.safetensors` file beside it.
FrazilError *frazil_model_save_ir(const FrazilModel *model, const char *path);

// Returns the graphs of the model in the language of Graphviz.
FrazilError *frazil_model_dot(const FrazilModel *model, char **out);

// Returns a module whose `forward` is the function of that name, or the only one, as PyTorch saves functions. Modules are returned unchanged.
FrazilError *frazil_model_function(const FrazilModel *model,
                                   const char *name,
                                   FrazilModel **out);

// Returns the model after `__setstate__` of its objects' classes has restored their attributes from the archived state. Engines and freezing do
// this by themselves.
FrazilError *frazil_model_restored(const FrazilModel *model,
                                   FrazilModel **out);

// Returns the model as `.ir` text.
FrazilError *frazil_model_ir(const FrazilModel *model, char **out);

// Returns the model as TorchScript source: one method of it, or all methods if `method` is NULL.
FrazilError *frazil_model_code(const FrazilModel *model, const char *method, char **out);

// Returns the source of one method, and the constants that it refers to as `CONSTANTS.c0`, `CONSTANTS.c1`, ...: a dictionary with the keys `c0`, `c1`, ...
FrazilError *frazil_model_code_with_constants(const FrazilModel *model,
                                              const char *method,
                                              char **out_code,
                                              FrazilValue **out_constants);

// Returns the graph of one method as text.
FrazilError *frazil_model_graph(const FrazilModel *model, const char *method, char **out);

// Returns the name of the Python class of a model. A model that consists of functions has the class name `Functions`.
FrazilError *frazil_model_class_name(const FrazilModel *model, char **out);

// Returns the number of methods that a model has.
FrazilError *frazil_model_method_count(const FrazilModel *model, size_t *out);

// Returns the name of method number `index` of a model.
FrazilError *frazil_model_method_name(const FrazilModel *model, size_t index, char **out);

// Returns the qualified name of the class of an object, a member of an enumeration or a named tuple.
FrazilError *frazil_value_class(const FrazilSession *session, const FrazilValue *value, char **out);

// Returns the name of field number `index` of a named tuple. Its items are accessed like those of tuples.
FrazilError *frazil_value_field_name(const FrazilSession *session, const FrazilValue *value, size_t index, char **out);

// Returns the number of attributes that an object has. `model` is the model that the object came from, or one derived from it.
FrazilError *frazil_value_attribute_count(const FrazilModel *model,
                                          const FrazilValue *value,
                                          size_t *out);

// Returns the name of attribute number `index` of an object.
FrazilError *frazil_value_attribute_name(const FrazilModel *model, const FrazilValue *value, size_t index, char **out);

// Returns the attribute of an object with a given name.
FrazilError *frazil_value_attribute(const FrazilModel *model,
                                    const FrazilValue *value,
                                    const char *name,
                                    FrazilValue **out);

// Returns a new object of a class of the model, with values for all of its attributes. Its `__init__` does not run.
FrazilError *frazil_value_object(const FrazilModel *model,
                                 const char *class_,
                                 const char *const *names,
                                 const FrazilValue *const *items,
                                 size_t len,
                                 FrazilValue **out);

// Returns a member of an enumeration of the model.
FrazilError *frazil_value_enum(const FrazilModel *model, const char *class_, const char *member, FrazilValue **out);

// Returns the name of a member of an enumeration.
FrazilError *frazil_value_enum_name(const FrazilValue *value, char **out);

// Returns the value of a member of an enumeration.
FrazilError *frazil_value_enum_value(const FrazilValue *value, FrazilValue **out);

// Returns the operators of a session, to be called on tensors.
FrazilError *frazil_ops_new(const FrazilSession *session, FrazilOps **out);

// Frees operators of `frazil_ops_new`.
void frazil_ops_free(FrazilOps *ops);

// Calls an operator by its name with namespace, `aten::add`, with arguments by position and `named_len` more by name. The overload is chosen by the
// arguments, as in PyTorch; element types are passed by their numbers. A tensor that an in-place operator changes is changed for all values that share
// it. Returns a tuple for several results, and `None` for none.
FrazilError *frazil_ops_call(const FrazilOps *ops,
                             const char *operator_,
                             const FrazilValue *const *arguments,
                             size_t len,
                             const char *const *names,
                             const FrazilValue *const *named,
                             size_t named_len,
                             FrazilValue **out);

// Calls a function of a model, such as one of source, on tensors. In a traced function the call itself is recorded, with the control flow that the function has.
FrazilError *frazil_ops_call_function(const FrazilOps *ops,
                                      const FrazilModel *functions,
                                      const char *name,
                                      const FrazilValue *const *arguments,
                                      size_t len,
                                      FrazilValue **out);

// Returns the parameter or buffer at a dotted path of a traced method.
FrazilError *frazil_ops_parameter(const FrazilOps *ops, const char *path, FrazilValue **out);

// Sets the source location of the following calls, for the graph that is being recorded and for warnings: a file of the caller and a line in it. If `file` is
// NULL, the calls have no location, as before the first call of this function.
FrazilError *frazil_ops_set_place(const FrazilOps *ops,
                                  const char *file,
                                  uint32_t line);

// Returns true if calls are recorded, that is, in a traced function.
FrazilError *frazil_ops_is_tracing(const FrazilOps *ops, bool *out);

// Gives a tensor a name in the graph that is being recorded.
FrazilError *frazil_ops_name(const FrazilOps *ops, const FrazilValue *tensor, const char *name);

// Returns the size of dimension `dim` as a 0-d tensor. A negative `dim` counts from the end. A graph that is being recorded computes the size at run time. In
// contrast, the integer that `frazil_tensor_size` returns becomes a constant of the graph.
FrazilError *frazil_ops_size(const FrazilOps *ops,
                             const FrazilValue *tensor,
                             int64_t dim,
                             FrazilValue **out);

// Returns the only element of a tensor, as a number or bool. In a graph that is being recorded, the element becomes a constant, and a warning is issued.
FrazilError *frazil_ops_item(const FrazilOps *ops,
                             const FrazilValue *tensor,
                             FrazilValue **out);

// Returns new options with the defaults: native code for this machine, one thread.
FrazilOptions *frazil_options_new(void);

// Frees options.
void frazil_options_free(FrazilOptions *options);

// Sets the number of threads that a run may use. Default: 1.
FrazilError *frazil_options_set_threads(FrazilOptions *options, size_t threads);

// Sets whether an engine puts the model into evaluation mode first. Default: false; a model in training mode runs as it is.
FrazilError *frazil_options_set_eval(FrazilOptions *options,
                                     bool eval);

// Sets whether an engine interprets the model as it is, instead of freezing and compiling it. Default: false.
FrazilError *frazil_options_set_interpret(FrazilOptions *options, bool interpret);

// Sets whether it is an error if an engine cannot compile a method; otherwise the interpreter runs the method. Default: false.
FrazilError *frazil_options_set_strict(FrazilOptions *options,
                                       bool strict);

// Sets whether operators are fused into one kernel where that saves passes over memory. Default: true.
FrazilError *frazil_options_set_fusion(FrazilOptions *options, bool fuse);

// Sets the number of shapes of a method that get code of their own, in the order of their first calls. All other shapes share code, which gives the same
// results. Default: 2.
FrazilError *frazil_options_set_static_shapes(FrazilOptions *options,
                                              size_t most);

// Sets the maximum number of call signatures for which an engine compiles a method; it interprets others. Default: unlimited.
FrazilError *frazil_options_set_specialisations(FrazilOptions *options,
                                                size_t most);

// Sets whether freezing may apply foldings that change the rounding of results, such as a batch norm into a convolution. Default: true.
FrazilError *frazil_options_set_optimize_numerics(FrazilOptions *options,
                                                  bool optimize);

// Adds a method that will be called, which freezing keeps. Unless some are added, that is `forward`.
FrazilError *frazil_options_add_method(FrazilOptions *options, const char *method);

// Adds the dotted name of an attribute or method that freezing keeps.
FrazilError *frazil_options_preserve(FrazilOptions *options, const char *name);

// Sets the processor that code is compiled for: `host`, an x86-64 level (`x86-64-v3`), or a name that LLVM knows. Engines compile for the host only.
FrazilError *frazil_options_set_target_cpu(FrazilOptions *options,
                                           const char *cpu);

// Sets the prefix of the function names in a library: a C identifier.
FrazilError *frazil_options_set_name(FrazilOptions *options, const char *name);

// Sets a directory that stores native code across processes.
FrazilError *frazil_options_set_cache_dir(FrazilOptions *options, const char *path);

// Sets the maximum size in bytes of the directory that stores native code. Beyond it, the files that have not been used for the longest time are deleted.
// Default: 2 GiB.
FrazilError *frazil_options_set_cache_bytes(FrazilOptions *options,
                                            uint64_t bytes);

// Sets a file of tuning results: the kernel variants that were measured to be the fastest on this processor. Kernels that it does not contain yet are
// measured, and added.
FrazilError *frazil_options_set_tune(FrazilOptions *options,
                                     const char *path);

// Returns the signature of a method; the methods of submodules are named by dotted path.
FrazilError *frazil_model_signature(const FrazilModel *model, const char *method, FrazilSignature **out);

// Frees a signature.
void frazil_signature_free(FrazilSignature *signature);

// Returns the signature as PyTorch prints it, which lives as long as the signature: `forward(__torch__.Net self, Tensor x, int n=3) -> Tensor`. NULL for NULL.
const char *frazil_signature_text(const FrazilSignature *signature);

// Returns the number of arguments that the method takes; 0 for NULL.
size_t frazil_signature_argument_count(const FrazilSignature *signature);

// Returns the name of argument number `index`, which lives as long as the signature; NULL when there is none.
const char *frazil_signature_argument_name(const FrazilSignature *signature, size_t index);

// Returns the type of argument number `index`, as annotations write it: `Optional[List[int]]`. It lives as long as the signature; NULL when there is none.
const char *frazil_signature_argument_type(const FrazilSignature *signature,
                                           size_t index);

// Returns whether argument number `index` may be given by name only.
bool frazil_signature_argument_by_name_only(const FrazilSignature *signature, size_t index);

// Returns whether argument number `index` may be left out.
bool frazil_signature_argument_has_default(const FrazilSignature *signature, size_t index);

// Returns the default of argument number `index`.
FrazilError *frazil_signature_argument_default(const FrazilSignature *signature, size_t index, FrazilValue **out);

// Returns the number of results that the method has; 0 for NULL.
size_t frazil_signature_result_count(const FrazilSignature *signature);

// Returns the name of the variable in result number `index`, which lives as long as the signature; empty if it has none, NULL if there is no such result.
const char *frazil_signature_result_name(const FrazilSignature *signature,
                                         size_t index);

// Returns the type of result number `index`, which lives as long as the signature; NULL when there is none.
const char *frazil_signature_result_type(const FrazilSignature *signature, size_t index);

// Returns the position of the argument called `name`.
FrazilError *frazil_signature_find_argument(const FrazilSignature *signature, const char *name, size_t *out);

// Returns the parameters and persistent buffers of a model, in order: a dictionary from dotted names to tensors.
FrazilError *frazil_model_state_dict(const FrazilModel *model, FrazilValue **out);

// Returns the model with the tensors of a state dictionary in place of its own, converted to the element types of the model. Other sizes are
// an error and, with `strict`, so are missing and unexpected names. These are returned as lists of strings if `missing` and `unexpected` are
// not NULL.
FrazilError *frazil_model_load_state_dict(const FrazilModel *model,
                                          const FrazilValue *state,
                                          bool strict,
                                          FrazilValue **missing,
                                          FrazilValue **unexpected,
                                          FrazilModel **out);

// Reads a state dictionary from a `.safetensors` file.
FrazilError *frazil_read_safetensors(const char *path, FrazilValue **out);

// Writes a state dictionary as a `.safetensors` file.
FrazilError *frazil_write_safetensors(const FrazilValue *state, const char *path);

// Returns the model with its floating-point and complex parameters and buffers converted to an element type of one of these kinds: `Module.to`.
FrazilError *frazil_model_to(const FrazilModel *model,
                             int32_t dtype,
                             FrazilModel **out);

// Returns the model with all parameters and buffers converted to an element type: `Module.type`.
FrazilError *frazil_model_to_type(const FrazilModel *model, int32_t dtype, FrazilModel **out);

// Returns the model with its floating-point parameters and buffers converted to 16-bit floats.
FrazilError *frazil_model_half(const FrazilModel *model, FrazilModel **out);

// Returns the model with its floating-point parameters and buffers converted to bfloat16.
FrazilError *frazil_model_bfloat16(const FrazilModel *model, FrazilModel **out);

// Returns the model with its floating-point parameters and buffers converted to 32-bit floats.
FrazilError *frazil_model_float(const FrazilModel *model, FrazilModel **out);

// Returns the model with its floating-point parameters and buffers converted to 64-bit floats.
FrazilError *frazil_model_double(const FrazilModel *model, FrazilModel **out);

// Returns the model with the `requires_grad` flag of all parameters set or cleared. Archives store this flag.
FrazilError *frazil_model_requires_grad(const FrazilModel *model, bool requires_grad, FrazilModel **out);

// Returns a dense tensor with a copy of `len` bytes of elements.
FrazilError *frazil_tensor_new(int32_t dtype,
                               const int64_t *sizes,
                               size_t rank,
                               const void *data,
                               size_t len,
                               FrazilTensor **out);

// Returns a tensor with a copy of `len` bytes, whose elements are selected by the strides, counted in elements: a dimension of size `n` and stride `s`
// has the elements `0`, `s`, ... `(n - 1) * s`.
FrazilError *frazil_tensor_new_strided(int32_t dtype,
                                       const int64_t *sizes,
                                       const int64_t *strides,
                                       size_t rank,
                                       const void *data,
                                       size_t len,
                                       FrazilTensor **out);

// Returns a dense tensor over the caller's memory, which is neither copied nor written: operations that change the tensor copy it first. The
// caller does not modify the memory until `release`, unless that is NULL, is called with `context`; that happens once, on any thread, after the
// last use. With an error, `release` is not called.
FrazilError *frazil_tensor_share(int32_t dtype,
                                 const int64_t *sizes,
                                 size_t rank,
                                 const void *data,
                                 size_t len,
                                 void (*release)(void*),
                                 void *context,
                                 FrazilTensor **out);

// Returns a tensor over the caller's memory as by `frazil_tensor_share`, with strides as in `frazil_tensor_new_strided`.
FrazilError *frazil_tensor_share_strided(int32_t dtype,
                                         const int64_t *sizes,
                                         const int64_t *strides,
                                         size_t rank,
                                         const void *data,
                                         size_t len,
                                         void (*release)(void*),
                                         void *context,
                                         FrazilTensor **out);

// Frees a tensor.
void frazil_tensor_free(FrazilTensor *tensor);

// Returns the element type of a tensor: one of `FRAZIL_DTYPE_`, or PyTorch's code of another element type; -1 for NULL.
int32_t frazil_tensor_dtype(const FrazilTensor *tensor);

// Returns the number of a tensor's dimensions; 0 for NULL.
size_t frazil_tensor_rank(const FrazilTensor *tensor);

// Returns the size of dimension `index` of a tensor; -1 when there is none.
int64_t frazil_tensor_size(const FrazilTensor *tensor, size_t index);

// Returns the stride of dimension `index` of a tensor, in elements; -1 when there is none.
int64_t frazil_tensor_stride(const FrazilTensor *tensor, size_t index);

// Returns whether a tensor's elements are contiguous in memory, the last dimension fastest; false for NULL.
bool frazil_tensor_is_contiguous(const FrazilTensor *tensor);

// Returns a tensor with the same elements, converted to another element type.
FrazilError *frazil_tensor_to(const FrazilTensor *tensor, int32_t dtype, FrazilTensor **out);

// Returns the number of bytes of a tensor's elements.
FrazilError *frazil_tensor_bytes(const FrazilTensor *tensor, size_t *out);

// Copies a tensor's elements, the last dimension fastest, to `data`. `len` must be the exact number of bytes.
FrazilError *frazil_tensor_read(const FrazilTensor *tensor, void *data, size_t len);

// Returns new options: the trace is checked on its example inputs.
FrazilTraceOptions *frazil_trace_options_new(void);

// Frees options.
void frazil_trace_options_free(FrazilTraceOptions *options);

// Adds the name of the next input; inputs without names are called `x`, `x1`, `x2`, ...
FrazilError *frazil_trace_options_add_name(FrazilTraceOptions *options, const char *name);

// Sets whether the trace is run, made again and compared. Default: true.
FrazilError *frazil_trace_options_set_check(FrazilTraceOptions *options, bool check);

// Adds inputs of the first method for the comparison, in place of the example inputs.
FrazilError *frazil_trace_options_add_check_inputs(FrazilTraceOptions *options,
                                                   const FrazilTensor *const *inputs,
                                                   size_t len);

// Sets the relative tolerance of results when the trace is checked. Default: 1e-5.
FrazilError *frazil_trace_options_set_tolerance(FrazilTraceOptions *options, double tolerance);

// Sets whether lists and dictionaries are refused as results. Default: true.
FrazilError *frazil_trace_options_set_strict(FrazilTraceOptions *options, bool strict);

// Sets whether in-place operators are recorded as the variants that return new tensors. Default: false.
FrazilError *frazil_trace_options_set_force_outplace(FrazilTraceOptions *options, bool force);

// Returns an empty set of parameters, of a module whose class is called `name`.
FrazilError *frazil_parameters_new(const char *name, FrazilParameters **out);

// Frees parameters.
void frazil_parameters_free(FrazilParameters *parameters);

// Adds a parameter at a dotted path, or a buffer where `is_buffer` is set.
FrazilError *frazil_parameters_add(FrazilParameters *parameters,
                                   const char *path,
                                   const FrazilTensor *tensor,
                                   bool is_buffer);

// Adds the parameter or buffer at `other` under a second path.
FrazilError *frazil_parameters_share(FrazilParameters *parameters, const char *path, const char *other);

// Records the calls that a function makes on example inputs as the method `forward`: `torch.jit.trace`. Warnings, one line each, are written to
// `out_warnings`, unless that is NULL.
FrazilError *frazil_trace(const FrazilSession *session,
                          FrazilTraceFunction function,
                          void *context,
                          const FrazilTensor *const *inputs,
                          size_t len,
                          const FrazilTraceOptions *options,
                          char **out_warnings,
                          FrazilModel **out);

// Records the calls that methods make on parameters and example inputs: `torch.jit.trace_module`. The parameters become attributes, in submodules by
// their dotted paths. Warnings are written as by `frazil_trace`.
FrazilError *frazil_trace_module(const FrazilSession *session,
                                 const FrazilParameters *parameters,
                                 const FrazilTraceMethod *methods,
                                 size_t len,
                                 const FrazilTraceOptions *options,
                                 char **out_warnings,
                                 FrazilModel **out);

// Returns a `None` value.
FrazilError *frazil_value_none(FrazilValue **out);

// Returns a bool.
FrazilError *frazil_value_bool(bool value, FrazilValue **out);

// Returns an integer.
FrazilError *frazil_value_int(int64_t value, FrazilValue **out);

// Returns a float.
FrazilError *frazil_value_float(double value, FrazilValue **out);

// Returns a complex number.
FrazilError *frazil_value_complex(double re, double im, FrazilValue **out);

// Returns a device: `cpu`, `cuda:0`. Programs may name devices other than the host, but cannot use them.
FrazilError *frazil_value_device(const char *name, FrazilValue **out);

// Returns a string.
FrazilError *frazil_value_str(const char *value, FrazilValue **out);

// Returns a string of `len` bytes, of which some may be zero.
FrazilError *frazil_value_str_of(const uint8_t *data, size_t len, FrazilValue **out);

// Returns a value converted to a type that an annotation names (`List[int]`), as the arguments of methods are: an empty list becomes one of integers, a list a
// tuple.
FrazilError *frazil_value_convert(const FrazilSession *session,
                                  const FrazilValue *value,
                                  const char *ty,
                                  FrazilValue **out);

// Returns a tensor, whose memory the value shares.
FrazilError *frazil_value_tensor(const FrazilTensor *tensor, FrazilValue **out);

// Returns a list of values of one type; tensors for an empty list. Some may be `None`; the element type is optional then.
FrazilError *frazil_value_list(const FrazilSession *session,
                               const FrazilValue *const *items,
                               size_t len,
                               FrazilValue **out);

// Returns a tuple of values.
FrazilError *frazil_value_tuple(const FrazilValue *const *items, size_t len, FrazilValue **out);

// Frees a value.
void frazil_value_free(FrazilValue *value);

// Returns the kind of a value; `FRAZIL_VALUE_KIND_NONE` for NULL.
FrazilValueKind frazil_value_kind(const FrazilValue *value);

// Returns the bool in a value.
FrazilError *frazil_value_as_bool(const FrazilValue *value, bool *out);

// Returns the integer in a value.
FrazilError *frazil_value_as_int(const FrazilValue *value, int64_t *out);

// Returns the float in a value.
FrazilError *frazil_value_as_float(const FrazilValue *value, double *out);

// Returns the string in a value, up to its first zero byte.
FrazilError *frazil_value_as_str(const FrazilValue *value, char **out);

// Returns the bytes of the string in a value, which may include zeros.
FrazilError *frazil_value_as_str_bytes(const FrazilValue *value, FrazilBytes **out);

// Returns the tensor in a value, whose memory is shared.
FrazilError *frazil_value_as_tensor(const FrazilValue *value, FrazilTensor **out);

// Returns the complex number in a value.
FrazilError *frazil_value_as_complex(const FrazilValue *value, double *re, double *im);

// Returns the name of the device in a value.
FrazilError *frazil_value_as_device(const FrazilValue *value, char **out);

// Returns the type of a value, as annotations write it: `List[Tensor]`.
FrazilError *frazil_value_type(const FrazilSession *session, const FrazilValue *value, char **out);

// Returns a value as Python prints it in containers: `[1, 2]`, `'text'`, `tensor([1.])`.
FrazilError *frazil_value_repr(const FrazilSession *session, const FrazilValue *value, char **out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FRAZIL_H */
