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
} FrazilValueKind;

// What may alias what in the graph of a method. Values are named as the graph's text names them, with or without the percent sign.
typedef struct FrazilAliases FrazilAliases;

// A method that was compiled for inputs of given shapes.
typedef struct FrazilCompiled FrazilCompiled;

// An instance of a model: what a call changes, the next one sees.
typedef struct FrazilEngine FrazilEngine;

// An error: a kind and a message.
typedef struct FrazilError FrazilError;

// A module, or graphs that belong to none. No function changes one: what changes gives a new one, which shares the weights.
typedef struct FrazilModel FrazilModel;

// How to freeze, compile and run. New options are the usual ones; where a function takes options, NULL stands for those.
typedef struct FrazilOptions FrazilOptions;

// What models share: names and types, the operators, and the passes. Models keep what they need of it.
typedef struct FrazilSession FrazilSession;

// A tensor.
typedef struct FrazilTensor FrazilTensor;

// A value.
typedef struct FrazilValue FrazilValue;

// The type of elements and the sizes of an input.
typedef struct {
  // Type of elements: one of `FRAZIL_DTYPE_`.
  int32_t dtype;
  // Number of dimensions.
  size_t rank;
  // Their sizes.
  const int64_t *sizes;
} FrazilInputSpec;

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

// An engine, which freezes the model and compiles each method for what it is called with, or interprets it where the options say so.
FrazilError *frazil_engine_new(const FrazilModel *model,
                               const FrazilOptions *options,
                               FrazilEngine **out);

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

// Compiles `forward` of a frozen model for inputs of these shapes.
FrazilError *frazil_model_compile(const FrazilModel *model,
                                  const FrazilInputSpec *inputs,
                                  size_t len,
                                  const FrazilOptions *options,
                                  FrazilCompiled **out);

// Writes a shared library that runs a method of a frozen model on inputs of these shapes, and its C header beside it.
FrazilError *frazil_model_write_library(const FrazilModel *model,
                                        const char *method,
                                        const FrazilInputSpec *inputs,
                                        size_t len,
                                        const FrazilOptions *options,
                                        const char *path);

// Frees a compiled method.
void frazil_compiled_free(FrazilCompiled *compiled);

// Runs a compiled method on tensors of the types of elements and the sizes that it was compiled for; others are an error.
FrazilError *frazil_compiled_run(const FrazilCompiled *compiled,
                                 const FrazilTensor *const *inputs,
                                 size_t len,
                                 FrazilValue **out);

// The kind of an error; `FRAZIL_ERROR_KIND_NONE` for NULL.
FrazilErrorKind frazil_error_kind(const FrazilError *error);

// The message of an error, which lives as long as the error; empty for NULL.
const char *frazil_error_message(const FrazilError *error);

// Frees an error.
void frazil_error_free(FrazilError *error);

// Frees text that a function gave.
void frazil_string_free(char *text);

// The version of the compiler: `0.1.0`. It is not to be freed.
const char *frazil_version(void);

// A session with the operators of PyTorch and the standard passes.
FrazilError *frazil_session_new(FrazilSession **out);

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

// The model as `.ir` text.
FrazilError *frazil_model_ir(const FrazilModel *model, char **out);

// The model as TorchScript source: one method of it, or all where that is NULL.
FrazilError *frazil_model_code(const FrazilModel *model, const char *method, char **out);

// How many methods a model has.
FrazilError *frazil_model_method_count(const FrazilModel *model, size_t *out);

// The name of method number `index` of a model.
FrazilError *frazil_model_method_name(const FrazilModel *model, size_t index, char **out);

// New options: native code for this machine, one thread.
FrazilOptions *frazil_options_new(void);

// Frees options.
void frazil_options_free(FrazilOptions *options);

// Threads that a run may use: 1 unless set.
FrazilError *frazil_options_set_threads(FrazilOptions *options, size_t threads);

// Whether an engine interprets the model as it is, instead of freezing and compiling it.
FrazilError *frazil_options_set_interpret(FrazilOptions *options, bool interpret);

// Whether it is an error when an engine cannot compile a method, instead of running it in the interpreter.
FrazilError *frazil_options_set_strict(FrazilOptions *options, bool strict);

// Whether operators become one kernel where that saves passes over memory: they do unless set.
FrazilError *frazil_options_set_fusion(FrazilOptions *options, bool fuse);

// For how many kinds of arguments an engine compiles a method before it interprets: without a bound unless set.
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

// A dense tensor with a copy of `len` bytes of elements.
FrazilError *frazil_tensor_new(int32_t dtype,
                               const int64_t *sizes,
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

// Frees a tensor.
void frazil_tensor_free(FrazilTensor *tensor);

// The type of a tensor's elements: one of `FRAZIL_DTYPE_`, or another number of PyTorch's; -1 for NULL.
int32_t frazil_tensor_dtype(const FrazilTensor *tensor);

// The number of a tensor's dimensions; 0 for NULL.
size_t frazil_tensor_rank(const FrazilTensor *tensor);

// The size of dimension `index` of a tensor; -1 when there is none.
int64_t frazil_tensor_size(const FrazilTensor *tensor, size_t index);

// The bytes of a tensor's elements.
FrazilError *frazil_tensor_bytes(const FrazilTensor *tensor, size_t *out);

// Copies a tensor's elements, the last dimension fastest, to `len` bytes at `data`: exactly as many as there are.
FrazilError *frazil_tensor_read(const FrazilTensor *tensor, void *data, size_t len);

// `None`.
FrazilError *frazil_value_none(FrazilValue **out);

// A truth value.
FrazilError *frazil_value_bool(bool value, FrazilValue **out);

// An integer.
FrazilError *frazil_value_int(int64_t value, FrazilValue **out);

// A float.
FrazilError *frazil_value_float(double value, FrazilValue **out);

// A string.
FrazilError *frazil_value_str(const char *value, FrazilValue **out);

// A tensor, whose memory the value shares.
FrazilError *frazil_value_tensor(const FrazilTensor *tensor, FrazilValue **out);

// A list of values of one type: that of the first, or tensors where there is none.
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

// The tensor that a value is, whose memory is shared.
FrazilError *frazil_value_as_tensor(const FrazilValue *value, FrazilTensor **out);

// How many items a list, tuple or dictionary has.
FrazilError *frazil_value_count(const FrazilValue *value, size_t *out);

// Item number `index` of a list, tuple or dictionary.
FrazilError *frazil_value_item(const FrazilValue *value, size_t index, FrazilValue **out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FRAZIL_H */
