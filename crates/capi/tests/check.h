/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include "frazil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);     \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

/* Ends the program unless `error` is NULL. */
static inline void ok(FrazilError *error) {
  if (error) {
    fprintf(stderr, "%s\n", frazil_error_message(error));
    exit(1);
  }
}

/* Whether `error` is one of that kind whose message has `part` in it; frees it. */
static inline bool is_error(FrazilError *error, FrazilErrorKind kind, const char *part) {
  bool is_it = frazil_error_kind(error) == kind && strstr(frazil_error_message(error), part) != NULL;
  if (!is_it) fprintf(stderr, "kind %d: %s\n", frazil_error_kind(error), frazil_error_message(error));
  frazil_error_free(error);
  return is_it;
}

/* Whether `text`, which it frees, is `expected`. */
static inline bool is_text(char *text, const char *expected) {
  bool is_it = strcmp(text, expected) == 0;
  if (!is_it) fprintf(stderr, "%s\n", text);
  frazil_string_free(text);
  return is_it;
}

/* Whether `text`, which it frees, has `part` in it. */
static inline bool has_text(char *text, const char *part) {
  bool has_it = strstr(text, part) != NULL;
  if (!has_it) fprintf(stderr, "%s\n", text);
  frazil_string_free(text);
  return has_it;
}

/* Reads TorchScript source. */
static inline FrazilModel *load_source(const FrazilSession *session, const char *name, const char *source) {
  FrazilModel *model;
  ok(frazil_model_load_bytes(session, name, (const uint8_t *)source, strlen(source), &model));
  return model;
}

/* An engine that interprets, for `forward` or, if that is not NULL, `method`. */
static inline FrazilEngine *interpreter_of(const FrazilModel *model, const char *method) {
  FrazilOptions *options = frazil_options_new();
  ok(frazil_options_set_interpret(options, true));
  if (method) ok(frazil_options_add_method(options, method));
  FrazilEngine *engine;
  ok(frazil_engine_new(model, options, &engine));
  frazil_options_free(options);
  return engine;
}

/* A tensor of floats of one dimension, as a value. */
static inline FrazilValue *floats(const float *elements, size_t count) {
  const int64_t sizes[] = {(int64_t)count};
  FrazilTensor *tensor;
  ok(frazil_tensor_new(FRAZIL_DTYPE_FLOAT32, sizes, 1, elements, count * sizeof *elements, &tensor));
  FrazilValue *value;
  ok(frazil_value_tensor(tensor, &value));
  frazil_tensor_free(tensor);
  return value;
}

/* Element number `index` of a value that is a tensor of floats with at most eight elements. */
static inline float element(const FrazilValue *value, size_t index) {
  FrazilTensor *tensor;
  float elements[8];
  size_t bytes;
  ok(frazil_value_as_tensor(value, &tensor));
  CHECK(frazil_tensor_dtype(tensor) == FRAZIL_DTYPE_FLOAT32);
  ok(frazil_tensor_bytes(tensor, &bytes));
  CHECK(bytes <= sizeof elements && index < bytes / sizeof *elements);
  ok(frazil_tensor_read(tensor, elements, bytes));
  frazil_tensor_free(tensor);
  return elements[index];
}

static inline void read_floats(const char *path, float *out, size_t count) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  CHECK(fread(out, sizeof(float), count, file) == count);
  fclose(file);
}

#endif
