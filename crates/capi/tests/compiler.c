/* Uses every part of the C interface on an image classifier; tests/program.rs compiles and runs it.
   Arguments: the archive, an input and PyTorch's result as raw floats, and a folder to write to. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <string.h>

enum { INPUT = 1 * 3 * 32 * 32, OUTPUT = 10 };
static float image[INPUT], expected[OUTPUT];
static const int64_t input_sizes[] = {1, 3, 32, 32};

static void check_result(const FrazilValue *value) {
  CHECK(frazil_value_kind(value) == FRAZIL_VALUE_KIND_TENSOR);
  FrazilTensor *tensor;
  ok(frazil_value_as_tensor(value, &tensor));
  CHECK(frazil_tensor_dtype(tensor) == FRAZIL_DTYPE_FLOAT32);
  CHECK(frazil_tensor_rank(tensor) == 2);
  CHECK(frazil_tensor_size(tensor, 0) == 1 && frazil_tensor_size(tensor, 1) == 10 && frazil_tensor_size(tensor, 2) == -1);
  float got[OUTPUT];
  size_t bytes;
  ok(frazil_tensor_bytes(tensor, &bytes));
  CHECK(bytes == sizeof got);
  ok(frazil_tensor_read(tensor, got, sizeof got));
  for (int i = 0; i < OUTPUT; i++) CHECK(fabsf(got[i] - expected[i]) <= 1e-4f + 1e-4f * fabsf(expected[i]));
  CHECK(is_error(frazil_tensor_read(tensor, got, 4), FRAZIL_ERROR_KIND_ARGUMENT, "40 bytes"));
  frazil_tensor_free(tensor);
}

static void count_release(void *context) { ++*(int *)context; }

typedef struct {
  FrazilEngine *engine;
  const FrazilValue *const *arguments;
  int finished;
} Runs;

/* Every call gives what it should, or is refused as another thread runs the engine. */
static void *run_often(void *context) {
  Runs *runs = context;
  for (int i = 0; i < 50; i++) {
    FrazilValue *result;
    FrazilError *error = frazil_engine_call(runs->engine, "forward", runs->arguments, 1, &result);
    if (error) {
      CHECK(is_error(error, FRAZIL_ERROR_KIND_BUSY, "in use by another thread"));
      continue;
    }
    check_result(result);
    frazil_value_free(result);
    runs->finished++;
  }
  return NULL;
}

static void two_threads(FrazilEngine *engine, const FrazilValue *const *arguments) {
  Runs runs[2] = {{engine, arguments, 0}, {engine, arguments, 0}};
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, run_often, &runs[1]));
  run_often(&runs[0]);
  pthread_join(other, NULL);
  CHECK(runs[0].finished + runs[1].finished > 0);
}

static void run_it(const FrazilModel *model, const FrazilModel *frozen, const char *folder) {
  int released = 0;
  FrazilTensor *input;
  ok(frazil_tensor_share(FRAZIL_DTYPE_FLOAT32, input_sizes, 4, image, sizeof image, count_release, &released, &input));
  const FrazilTensor *inputs[] = {input};
  FrazilInputSpec spec = {FRAZIL_DTYPE_FLOAT32, 4, input_sizes};

  /* A method, compiled for given shapes. */
  FrazilCompiled *compiled;
  ok(frazil_model_compile(frozen, &spec, 1, NULL, &compiled));
  CHECK(frazil_compiled_input_count(compiled) == 1 && frazil_compiled_output_count(compiled) == 1);
  CHECK(strcmp(frazil_compiled_input_name(compiled, 0), "x") == 0 && frazil_compiled_output_name(compiled, 0) != NULL);
  CHECK(frazil_compiled_input_name(compiled, 1) == NULL && frazil_compiled_output_name(NULL, 0) == NULL);
  FrazilValue *result;
  ok(frazil_compiled_run(compiled, inputs, 1, &result));
  check_result(result);
  frazil_value_free(result);
  CHECK(is_error(frazil_compiled_run(compiled, inputs, 0, &result), FRAZIL_ERROR_KIND_INPUT, "input"));
  /* As many bytes are not enough: the types of elements and the sizes have to be those. */
  const int64_t other_sizes[] = {1, 3, 16, 64};
  const struct { int32_t dtype; const int64_t *sizes; const char *text; } others[] = {
      {FRAZIL_DTYPE_INT32, input_sizes, "torch.int32 [1, 3, 32, 32]"},
      {FRAZIL_DTYPE_FLOAT32, other_sizes, "torch.float32 [1, 3, 16, 64]"}};
  for (int i = 0; i < 2; i++) {
    FrazilTensor *other;
    ok(frazil_tensor_new(others[i].dtype, others[i].sizes, 4, image, sizeof image, &other));
    const FrazilTensor *wrong[] = {other};
    CHECK(is_error(frazil_compiled_run(compiled, wrong, 1, &result), FRAZIL_ERROR_KIND_INPUT, others[i].text));
    frazil_tensor_free(other);
  }
  frazil_compiled_free(compiled);

  char cache[4096];
  snprintf(cache, sizeof cache, "%s/cache", folder);
  /* Engines: native, without fusion, and interpreting. */
  FrazilValue *argument;
  ok(frazil_value_tensor(input, &argument));
  const FrazilValue *arguments[] = {argument};
  for (int kind = 0; kind < 3; kind++) {
    FrazilOptions *options = frazil_options_new();
    ok(frazil_options_set_strict(options, true));
    ok(frazil_options_set_threads(options, 2));
    ok(frazil_options_set_specialisations(options, 3));
    ok(frazil_options_set_cache_bytes(options, (uint64_t)1 << 30));
    ok(frazil_options_set_cache_dir(options, cache));
    ok(frazil_options_set_fusion(options, kind != 1));
    ok(frazil_options_set_static_shapes(options, (size_t)kind));
    ok(frazil_options_set_interpret(options, kind == 2));
    FrazilEngine *engine;
    ok(frazil_engine_new(model, options, &engine));
    frazil_options_free(options);
    ok(frazil_engine_call(engine, "forward", arguments, 1, &result));
    check_result(result);
    frazil_value_free(result);
    ok(frazil_engine_call_module(engine, arguments, 1, &result));
    check_result(result);
    frazil_value_free(result);
    const char *names[] = {"x"};
    ok(frazil_engine_call_named(engine, kind == 1 ? "forward" : NULL, NULL, 0, names, arguments, 1, &result));
    check_result(result);
    frazil_value_free(result);
    CHECK(is_error(frazil_engine_call(engine, "forward", NULL, 0, &result), FRAZIL_ERROR_KIND_RAISED,
                   "forward() is missing value for argument 'x'"));
    two_threads(engine, arguments);
    double seconds;
    ok(frazil_engine_compile_seconds(engine, &seconds));
    CHECK(kind == 2 ? seconds == 0 : seconds >= 0);
    char *notes;
    ok(frazil_engine_notes(engine, &notes));
    CHECK((strstr(notes, "kernel calls") != NULL) == (kind != 2));
    frazil_string_free(notes);
    CHECK(is_error(frazil_engine_call(engine, "backward", arguments, 1, &result), FRAZIL_ERROR_KIND_INPUT, "backward"));
    frazil_engine_free(engine);
  }
  frazil_value_free(argument);

  /* A library of the method. */
  char path[4096];
  snprintf(path, sizeof path, "%s/libnet.so", folder);
  FrazilOptions *library = frazil_options_new();
  ok(frazil_options_set_name(library, "net"));
  ok(frazil_options_set_target_cpu(library, "host"));
  ok(frazil_model_write_library(frozen, "forward", &spec, 1, library, path));
  /* A library for one to four images. */
  const int64_t ranged_sizes[4] = {-1, input_sizes[1], input_sizes[2], input_sizes[3]};
  FrazilInputSpec ranged = {FRAZIL_DTYPE_FLOAT32, 4, ranged_sizes};
  FrazilSizeRange batch = {"B", 1, 4};
  char range_path[4096];
  snprintf(range_path, sizeof range_path, "%s/libnets.so", folder);
  ok(frazil_model_write_range_library(frozen, "forward", &ranged, 1, &batch, 1, library, range_path));
  char header_path[4096], start[4096] = "";
  snprintf(header_path, sizeof header_path, "%s/libnets.h", folder);
  FILE *header = fopen(header_path, "r");
  CHECK(header && fread(start, 1, sizeof start - 1, header) > 0 && strstr(start, "B: 1 to 4"));
  if (header) fclose(header);
  CHECK(is_error(frazil_model_write_range_library(frozen, "forward", &ranged, 1, NULL, 0, library, range_path), FRAZIL_ERROR_KIND_ARGUMENT, "the size -1 stands for a range that does not exist"));
  batch.high = 0;
  CHECK(is_error(frazil_model_write_range_library(frozen, "forward", &ranged, 1, &batch, 1, library, range_path), FRAZIL_ERROR_KIND_INPUT, "the range 1..0 of B"));
  ok(frazil_options_set_name(library, "no name"));
  frazil_options_free(library);
  FrazilBytes *stage;
  ok(frazil_model_emit(frozen, "forward", &spec, 1, FRAZIL_STAGE_LLVM, NULL, &stage));
  CHECK(frazil_bytes_len(stage) > 1000);
  frazil_bytes_free(stage);
  CHECK(is_error(frazil_model_emit(frozen, "forward", &spec, 1, 99, NULL, &stage), FRAZIL_ERROR_KIND_ARGUMENT, "no such stage"));
  /* What cannot be compiled: a module that is not frozen, other numbers of inputs, a method that is not there. */
  CHECK(is_error(frazil_model_compile(model, &spec, 1, NULL, &compiled), FRAZIL_ERROR_KIND_UNSUPPORTED, "is not frozen"));
  CHECK(is_error(frazil_model_compile(frozen, &spec, 0, NULL, &compiled), FRAZIL_ERROR_KIND_INPUT, "inputs"));
  CHECK(is_error(frazil_model_write_library(frozen, "backward", &spec, 1, NULL, path), FRAZIL_ERROR_KIND_INPUT, "no method `backward`"));

  CHECK(released == 0);
  frazil_tensor_free(input);
  CHECK(released == 1);
  CHECK(is_error(frazil_tensor_share(FRAZIL_DTYPE_FLOAT32, input_sizes, 4, image, 7, count_release, &released, &input),
                 FRAZIL_ERROR_KIND_ARGUMENT, "was given 7"));
  CHECK(released == 1);
}

static const char graph[] =
    "graph(%x : Tensor, %y : Tensor):\n"
    "  %one : int = prim::Constant[value=1]()\n"
    "  %fresh : Tensor = aten::relu(%x)\n"
    "  %view : Tensor = aten::t(%fresh)\n"
    "  %sum : Tensor = aten::add_(%view, %y, %one)\n"
    "  %unused : Tensor = aten::neg(%y)\n"
    "  return (%sum)\n";

static void aliases_of_a_graph(const FrazilSession *session) {
  FrazilModel *model;
  ok(frazil_model_load_bytes(session, "graph.ir", (const uint8_t *)graph, sizeof graph - 1, &model));
  FrazilAliases *aliases;
  ok(frazil_aliases_new(model, "forward", &aliases));
  bool answer;
  ok(frazil_aliases_may_alias(aliases, "fresh", "%view", &answer));
  CHECK(answer);
  ok(frazil_aliases_may_alias(aliases, "fresh", "x", &answer));
  CHECK(!answer);
  ok(frazil_aliases_may_contain_alias(aliases, "x", "y", &answer));
  CHECK(answer);
  ok(frazil_aliases_has_writers(aliases, "fresh", &answer));
  CHECK(answer);
  ok(frazil_aliases_has_writers(aliases, "y", &answer));
  CHECK(!answer);
  ok(frazil_aliases_may_alias_wildcard(aliases, "x", &answer));
  CHECK(answer);
  ok(frazil_aliases_escapes(aliases, "fresh", &answer));
  CHECK(answer);
  CHECK(is_error(frazil_aliases_has_writers(aliases, "z", &answer), FRAZIL_ERROR_KIND_INPUT, "no value `z`"));
  frazil_aliases_free(aliases);

  char *text;
  ok(frazil_model_alias_text(model, &text));
  CHECK(strstr(text, "%view points to: ") != NULL);
  frazil_string_free(text);
  FrazilModel *after;
  ok(frazil_model_run_passes(model, "dce", &after));
  ok(frazil_model_ir(after, &text));
  CHECK(strstr(text, "aten::add_") != NULL);
  CHECK(strstr(text, "aten::neg") == NULL);
  frazil_string_free(text);
  ok(frazil_model_ir(model, &text));
  CHECK(strstr(text, "aten::neg") != NULL);
  frazil_string_free(text);
  CHECK(is_error(frazil_model_run_passes(model, "no-such-pass", &after), FRAZIL_ERROR_KIND_INPUT, "no-such-pass"));
  CHECK(is_error(frazil_model_freeze(model, NULL, &after), FRAZIL_ERROR_KIND_UNSUPPORTED, "module"));
  frazil_model_free(after);
  frazil_model_free(model);
}

static const char source[] =
    "def total(xs: List[int], scale: float, name: str):\n"
    "    if len(xs) == 0:\n"
    "        raise ValueError('nothing to add')\n"
    "    n = 0\n"
    "    for x in xs:\n"
    "        n += x\n"
    "    return (n * scale, {name: n})\n";

static void values_of_every_kind(const FrazilSession *session) {
  FrazilModel *model;
  ok(frazil_model_load_bytes(session, "total.py", (const uint8_t *)source, sizeof source - 1, &model));
  FrazilOptions *options = frazil_options_new();
  ok(frazil_options_set_interpret(options, true));
  ok(frazil_options_add_method(options, "total"));
  FrazilEngine *engine;
  ok(frazil_engine_new(model, options, &engine));

  FrazilValue *one, *two, *list, *scale, *name;
  ok(frazil_value_int(1, &one));
  ok(frazil_value_int(41, &two));
  const FrazilValue *items[] = {one, two};
  ok(frazil_value_list(session, items, 2, &list));
  ok(frazil_value_float(0.5, &scale));
  ok(frazil_value_str("sum", &name));
  const FrazilValue *arguments[] = {list, scale, name};
  FrazilValue *result, *first, *second, *pair, *key;
  ok(frazil_engine_call(engine, "total", arguments, 3, &result));
  size_t count;
  ok(frazil_value_count(result, &count));
  CHECK(frazil_value_kind(result) == FRAZIL_VALUE_KIND_TUPLE && count == 2);
  ok(frazil_value_item(result, 0, &first));
  double half;
  ok(frazil_value_as_float(first, &half));
  CHECK(half == 21.0);
  ok(frazil_value_item(result, 1, &second));
  CHECK(frazil_value_kind(second) == FRAZIL_VALUE_KIND_DICT);
  ok(frazil_value_item(second, 0, &pair));
  ok(frazil_value_item(pair, 0, &key));
  char *text;
  ok(frazil_value_as_str(key, &text));
  CHECK(strcmp(text, "sum") == 0);
  frazil_string_free(text);
  frazil_value_free(key);
  ok(frazil_value_item(pair, 1, &key));
  int64_t n;
  ok(frazil_value_as_int(key, &n));
  CHECK(n == 42);
  bool truth;
  CHECK(is_error(frazil_value_as_bool(key, &truth), FRAZIL_ERROR_KIND_ARGUMENT, "no bool"));
  CHECK(is_error(frazil_value_item(result, 2, &key), FRAZIL_ERROR_KIND_ARGUMENT, "there are 2"));
  frazil_value_free(key);
  frazil_value_free(pair);
  frazil_value_free(second);
  frazil_value_free(first);
  frazil_value_free(result);

  /* What the program raises. */
  FrazilValue *empty;
  const FrazilValue *mixed[] = {one, scale};
  CHECK(is_error(frazil_value_list(session, mixed, 2, &empty), FRAZIL_ERROR_KIND_ARGUMENT, "of one type"));
  ok(frazil_value_list(session, NULL, 0, &empty));
  arguments[0] = empty;
  CHECK(is_error(frazil_engine_call(engine, "total", arguments, 3, &result), FRAZIL_ERROR_KIND_RAISED, "nothing to add"));
  frazil_value_free(empty);
  frazil_value_free(list);
  frazil_value_free(one);
  frazil_value_free(two);
  frazil_value_free(scale);
  frazil_value_free(name);
  frazil_engine_free(engine);
  frazil_options_free(options);
  frazil_model_free(model);
}

static const char modes[] =
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.norm = nn.BatchNorm1d(1, affine=False)\n"
    "        self.act = nn.ReLU()\n"
    "    def forward(self, x):\n"
    "        return self.act(self.norm(x))\n";

/* Training mode: the statistics of the batch, which running ones take over; evaluation mode: the running ones. */
static void training_and_evaluation(const FrazilSession *session) {
  FrazilModel *made, *training, *evaluating, *refused;
  ok(frazil_model_load_bytes(session, "net.py", (const uint8_t *)modes, sizeof modes - 1, &made));
  ok(frazil_model_train(made, true, &training));
  ok(frazil_model_eval(training, &evaluating));
  bool is_training;
  ok(frazil_model_is_training(training, &is_training));
  CHECK(is_training);
  ok(frazil_model_is_training(evaluating, &is_training));
  CHECK(!is_training);
  CHECK(is_error(frazil_model_freeze(training, NULL, &refused), FRAZIL_ERROR_KIND_UNSUPPORTED, "in eval mode"));

  const int64_t sizes[] = {2, 1};
  const float elements[] = {1, 3};
  FrazilTensor *x;
  ok(frazil_tensor_new(FRAZIL_DTYPE_FLOAT32, sizes, 2, elements, sizeof elements, &x));
  FrazilValue *argument;
  ok(frazil_value_tensor(x, &argument));
  const FrazilValue *arguments[] = {argument};
  const FrazilModel *models[] = {training, evaluating};
  const float expected[] = {1, 3};
  for (int i = 0; i < 4; i++) {
    FrazilOptions *options = frazil_options_new();
    ok(frazil_options_set_interpret(options, i >= 2));
    ok(frazil_options_add_method(options, "act.forward"));
    FrazilEngine *engine;
    ok(frazil_engine_new(models[i % 2], options, &engine));
    frazil_options_free(options);
    FrazilValue *result;
    FrazilTensor *tensor;
    float got[2];
    ok(frazil_engine_call(engine, "forward", arguments, 1, &result));
    ok(frazil_value_as_tensor(result, &tensor));
    ok(frazil_tensor_read(tensor, got, sizeof got));
    CHECK(fabsf(got[1] - expected[i % 2]) < 1e-3f);
    frazil_tensor_free(tensor);
    frazil_value_free(result);
    /* A submodule's method, by its dotted path. */
    ok(frazil_engine_call(engine, "act.forward", arguments, 1, &result));
    ok(frazil_value_as_tensor(result, &tensor));
    ok(frazil_tensor_read(tensor, got, sizeof got));
    CHECK(got[0] == 1 && got[1] == 3);
    frazil_tensor_free(tensor);
    frazil_value_free(result);
    frazil_engine_free(engine);
  }
  char *code;
  ok(frazil_model_code(made, "act.forward", &code));
  CHECK(strstr(code, "def forward(") != NULL);
  frazil_string_free(code);
  frazil_value_free(argument);
  frazil_tensor_free(x);
  frazil_model_free(made);
  frazil_model_free(training);
  frazil_model_free(evaluating);
}

static void mistakes(const FrazilSession *session) {
  FrazilModel *model;
  CHECK(is_error(frazil_model_load(session, "no/such/file.pt", &model), FRAZIL_ERROR_KIND_IO, "no/such/file.pt"));
  CHECK(is_error(frazil_model_load(NULL, "x", &model), FRAZIL_ERROR_KIND_ARGUMENT, "the session is NULL"));
  CHECK(is_error(frazil_model_load(session, NULL, &model), FRAZIL_ERROR_KIND_ARGUMENT, "the path is NULL"));
  CHECK(is_error(frazil_model_load(session, "\xff", &model), FRAZIL_ERROR_KIND_ARGUMENT, "not UTF-8"));
  CHECK(is_error(frazil_session_new(NULL), FRAZIL_ERROR_KIND_ARGUMENT, "the result is NULL"));
  const uint8_t text[] = "graph(%x : Tensor:\n";
  CHECK(is_error(frazil_model_load_bytes(session, "bad.ir", text, sizeof text - 1, &model), FRAZIL_ERROR_KIND_INPUT, "bad.ir"));
  FrazilTensor *tensor;
  CHECK(is_error(frazil_tensor_new(99, input_sizes, 4, image, sizeof image, &tensor), FRAZIL_ERROR_KIND_ARGUMENT, "99"));
  const int64_t negative[] = {-1};
  CHECK(is_error(frazil_tensor_new(6, negative, 1, image, 4, &tensor), FRAZIL_ERROR_KIND_ARGUMENT, "negative"));
  FrazilSession *limited;
  CHECK(is_error(frazil_session_new_with_limits("alien=1", &limited), FRAZIL_ERROR_KIND_ARGUMENT, "there is no limit `alien`"));
  CHECK(is_error(frazil_session_new_with_limits(NULL, &limited), FRAZIL_ERROR_KIND_ARGUMENT, "the text of the limits is NULL"));
  CHECK(is_error(frazil_session_new_with_limits("nodes=1", NULL), FRAZIL_ERROR_KIND_ARGUMENT, "the result is NULL"));
  ok(frazil_session_new_with_limits("untrusted,nodes=1", &limited));
  const uint8_t source[] = "def f(x): return x + 1\n";
  CHECK(is_error(frazil_model_load_bytes(limited, "f.py", source, sizeof source - 1, &model), FRAZIL_ERROR_KIND_LIMIT, "the limit nodes=1 is exceeded"));
  frazil_session_free(limited);
  frazil_model_free(NULL);
  frazil_error_free(NULL);
  frazil_string_free(NULL);
  CHECK(frazil_error_kind(NULL) == FRAZIL_ERROR_KIND_NONE);
}

int main(int argc, char **argv) {
  CHECK(argc == 5);
  CHECK(strlen(frazil_version()) >= 5);
  read_floats(argv[2], image, INPUT);
  read_floats(argv[3], expected, OUTPUT);
  FrazilSession *session;
  ok(frazil_session_new(&session));
  mistakes(session);
  values_of_every_kind(session);
  aliases_of_a_graph(session);
  training_and_evaluation(session);
  FrazilModel *model, *frozen;
  ok(frazil_model_load(session, argv[1], &model));
  /* Nothing is freed by what it was made of. */
  frazil_session_free(session);
  size_t methods;
  char *name;
  ok(frazil_model_method_count(model, &methods));
  ok(frazil_model_method_name(model, 0, &name));
  CHECK(methods == 1 && strcmp(name, "forward") == 0);
  frazil_string_free(name);
  ok(frazil_model_freeze(model, NULL, &frozen));
  char *code;
  ok(frazil_model_code(frozen, "forward", &code));
  CHECK(strstr(code, "torch.conv2d") != NULL && strstr(code, "batch_norm") == NULL);
  frazil_string_free(code);
  run_it(model, frozen, argv[4]);

  char path[4096];
  snprintf(path, sizeof path, "%s/frozen.pt", argv[4]);
  ok(frazil_model_save(frozen, path));
  frazil_model_free(frozen);
  frazil_model_free(model);
  puts("all is as it should be");
  return 0;
}
