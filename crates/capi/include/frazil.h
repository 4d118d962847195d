// The C interface of the compiler: load, freeze, ask about aliases, compile, run.
//
// `include/frazil.h` is made of these declarations; `tests/header.rs` compares, and writes it with `FRAZIL_BLESS=1`. The page
// [docs/c-api.md](https://github.com/frazil-compiler/frazil/blob/main/docs/c-api.md) has a program that uses it.
//
// # Rules
//
// - Handles are opaque. What a function gives through its last argument belongs to the caller, who frees it with the function of its type;
//   nothing is freed by what it was made of, and everything may be freed in any order. `NULL` may be freed.
// - What can fail gives an error, which the caller frees, or `NULL`. With an error, no result is written.
// - Text is UTF-8 and ends with a zero byte. A pointer with a length points to so many elements; it may be `NULL` when that is 0.
// - Sessions, models, aliases, tensors and options may be used by several threads at once; options only as long as nobody sets them. An engine
//   and a compiled method run one call at a time: a call of another thread meanwhile is an error of kind `FRAZIL_ERROR_KIND_BUSY`.
// - A pointer that is `NULL` where that is not allowed is an error. Any other pointer must be what it is said to be: that is the caller's part.
// - A panic, which would be a bug, ends at this border as an error of kind `FRAZIL_ERROR_KIND_INTERNAL`.
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

// Type of elements: unsigned integers of 8 bits. The numbers are PyTorch's.
#define FRAZIL_DTYPE_UINT8 0

// Type of elements: integers of 8 bits.
#define FRAZIL_DTYPE_INT8 1

// Type of elements: integers of 16 bits.
#define FRAZIL_DTYPE_INT16 2

// Type of elements: integers of 32 bits.
#define FRAZIL_DTYPE_INT32 3

// Type of elements: integers of 64 bits.
#define FRAZIL_DTYPE_INT64 4

// Type of elements: floats of 16 bits.
#define FRAZIL_DTYPE_FLOAT16 5

// Type of elements: floats of 32 bits.
#define FRAZIL_DTYPE_FLOAT32 6

// Type of elements: floats of 64 bits.
#define FRAZIL_DTYPE_FLOAT64 7

// Type of elements: complex numbers of two floats of 16 bits.
#define FRAZIL_DTYPE_COMPLEX32 8

// Type of elements: complex numbers of two floats of 32 bits.
#define FRAZIL_DTYPE_COMPLEX64 9

// Type of elements: complex numbers of two floats of 64 bits.
#define FRAZIL_DTYPE_COMPLEX128 10

// Type of elements: truth values, a byte each.
#define FRAZIL_DTYPE_BOOL 11

// Type of elements: the upper halves of floats of 32 bits.
#define FRAZIL_DTYPE_BFLOAT16 15

// What kind of thing went wrong.
typedef enum {
  // There is no error.
  FRAZIL_ERROR_KIND_NONE = 0,
  // The call itself is wrong: a pointer that is NULL, text that is no UTF-8, an index that names nothing.
  FRAZIL_ERROR_KIND_ARGUMENT = 1,
  // A file could not be read or written.
  FRAZIL_ERROR_KIND_IO = 2,
  // The input is malformed, or a call does not fit it: an unknown method, a tensor of another shape.
  FRAZIL_ERROR_KIND_INPUT = 3,
  // Something that is not there, or cannot be done with this model or in this build.
  FRAZIL_ERROR_KIND_UNSUPPORTED = 4,
  // The program raised an exception.
  FRAZIL_ERROR_KIND_RAISED = 5,
  // Anything else.
  FRAZIL_ERROR_KIND_FAILED = 6,
  // A bug in the compiler.
  FRAZIL_ERROR_KIND_INTERNAL = 7,
  // Another thread uses what runs one call at a time. Nothing has been run.
  FRAZIL_ERROR_KIND_BUSY = 8,
  // A limit of the session was exceeded, or what reading an archive of its size may need.
  FRAZIL_ERROR_KIND_LIMIT = 9,
  // The work was interrupted.
  FRAZIL_ERROR_KIND_INTERRUPTED = 10,
} FrazilErrorKind;

// What a value is.
typedef enum {
  // `None`.
  FRAZIL_VALUE_KIND_NONE = 0,
  // A truth value.
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
  // Something else, which can be handed on.
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

// What may alias what in the graph of a method. Values are named as the graph's text names them, with or without the percent sign.
typedef struct FrazilAliases FrazilAliases;

// Bytes that a function gave.
typedef struct FrazilBytes FrazilBytes;

// A method that was compiled for inputs of given shapes.
typedef struct FrazilCompiled FrazilCompiled;

// An instance of a model: what a call changes, the next one sees.
typedef struct FrazilEngine FrazilEngine;

// An error: a kind, a message, and the places in source or text that it is about.
typedef struct FrazilError FrazilError;

// A module, or graphs that belong to none. No function changes one: what changes gives a new one, which shares the weights.
typedef struct FrazilModel FrazilModel;

// The operators of a session. In a traced function, those that record: the function gets them, and does not free them.
typedef struct FrazilOps FrazilOps;

// How to freeze, compile and run. New options are the usual ones; where a function takes options, NULL stands for those.
typedef struct FrazilOptions FrazilOptions;

// The parameters and buffers of a module to be traced, by dotted path.
typedef struct FrazilParameters FrazilParameters;

// What models share: names and types, the operators, and the passes. Models keep what they need of it.
typedef struct FrazilSession FrazilSession;

// The signature of a method: its arguments without `self`, and its results.
typedef struct FrazilSignature FrazilSignature;

// A tensor.
typedef struct FrazilTensor FrazilTensor;

// How to trace.
typedef struct FrazilTraceOptions FrazilTraceOptions;

// A value.
typedef struct FrazilValue FrazilValue;

// A file that an archive carries beside the model.
typedef struct {
  // Its name.
  const char *name;
  // Its content.
  const uint8_t *data;
  // Number of bytes.
  size_t len;
} FrazilExtraFile;

// The type of elements and the sizes of an input.
typedef struct {
  // Type of elements: one of `FRAZIL_DTYPE_`.
  int32_t dtype;
  // Number of dimensions.
  size_t rank;
  // Their sizes.
  const int64_t *sizes;
} FrazilInputSpec;

// A function that gets the arguments of a call, a tuple, before `forward`. It may give other arguments: a tuple, or a single value, to be written to
// `replacement`, which is NULL when it is called. What it is given belongs to the compiler, what it gives belongs to the compiler from then on. It
// returns NULL or an error, which ends the call. It must not use the engine.
typedef FrazilError *(*FrazilPreHook)(void *context, const FrazilValue *arguments, FrazilValue **replacement);

// A function that gets the arguments of a call, a tuple, and its result after `forward`. It may give another result, as `FrazilPreHook` gives arguments.
typedef FrazilError *(*FrazilHook)(void *context,
                                   const FrazilValue *arguments,
                                   const FrazilValue *result,
                                   FrazilValue **replacement);

// A function to be traced. It calls operators with `frazil_ops_call` of `ops`, which it does not free, on its `len` inputs, tensors that belong to the
// compiler, and on what these calls give. It writes its result to `result`: a tensor, or a tuple, list or dictionary of such, which belongs to the
// compiler from then on. It returns NULL or an error, which ends tracing. It runs several times, on the calling thread, when the trace is checked.
typedef FrazilError *(*FrazilTraceFunction)(void *context,
                                            const FrazilOps *ops,
                                            const FrazilValue *const *inputs,
                                            size_t len,
                                            FrazilValue **result);

// A method of a module to be traced.
typedef struct {
  // Its name: `forward`.
  const char *name;
  // What it does.
  FrazilTraceFunction function;
  // What that is called with.
  void *context;
  // Example inputs.
  const FrazilTensor *const *inputs;
  // Number of inputs.
  size_t len;
} FrazilTraceMethod;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Analyses the graph of a method, or the only graph where the model is one.
FrazilError *frazil_aliases_new(const FrazilModel *model, const char *method, FrazilAliases **out);

// Frees an analysis.
void frazil_aliases_free(FrazilAliases *aliases);

// Whether two values may be one object, or tensors on one storage.
FrazilError *frazil_aliases_may_alias(const FrazilAliases *aliases, const char *a, const char *b, bool *out);

// Whether some object may be reached from both values.
FrazilError *frazil_aliases_may_contain_alias(const FrazilAliases *aliases, const char *a, const char *b, bool *out);

// Whether some node may write to a value.
FrazilError *frazil_aliases_has_writers(const FrazilAliases *aliases, const char *value, bool *out);

// Whether somebody outside of the graph may hold a value.
FrazilError *frazil_aliases_may_alias_wildcard(const FrazilAliases *aliases, const char *value, bool *out);

// Whether a value, or something in it, may be known outside once the graph has run.
FrazilError *frazil_aliases_escapes(const FrazilAliases *aliases, const char *value, bool *out);

// The whole analysis of a model as text, in PyTorch's layout, and what keeps each attribute that freezing leaves.
FrazilError *frazil_model_alias_text(const FrazilModel *model, char **out);

// Writes the model as a `.pt` archive with extra files, beside those that it was loaded with or in place of them.
FrazilError *frazil_model_save_with(const FrazilModel *model,
                                    const char *path,
                                    const FrazilExtraFile *files,
                                    size_t len);

// The model as a `.pt` archive in memory, with extra files.
FrazilError *frazil_model_save_bytes(const FrazilModel *model,
                                     const FrazilExtraFile *files,
                                     size_t len,
                                     FrazilBytes **out);

// How many extra files a model was loaded with.
FrazilError *frazil_model_extra_file_count(const FrazilModel *model, size_t *out);

// The name of extra file number `index` of a model.
FrazilError *frazil_model_extra_file_name(const FrazilModel *model, size_t index, char **out);

// The content of an extra file of a model.
FrazilError *frazil_model_extra_file(const FrazilModel *model, const char *name, FrazilBytes **out);

// The bytes, which live as long as their handle; NULL for NULL.
const uint8_t *frazil_bytes_data(const FrazilBytes *bytes);

// How many bytes there are; 0 for NULL.
size_t frazil_bytes_len(const FrazilBytes *bytes);

// Frees bytes.
void frazil_bytes_free(FrazilBytes *bytes);

// The attribute at a dotted path: `encoder.scale`.
FrazilError *frazil_model_attribute(const FrazilModel *model, const char *path, FrazilValue **out);

// Whether there is an attribute at a dotted path.
FrazilError *frazil_model_has_attribute(const FrazilModel *model, const char *path, bool *out);

// The model with another value of the attribute at a dotted path, which has to be of the attribute's type.
FrazilError *frazil_model_set_attribute(const FrazilModel *model,
                                        const char *path,
                                        const FrazilValue *value,
                                        FrazilModel **out);

// The model with one more parameter.
FrazilError *frazil_model_register_parameter(const FrazilModel *model,
                                             const char *name,
                                             const FrazilTensor *tensor,
                                             bool requires_grad,
                                             FrazilModel **out);

// The model with one more buffer; one that is not persistent is kept out of state dictionaries.
FrazilError *frazil_model_register_buffer(const FrazilModel *model,
                                          const char *name,
                                          const FrazilTensor *tensor,
                                          bool persistent,
                                          FrazilModel **out);

// The model with one more attribute, of the value's type.
FrazilError *frazil_model_register_attribute(const FrazilModel *model,
                                             const char *name,
                                             const FrazilValue *value,
                                             FrazilModel **out);

// The model with another module at a dotted path, in place of the one that is there, if there is one. Both are of one session.
FrazilError *frazil_model_set_submodule(const FrazilModel *model,
                                        const char *path,
                                        const FrazilModel *child,
                                        FrazilModel **out);

// The model with the functions of a source text as methods; each has the module as its first argument.
FrazilError *frazil_model_define(const FrazilModel *model, const char *source, FrazilModel **out);

// A dictionary of all attributes but submodules, by dotted path; without `recurse` only those of the module itself.
FrazilError *frazil_model_named_attributes(const FrazilModel *model, bool recurse, FrazilValue **out);

// A dictionary of parameters, by dotted path; without `recurse` only those of the module itself.
FrazilError *frazil_model_named_parameters(const FrazilModel *model, bool recurse, FrazilValue **out);

// A dictionary of buffers, by dotted path; without `recurse` only those of the module itself.
FrazilError *frazil_model_named_buffers(const FrazilModel *model, bool recurse, FrazilValue **out);

// A dictionary from the dotted path of each module to the name of its class; the path of the module itself is empty.
FrazilError *frazil_model_named_modules(const FrazilModel *model, FrazilValue **out);

// Compiles `forward` of a frozen model for inputs of these shapes.
FrazilError *frazil_model_compile(const FrazilModel *model,
                                  const FrazilInputSpec *inputs,
                                  size_t len,
                                  const FrazilOptions *options,
                                  FrazilCompiled **out);

// The text or bytes of a stage of native code for a method of a frozen model, on inputs of these shapes. `stage` is one of `FRAZIL_STAGE_`.
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

// How many inputs a compiled method takes; 0 for NULL.
size_t frazil_compiled_input_count(const FrazilCompiled *compiled);

// The name that the program has for input number `index`, which lives as long as the compiled method; NULL when there is none.
const char *frazil_compiled_input_name(const FrazilCompiled *compiled,
                                       size_t index);

// How many tensors the result of a compiled method is made of; 0 for NULL.
size_t frazil_compiled_output_count(const FrazilCompiled *compiled);

// The name that the program has for tensor number `index` of the result (a variable, a field, a key), which lives as long as the compiled method; NULL when
// there is none.
const char *frazil_compiled_output_name(const FrazilCompiled *compiled,
                                        size_t index);

// Frees a compiled method.
void frazil_compiled_free(FrazilCompiled *compiled);

// Runs a compiled method on tensors of the types of elements and the sizes that it was compiled for; others are an error.
FrazilError *frazil_compiled_run(const FrazilCompiled *compiled,
                                 const FrazilTensor *const *inputs,
                                 size_t len,
                                 FrazilValue **out);

// How many items a list, tuple or dictionary has.
FrazilError *frazil_value_count(const FrazilValue *value, size_t *out);

// Item number `index` of a list, tuple or dictionary.
FrazilError *frazil_value_item(const FrazilValue *value, size_t index, FrazilValue **out);

// A dictionary with these keys and values, in this order. Keys are of one type: strings, integers, floats, complex numbers, bools or tensors. So are
// values, of which some may be `None`. Without entries it is one from strings to tensors. Of equal keys the last value counts.
FrazilError *frazil_value_dict(const FrazilSession *session,
                               const FrazilValue *const *keys,
                               const FrazilValue *const *items,
                               size_t len,
                               FrazilValue **out);

// Key and value of entry number `index` of a dictionary, in the order in which they were added. Either place may be NULL.
FrazilError *frazil_value_entry(const FrazilValue *value,
                                size_t index,
                                FrazilValue **out_key,
                                FrazilValue **out_value);

// The value of a dictionary at a key. That there is none is an error of kind `FRAZIL_ERROR_KIND_ARGUMENT`; `frazil_value_has` asks.
FrazilError *frazil_value_get(const FrazilValue *value,
                              const FrazilValue *key,
                              FrazilValue **out);

// Whether a dictionary has a key.
FrazilError *frazil_value_has(const FrazilValue *value, const FrazilValue *key, bool *out);

// An engine, which freezes the model and compiles each method for what it is called with, or interprets it where the options say so.
FrazilError *frazil_engine_new(const FrazilModel *model,
                               const FrazilOptions *options,
                               FrazilEngine **out);

// An engine for the model in a file. With a `cache_dir` among the options, the file is read and the model frozen only when something is called that has not
// been compiled before.
FrazilError *frazil_engine_load(const FrazilSession *session,
                                const char *path,
                                const FrazilOptions *options,
                                FrazilEngine **out);

// The model with the state that calls of an engine have brought it to: its attributes as they are now.
FrazilError *frazil_engine_snapshot(const FrazilEngine *engine, FrazilModel **out);

// The graph that runs when a method of an engine is called, as text: the frozen one, for engines that compile.
FrazilError *frazil_engine_graph(const FrazilEngine *engine, const char *method, char **out);

// Frees an engine.
void frazil_engine_free(FrazilEngine *engine);

// Calls a method. Arguments are checked and converted as PyTorch does with what comes from Python; those that are missing at the end take their
// defaults. No hooks run, not even for `forward`: `frazil_engine_call_module` calls the module. The path of a submodule without a method's name
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

// What an engine compiled, and what it did not and why: a line each.
FrazilError *frazil_engine_notes(const FrazilEngine *engine, char **out);

// How many seconds an engine has spent on native code so far.
FrazilError *frazil_engine_compile_seconds(const FrazilEngine *engine, double *out);

// The kind of an error; `FRAZIL_ERROR_KIND_NONE` for NULL.
FrazilErrorKind frazil_error_kind(const FrazilError *error);

// The message of an error, which lives as long as the error; empty for NULL.
const char *frazil_error_message(const FrazilError *error);

// How many places in source or text an error is about; 0 for NULL.
size_t frazil_error_place_count(const FrazilError *error);

// Place number `index` that an error is about, `file:line:column`, the innermost call first. It lives as long as the error; NULL when there is none.
const char *frazil_error_place(const FrazilError *error,
                               size_t index);

// A new error, for a callback that fails: with kind `FRAZIL_ERROR_KIND_RAISED` the program raises there. Who gets it frees it. Text that is NULL or no
// UTF-8 stands for no message.
FrazilError *frazil_error_new(int32_t kind,
                              const char *message);

// Frees an error.
void frazil_error_free(FrazilError *error);

// Runs `hook` on the arguments of every later call of the module: `frazil_engine_call_module`, and not `frazil_engine_call`, not even of `forward`. The
// hook is called on the thread of the call. `release`, if that is not NULL, is called with `context` once the hook is removed or the engine freed.
// Gives a number for `frazil_engine_remove_hook`.
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

// Removes a hook; gives false when there is none of that number, or it was removed before.
FrazilError *frazil_engine_remove_hook(const FrazilEngine *engine, uint64_t hook, bool *out);

// Frees text that a function gave.
void frazil_string_free(char *text);

// The version of the compiler: `0.1.0`. It is not to be freed.
const char *frazil_version(void);

// A session with the operators of PyTorch and the standard passes.
FrazilError *frazil_session_new(FrazilSession **out);

// A session whose models are read, transformed and run within limits, as text: `untrusted` for those for input from strangers, and `NAME=VALUE`, with commas
// between: `untrusted,memory=2G`. The names are `memory` (bytes, or with K, M or G), `nodes`, `load-time`, `freeze-time`, `pass-time`, `compile-time`,
// `call-time` (seconds), `repetitions` and `elements`. Where one is exceeded, the error's kind is `FRAZIL_ERROR_KIND_LIMIT`.
FrazilError *frazil_session_new_with_limits(const char *limits,
                                            FrazilSession **out);

// Frees a session.
void frazil_session_free(FrazilSession *session);

// Reads a `.pt` archive, `.ir` text or TorchScript source.
FrazilError *frazil_model_load(const FrazilSession *session, const char *path, FrazilModel **out);

// Reads what `frazil_model_load` reads from memory. `name` is for messages, and its ending tells source (`.py`) from `.ir` text.
FrazilError *frazil_model_load_bytes(const FrazilSession *session,
                                     const char *name,
                                     const uint8_t *bytes,
                                     size_t len,
                                     FrazilModel **out);

// Frees a model.
void frazil_model_free(FrazilModel *model);

// The frozen form of a model, as `torch.jit.freeze` gives.
FrazilError *frazil_model_freeze(const FrazilModel *model, const FrazilOptions *options, FrazilModel **out);

// The model in evaluation mode: the training flag of the module and of all below it is off. Functions and graphs have no mode.
FrazilError *frazil_model_eval(const FrazilModel *model,
                               FrazilModel **out);

// The model in training mode, or in evaluation mode where `mode` is false. Functions and graphs have no mode.
FrazilError *frazil_model_train(const FrazilModel *model, bool mode, FrazilModel **out);

// Whether a model is in training mode; functions and graphs are not.
FrazilError *frazil_model_is_training(const FrazilModel *model, bool *out);

// The form of a model that is best to run, as `torch.jit.optimize_for_inference` gives.
FrazilError *frazil_model_optimize_for_inference(const FrazilModel *model,
                                                 const FrazilOptions *options,
                                                 FrazilModel **out);

// The model after the passes of a pipeline: `inline,constant-propagation,dce`.
FrazilError *frazil_model_run_passes(const FrazilModel *model, const char *pipeline, FrazilModel **out);

// Writes the model as a `.pt` archive.
FrazilError *frazil_model_save(const FrazilModel *model, const char *path);

// Writes the model as `.ir` text, with its larger tensors in a `.safetensors` file beside it.
FrazilError *frazil_model_save_ir(const FrazilModel *model, const char *path);

// The graphs of the model as a picture, in the language of Graphviz.
FrazilError *frazil_model_dot(const FrazilModel *model, char **out);

// A module whose `forward` is the function of that name, or the only one, as PyTorch saves functions; a module as it is.
FrazilError *frazil_model_function(const FrazilModel *model,
                                   const char *name,
                                   FrazilModel **out);

// The model with the attributes that the `__setstate__` of its objects' classes make of what the archive holds of them. Engines and freezing do this by
// themselves.
FrazilError *frazil_model_restored(const FrazilModel *model,
                                   FrazilModel **out);

// The model as `.ir` text.
FrazilError *frazil_model_ir(const FrazilModel *model, char **out);

// The model as TorchScript source: one method of it, or all where that is NULL.
FrazilError *frazil_model_code(const FrazilModel *model, const char *method, char **out);

// The source of one method, and the constants that it names `CONSTANTS.c0`, `CONSTANTS.c1`, ...: a dictionary from those names without `CONSTANTS.`
FrazilError *frazil_model_code_with_constants(const FrazilModel *model,
                                              const char *method,
                                              char **out_code,
                                              FrazilValue **out_constants);

// The graph of one method as text.
FrazilError *frazil_model_graph(const FrazilModel *model, const char *method, char **out);

// The name of the Python class that a model is of; that of functions says so.
FrazilError *frazil_model_class_name(const FrazilModel *model, char **out);

// How many methods a model has.
FrazilError *frazil_model_method_count(const FrazilModel *model, size_t *out);

// The name of method number `index` of a model.
FrazilError *frazil_model_method_name(const FrazilModel *model, size_t index, char **out);

// The qualified name of the class that an object, a member of an enumeration or a named tuple is of.
FrazilError *frazil_value_class(const FrazilSession *session, const FrazilValue *value, char **out);

// The name of field number `index` of a named tuple, whose items are those of tuples.
FrazilError *frazil_value_field_name(const FrazilSession *session, const FrazilValue *value, size_t index, char **out);

// How many attributes an object has; `model` is the one that it came from, or one that was made of that.
FrazilError *frazil_value_attribute_count(const FrazilModel *model, const FrazilValue *value, size_t *out);

// The name of attribute number `index` of an object.
FrazilError *frazil_value_attribute_name(const FrazilModel *model, const FrazilValue *value, size_t index, char **out);

// The attribute of an object that has a name.
FrazilError *frazil_value_attribute(const FrazilModel *model,
                                    const FrazilValue *value,
                                    const char *name,
                                    FrazilValue **out);

// A new object of a class of the model, with values for all of its attributes. Its `__init__` does not run.
FrazilError *frazil_value_object(const FrazilModel *model,
                                 const char *class_,
                                 const char *const *names,
                                 const FrazilValue *const *items,
                                 size_t len,
                                 FrazilValue **out);

// A member of an enumeration of the model.
FrazilError *frazil_value_enum(const FrazilModel *model, const char *class_, const char *member, FrazilValue **out);

// The name of a member of an enumeration.
FrazilError *frazil_value_enum_name(const FrazilValue *value, char **out);

// The value of a member of an enumeration.
FrazilError *frazil_value_enum_value(const FrazilValue *value, FrazilValue **out);

// The operators of a session, to be called on tensors.
FrazilError *frazil_ops_new(const FrazilSession *session, FrazilOps **out);

// Frees operators of `frazil_ops_new`.
void frazil_ops_free(FrazilOps *ops);

// Calls an operator by its name with namespace, `aten::add`, with arguments by position and `named_len` more by name. The overload is chosen by what is
// given, as in PyTorch; a type of elements is given as its number. A tensor that an in-place operator changes is changed for all values that share it. Of
// several results it gives a tuple, and of none `None`.
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

// In a traced method, the parameter or buffer at a dotted path.
FrazilError *frazil_ops_parameter(const FrazilOps *ops, const char *path, FrazilValue **out);

// Says where calls stand from now on in the graph that is being recorded, and in warnings: a line of a file of the caller's, or nowhere where that is NULL,
// as before the first such call.
FrazilError *frazil_ops_set_place(const FrazilOps *ops,
                                  const char *file,
                                  uint32_t line);

// Whether calls are recorded: in a traced function.
FrazilError *frazil_ops_is_tracing(const FrazilOps *ops, bool *out);

// Gives a tensor a name in the graph that is being recorded.
FrazilError *frazil_ops_name(const FrazilOps *ops, const FrazilValue *tensor, const char *name);

// The size of a dimension, which counts from the end when it is negative, as a tensor without dimensions: a graph that is being recorded asks its own input
// for it, where the number from `frazil_tensor_size` would be a constant.
FrazilError *frazil_ops_size(const FrazilOps *ops,
                             const FrazilValue *tensor,
                             int64_t dim,
                             FrazilValue **out);

// The one element of a tensor, as a number or bool. A graph that is being recorded has it as a constant, of which a warning tells.
FrazilError *frazil_ops_item(const FrazilOps *ops,
                             const FrazilValue *tensor,
                             FrazilValue **out);

// New options: native code for this machine, one thread.
FrazilOptions *frazil_options_new(void);

// Frees options.
void frazil_options_free(FrazilOptions *options);

// Threads that a run may use: 1 unless set.
FrazilError *frazil_options_set_threads(FrazilOptions *options, size_t threads);

// Whether an engine puts the model into evaluation mode first: it does not unless set, and a model in training mode runs as it is.
FrazilError *frazil_options_set_eval(FrazilOptions *options,
                                     bool eval);

// Whether an engine interprets the model as it is, instead of freezing and compiling it.
FrazilError *frazil_options_set_interpret(FrazilOptions *options, bool interpret);

// Whether it is an error when an engine cannot compile a method, instead of running it in the interpreter.
FrazilError *frazil_options_set_strict(FrazilOptions *options, bool strict);

// Whether operators become one kernel where that saves passes over memory: they do unless set.
FrazilError *frazil_options_set_fusion(FrazilOptions *options, bool fuse);

// Maximum number of call signatures for which an engine compiles a method; it interprets others. Unlimited unless set.
FrazilError *frazil_options_set_specialisations(FrazilOptions *options, size_t most);

// Whether freezing may fold what changes results by rounding, such as a batch norm into a convolution: it may unless set.
FrazilError *frazil_options_set_optimize_numerics(FrazilOptions *options,
                                                  bool optimize);

// Adds a method that will be called, which freezing keeps. Unless some are added, that is `forward`.
FrazilError *frazil_options_add_method(FrazilOptions *options, const char *method);

// Adds the dotted name of an attribute or method that freezing keeps.
FrazilError *frazil_options_preserve(FrazilOptions *options, const char *name);

// The processor that code is made for: `host`, an x86-64 level (`x86-64-v3`), or one that LLVM knows. Engines make it for the host.
FrazilError *frazil_options_set_target_cpu(FrazilOptions *options,
                                           const char *cpu);

// What the functions of a library are called: a C identifier.
FrazilError *frazil_options_set_name(FrazilOptions *options, const char *name);

// A directory in which native code is kept from one process to the next.
FrazilError *frazil_options_set_cache_dir(FrazilOptions *options, const char *path);

// A file of which form of each kernel was measured to be the fastest on this processor. What it does not know yet is measured, and added.
FrazilError *frazil_options_set_tune(FrazilOptions *options,
                                     const char *path);

// The signature of a method; of a submodule's by its dotted path.
FrazilError *frazil_model_signature(const FrazilModel *model, const char *method, FrazilSignature **out);

// Frees a signature.
void frazil_signature_free(FrazilSignature *signature);

// The signature as PyTorch prints it, which lives as long as the signature: `forward(__torch__.Net self, Tensor x, int n=3) -> Tensor`. NULL for NULL.
const char *frazil_signature_text(const FrazilSignature *signature);

// How many arguments the method takes; 0 for NULL.
size_t frazil_signature_argument_count(const FrazilSignature *signature);

// The name of argument number `index`, which lives as long as the signature; NULL when there is none.
const char *frazil_signature_argument_name(const FrazilSignature *signature, size_t index);

// The type of argument number `index`, as annotations write it: `Optional[List[int]]`. It lives as long as the signature; NULL when there is none.
const char *frazil_signature_argument_type(const FrazilSignature *signature,
                                           size_t index);

// Whether argument number `index` may be given by name only.
bool frazil_signature_argument_by_name_only(const FrazilSignature *signature, size_t index);

// Whether argument number `index` may be left out.
bool frazil_signature_argument_has_default(const FrazilSignature *signature, size_t index);

// What argument number `index` is when it is left out.
FrazilError *frazil_signature_argument_default(const FrazilSignature *signature, size_t index, FrazilValue **out);

// How many results the method has; 0 for NULL.
size_t frazil_signature_result_count(const FrazilSignature *signature);

// The name of the variable that result number `index` is, which lives as long as the signature; empty when it has none, NULL when there is no such result.
const char *frazil_signature_result_name(const FrazilSignature *signature,
                                         size_t index);

// The type of result number `index`, which lives as long as the signature; NULL when there is none.
const char *frazil_signature_result_type(const FrazilSignature *signature, size_t index);

// The position of the argument called `name`.
FrazilError *frazil_signature_find_argument(const FrazilSignature *signature, const char *name, size_t *out);

// The parameters and persistent buffers of a model, in order: a dictionary from dotted names to tensors.
FrazilError *frazil_model_state_dict(const FrazilModel *model, FrazilValue **out);

// The model with the tensors of a state dictionary in place of its own, converted to their types of elements. Other sizes are an error and, with
// `strict`, so are names that are missing or unexpected, which are given as lists of strings where `missing` and `unexpected` are not NULL.
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

// The model with its floating-point and complex parameters and buffers converted to a type of elements that is one of those: `Module.to`.
FrazilError *frazil_model_to(const FrazilModel *model,
                             int32_t dtype,
                             FrazilModel **out);

// The model with all parameters and buffers converted to a type of elements: `Module.type`.
FrazilError *frazil_model_to_type(const FrazilModel *model, int32_t dtype, FrazilModel **out);

// The model with its floating-point parameters and buffers as floats of 16 bits.
FrazilError *frazil_model_half(const FrazilModel *model, FrazilModel **out);

// The model with its floating-point parameters and buffers as upper halves of floats of 32 bits.
FrazilError *frazil_model_bfloat16(const FrazilModel *model, FrazilModel **out);

// The model with its floating-point parameters and buffers as floats of 32 bits.
FrazilError *frazil_model_float(const FrazilModel *model, FrazilModel **out);

// The model with its floating-point parameters and buffers as floats of 64 bits.
FrazilError *frazil_model_double(const FrazilModel *model, FrazilModel **out);

// The model with its parameters marked as trained or not, which archives carry.
FrazilError *frazil_model_requires_grad(const FrazilModel *model, bool requires_grad, FrazilModel **out);

// A dense tensor with a copy of `len` bytes of elements.
FrazilError *frazil_tensor_new(int32_t dtype,
                               const int64_t *sizes,
                               size_t rank,
                               const void *data,
                               size_t len,
                               FrazilTensor **out);

// A tensor with a copy of `len` bytes, of which its elements are those that the strides say, counted in elements: of a dimension of size `n` and stride
// `s` the elements `0`, `s`, ... `(n - 1) * s`.
FrazilError *frazil_tensor_new_strided(int32_t dtype,
                                       const int64_t *sizes,
                                       const int64_t *strides,
                                       size_t rank,
                                       const void *data,
                                       size_t len,
                                       FrazilTensor **out);

// A dense tensor over the caller's memory, which is neither copied nor written: what changes the tensor copies first. The memory stays as it is
// until `release`, if that is not NULL, is called with `context`; that happens once, on any thread, when nobody uses it any more. With an error,
// `release` is not called.
FrazilError *frazil_tensor_share(int32_t dtype,
                                 const int64_t *sizes,
                                 size_t rank,
                                 const void *data,
                                 size_t len,
                                 void (*release)(void*),
                                 void *context,
                                 FrazilTensor **out);

// A tensor over the caller's memory as `frazil_tensor_share` makes it, with strides as `frazil_tensor_new_strided` has them.
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

// The type of a tensor's elements: one of `FRAZIL_DTYPE_`, or another number of PyTorch's; -1 for NULL.
int32_t frazil_tensor_dtype(const FrazilTensor *tensor);

// The number of a tensor's dimensions; 0 for NULL.
size_t frazil_tensor_rank(const FrazilTensor *tensor);

// The size of dimension `index` of a tensor; -1 when there is none.
int64_t frazil_tensor_size(const FrazilTensor *tensor, size_t index);

// The stride of dimension `index` of a tensor, in elements; -1 when there is none.
int64_t frazil_tensor_stride(const FrazilTensor *tensor, size_t index);

// Whether a tensor's elements lie one behind the other, the last dimension fastest; false for NULL.
bool frazil_tensor_is_contiguous(const FrazilTensor *tensor);

// A tensor with the same elements, converted to a type of elements.
FrazilError *frazil_tensor_to(const FrazilTensor *tensor, int32_t dtype, FrazilTensor **out);

// The bytes of a tensor's elements.
FrazilError *frazil_tensor_bytes(const FrazilTensor *tensor, size_t *out);

// Copies a tensor's elements, the last dimension fastest, to `len` bytes at `data`: exactly as many as there are.
FrazilError *frazil_tensor_read(const FrazilTensor *tensor, void *data, size_t len);

// New options: the trace is checked on its example inputs.
FrazilTraceOptions *frazil_trace_options_new(void);

// Frees options.
void frazil_trace_options_free(FrazilTraceOptions *options);

// Adds the name of the next input; inputs without names are called `x`, `x1`, `x2`, ...
FrazilError *frazil_trace_options_add_name(FrazilTraceOptions *options, const char *name);

// Whether the trace is run, made again and compared: it is unless set.
FrazilError *frazil_trace_options_set_check(FrazilTraceOptions *options, bool check);

// Adds inputs of the first method to compare on, instead of the example ones.
FrazilError *frazil_trace_options_add_check_inputs(FrazilTraceOptions *options,
                                                   const FrazilTensor *const *inputs,
                                                   size_t len);

// How far results may differ, relative to their size, when the trace is checked: 1e-5 unless set.
FrazilError *frazil_trace_options_set_tolerance(FrazilTraceOptions *options, double tolerance);

// Whether lists and dictionaries are refused as results: they are unless set.
FrazilError *frazil_trace_options_set_strict(FrazilTraceOptions *options, bool strict);

// Whether in-place operators are recorded as those that give new tensors.
FrazilError *frazil_trace_options_set_force_outplace(FrazilTraceOptions *options, bool force);

// No parameters yet, of a module whose class is called `name`.
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

// Records what a function does with example inputs: `torch.jit.trace`. It is called `forward`. Warnings, a line each, go to `out_warnings`, unless that is
// NULL.
FrazilError *frazil_trace(const FrazilSession *session,
                          FrazilTraceFunction function,
                          void *context,
                          const FrazilTensor *const *inputs,
                          size_t len,
                          const FrazilTraceOptions *options,
                          char **out_warnings,
                          FrazilModel **out);

// Records what methods do with parameters and example inputs: `torch.jit.trace_module`. The parameters become attributes, in submodules by their dotted
// paths. Warnings as of `frazil_trace`.
FrazilError *frazil_trace_module(const FrazilSession *session,
                                 const FrazilParameters *parameters,
                                 const FrazilTraceMethod *methods,
                                 size_t len,
                                 const FrazilTraceOptions *options,
                                 char **out_warnings,
                                 FrazilModel **out);

// `None`.
FrazilError *frazil_value_none(FrazilValue **out);

// A truth value.
FrazilError *frazil_value_bool(bool value, FrazilValue **out);

// An integer.
FrazilError *frazil_value_int(int64_t value, FrazilValue **out);

// A float.
FrazilError *frazil_value_float(double value, FrazilValue **out);

// A complex number.
FrazilError *frazil_value_complex(double re, double im, FrazilValue **out);

// A device: `cpu`, `cuda:0`. Programs may name others than the host; none can be used.
FrazilError *frazil_value_device(const char *name, FrazilValue **out);

// A string.
FrazilError *frazil_value_str(const char *value, FrazilValue **out);

// A string of `len` bytes, of which some may be zero.
FrazilError *frazil_value_str_of(const uint8_t *data, size_t len, FrazilValue **out);

// A value converted to a type that an annotation names (`List[int]`), as the arguments of methods are: an empty list becomes one of integers, a list a tuple.
FrazilError *frazil_value_convert(const FrazilSession *session,
                                  const FrazilValue *value,
                                  const char *ty,
                                  FrazilValue **out);

// A tensor, whose memory the value shares.
FrazilError *frazil_value_tensor(const FrazilTensor *tensor, FrazilValue **out);

// A list of values of one type, tensors where there is none. Some may be `None`: the others are optional then.
FrazilError *frazil_value_list(const FrazilSession *session,
                               const FrazilValue *const *items,
                               size_t len,
                               FrazilValue **out);

// A tuple of values.
FrazilError *frazil_value_tuple(const FrazilValue *const *items, size_t len, FrazilValue **out);

// Frees a value.
void frazil_value_free(FrazilValue *value);

// What a value is; `FRAZIL_VALUE_KIND_NONE` for NULL.
FrazilValueKind frazil_value_kind(const FrazilValue *value);

// The truth value that a value is.
FrazilError *frazil_value_as_bool(const FrazilValue *value, bool *out);

// The integer that a value is.
FrazilError *frazil_value_as_int(const FrazilValue *value, int64_t *out);

// The float that a value is.
FrazilError *frazil_value_as_float(const FrazilValue *value, double *out);

// The string that a value is, up to a zero byte in it.
FrazilError *frazil_value_as_str(const FrazilValue *value, char **out);

// The bytes of the string that a value is, of which some may be zero.
FrazilError *frazil_value_as_str_bytes(const FrazilValue *value, FrazilBytes **out);

// The tensor that a value is, whose memory is shared.
FrazilError *frazil_value_as_tensor(const FrazilValue *value, FrazilTensor **out);

// The complex number that a value is.
FrazilError *frazil_value_as_complex(const FrazilValue *value, double *re, double *im);

// The name of the device that a value is.
FrazilError *frazil_value_as_device(const FrazilValue *value, char **out);

// The type of a value, as annotations write it: `List[Tensor]`.
FrazilError *frazil_value_type(const FrazilSession *session, const FrazilValue *value, char **out);

// A value as Python prints it in containers: `[1, 2]`, `'text'`, `tensor([1.])`.
FrazilError *frazil_value_repr(const FrazilSession *session, const FrazilValue *value, char **out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FRAZIL_H */
