/* Modules as objects: attributes, signatures, state dictionaries, conversions, archives with extra files, hooks, errors; tests/program.rs compiles and
   runs it. Argument: a folder to write to. */
#include "check.h"

static const char source[] =
    "class Scale(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.factor = nn.Parameter(torch.ones(2))\n"
    "        self.steps = 3\n"
    "        self.names: List[str] = ['a', 'b']\n"
    "    def forward(self, x):\n"
    "        return x * self.factor\n"
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.scale = Scale()\n"
    "        self.register_buffer('offset', torch.zeros(2))\n"
    "        self.calls = 0\n"
    "    def forward(self, x, bias: float = 0.5, repeat: Optional[int] = None):\n"
    "        self.calls += 1\n"
    "        y = self.scale(x) + self.offset + bias\n"
    "        assert y.dim() == 1, 'a vector is wanted'\n"
    "        return y\n";

static float run(const FrazilModel *model, size_t index) {
  FrazilEngine *engine = interpreter_of(model, NULL);
  const float elements[] = {1, 2};
  FrazilValue *x = floats(elements, 2), *result;
  const FrazilValue *arguments[] = {x};
  ok(frazil_engine_call(engine, "forward", arguments, 1, &result));
  float got = element(result, index);
  frazil_value_free(result);
  frazil_value_free(x);
  frazil_engine_free(engine);
  return got;
}

static void attributes(const FrazilSession *session, const FrazilModel *model) {
  FrazilValue *value, *two;
  int64_t n;
  bool has;
  char *text;
  ok(frazil_model_attribute(model, "scale.steps", &value));
  ok(frazil_value_as_int(value, &n));
  CHECK(n == 3);
  frazil_value_free(value);
  ok(frazil_model_has_attribute(model, "scale.nothing", &has));
  CHECK(!has);
  CHECK(is_error(frazil_model_attribute(model, "scale.nothing", &value), FRAZIL_ERROR_KIND_INPUT, "Scale has no attribute `nothing`"));

  /* What changes gives a new model; the old one stays as it is. */
  FrazilModel *changed, *refused;
  const float elements[] = {10, 20};
  FrazilValue *factor = floats(elements, 2);
  ok(frazil_model_set_attribute(model, "scale.factor", factor, &changed));
  CHECK(run(model, 1) == 2.5f && run(changed, 1) == 40.5f);
  frazil_model_free(changed);
  CHECK(is_error(frazil_model_set_attribute(model, "scale.steps", factor, &refused), FRAZIL_ERROR_KIND_INPUT,
                 "Could not cast attribute 'steps' to type int"));
  ok(frazil_value_int(2, &two));
  ok(frazil_model_register_attribute(model, "extra", two, &changed));
  FrazilModel *defined;
  ok(frazil_model_define(changed, "def more(self) -> int:\n    return self.extra + self.scale.steps\n", &defined));
  FrazilEngine *engine = interpreter_of(defined, "more");
  ok(frazil_engine_call(engine, "more", NULL, 0, &value));
  ok(frazil_value_as_int(value, &n));
  CHECK(n == 5);
  frazil_value_free(value);
  frazil_engine_free(engine);
  frazil_model_free(defined);
  CHECK(is_error(frazil_model_define(model, "def more(self):\n    return nothing\n", &defined), FRAZIL_ERROR_KIND_INPUT, "nothing"));
  frazil_model_free(changed);

  FrazilTensor *tensor;
  ok(frazil_value_as_tensor(factor, &tensor));
  ok(frazil_model_register_parameter(model, "weight", tensor, true, &changed));
  ok(frazil_model_named_parameters(changed, true, &value));
  ok(frazil_value_repr(session, value, &text));
  CHECK(has_text(text, "{'weight': tensor([10., 20.]), 'scale.factor'"));
  frazil_value_free(value);
  frazil_model_free(changed);
  ok(frazil_model_register_buffer(model, "kept", tensor, true, &changed));
  ok(frazil_model_named_buffers(changed, false, &value));
  size_t count;
  ok(frazil_value_count(value, &count));
  CHECK(count == 2);
  frazil_value_free(value);
  frazil_tensor_free(tensor);

  ok(frazil_model_named_modules(model, &value));
  ok(frazil_value_repr(session, value, &text));
  CHECK(is_text(text, "{'': 'Net', 'scale': 'Scale'}"));
  frazil_value_free(value);
  ok(frazil_model_named_attributes(model, true, &value));
  ok(frazil_value_repr(session, value, &text));
  CHECK(has_text(text, "'scale.names': ['a', 'b']"));
  frazil_value_free(value);
  ok(frazil_model_class_name(model, &text));
  CHECK(is_text(text, "Net"));

  frazil_model_free(changed);

  FrazilModel *head = load_source(session, "head.py", "class Head(nn.Module):\n    def forward(self, x):\n        return x.relu()\n"), *nested;
  ok(frazil_model_set_submodule(model, "head", head, &changed));
  ok(frazil_model_set_submodule(changed, "scale.head", head, &nested));
  ok(frazil_model_code(nested, "scale.head.forward", &text));
  CHECK(has_text(text, "torch.relu(x)"));
  frazil_model_free(nested);
  frazil_model_free(changed);
  frazil_model_free(head);
  frazil_value_free(two);
  frazil_value_free(factor);
}

static void signatures(const FrazilModel *model) {
  FrazilSignature *signature;
  ok(frazil_model_signature(model, "forward", &signature));
  CHECK(strstr(frazil_signature_text(signature), "forward(__torch__.Net self, Tensor x, float bias=0.5, int? repeat=None) -> Tensor"));
  CHECK(frazil_signature_argument_count(signature) == 3);
  CHECK(strcmp(frazil_signature_argument_name(signature, 1), "bias") == 0);
  CHECK(strcmp(frazil_signature_argument_type(signature, 2), "Optional[int]") == 0);
  CHECK(!frazil_signature_argument_has_default(signature, 0) && frazil_signature_argument_has_default(signature, 1));
  CHECK(!frazil_signature_argument_by_name_only(signature, 0));
  CHECK(frazil_signature_argument_name(signature, 3) == NULL);
  FrazilValue *value;
  double bias;
  ok(frazil_signature_argument_default(signature, 1, &value));
  ok(frazil_value_as_float(value, &bias));
  CHECK(bias == 0.5);
  frazil_value_free(value);
  CHECK(is_error(frazil_signature_argument_default(signature, 0, &value), FRAZIL_ERROR_KIND_ARGUMENT, "no default"));
  CHECK(frazil_signature_result_count(signature) == 1);
  CHECK(strcmp(frazil_signature_result_name(signature, 0), "y") == 0);
  CHECK(strcmp(frazil_signature_result_type(signature, 0), "Tensor") == 0);
  size_t index;
  ok(frazil_signature_find_argument(signature, "repeat", &index));
  CHECK(index == 2);
  CHECK(is_error(frazil_signature_find_argument(signature, "again", &index), FRAZIL_ERROR_KIND_INPUT, "no argument `again`"));
  frazil_signature_free(signature);
  ok(frazil_model_signature(model, "scale.forward", &signature));
  CHECK(frazil_signature_argument_count(signature) == 1);
  frazil_signature_free(signature);
  CHECK(frazil_signature_argument_count(NULL) == 0 && frazil_signature_text(NULL) == NULL);
}

static void state(const FrazilSession *session, const FrazilModel *model, const char *folder) {
  FrazilValue *state, *missing, *unexpected, *again;
  FrazilModel *loaded;
  char *text, path[4096];
  ok(frazil_model_state_dict(model, &state));
  ok(frazil_value_repr(session, state, &text));
  CHECK(is_text(text, "{'offset': tensor([0., 0.]), 'scale.factor': tensor([1., 1.])}"));

  snprintf(path, sizeof path, "%s/state.safetensors", folder);
  ok(frazil_write_safetensors(state, path));
  ok(frazil_read_safetensors(path, &again));
  ok(frazil_model_load_state_dict(model, again, true, NULL, NULL, &loaded));
  frazil_model_free(loaded);
  frazil_value_free(again);
  frazil_value_free(state);
  CHECK(is_error(frazil_read_safetensors("no/such/file", &again), FRAZIL_ERROR_KIND_IO, "no/such/file"));

  const float elements[] = {5, 6, 7};
  FrazilValue *keys[2], *values[2];
  ok(frazil_value_str("scale.factor", &keys[0]));
  ok(frazil_value_str("alien", &keys[1]));
  values[0] = floats(elements, 2);
  values[1] = floats(elements, 3);
  ok(frazil_value_dict(session, (const FrazilValue *const *)keys, (const FrazilValue *const *)values, 2, &state));
  ok(frazil_model_load_state_dict(model, state, false, &missing, &unexpected, &loaded));
  ok(frazil_value_repr(session, missing, &text));
  CHECK(is_text(text, "['offset']"));
  ok(frazil_value_repr(session, unexpected, &text));
  CHECK(is_text(text, "['alien']"));
  CHECK(run(loaded, 0) == 5.5f);
  frazil_value_free(missing);
  frazil_value_free(unexpected);
  frazil_model_free(loaded);
  CHECK(is_error(frazil_model_load_state_dict(model, state, true, NULL, NULL, &loaded), FRAZIL_ERROR_KIND_INPUT, "Missing key(s)"));
  frazil_value_free(state);
  const FrazilValue *wrong[] = {values[1]};
  ok(frazil_value_dict(session, (const FrazilValue *const *)keys, wrong, 1, &state));
  CHECK(is_error(frazil_model_load_state_dict(model, state, false, NULL, NULL, &loaded), FRAZIL_ERROR_KIND_INPUT, "size mismatch"));
  CHECK(is_error(frazil_model_load_state_dict(model, keys[0], false, NULL, NULL, &loaded), FRAZIL_ERROR_KIND_ARGUMENT, "strings for keys"));
  frazil_value_free(state);
  for (int i = 0; i < 2; i++) {
    frazil_value_free(keys[i]);
    frazil_value_free(values[i]);
  }
}

static int32_t dtype_of(const FrazilModel *model, const char *path) {
  FrazilValue *value;
  FrazilTensor *tensor;
  ok(frazil_model_attribute(model, path, &value));
  ok(frazil_value_as_tensor(value, &tensor));
  int32_t dtype = frazil_tensor_dtype(tensor);
  frazil_tensor_free(tensor);
  frazil_value_free(value);
  return dtype;
}

static void conversions(const FrazilModel *model) {
  typedef FrazilError *(*Convert)(const FrazilModel *, FrazilModel **);
  static const struct { Convert convert; int32_t dtype; } kinds[] = {{frazil_model_half, FRAZIL_DTYPE_FLOAT16},
                                                                     {frazil_model_bfloat16, FRAZIL_DTYPE_BFLOAT16},
                                                                     {frazil_model_double, FRAZIL_DTYPE_FLOAT64},
                                                                     {frazil_model_float, FRAZIL_DTYPE_FLOAT32}};
  FrazilModel *converted;
  for (int i = 0; i < 4; i++) {
    ok(kinds[i].convert(model, &converted));
    CHECK(dtype_of(converted, "scale.factor") == kinds[i].dtype && dtype_of(converted, "offset") == kinds[i].dtype);
    frazil_model_free(converted);
    ok(frazil_model_to(model, kinds[i].dtype, &converted));
    CHECK(dtype_of(converted, "offset") == kinds[i].dtype);
    frazil_model_free(converted);
  }
  // Integers have no gradients, which parameters may require.
  CHECK(is_error(frazil_model_to_type(model, FRAZIL_DTYPE_INT64, &converted), FRAZIL_ERROR_KIND_UNSUPPORTED, "requires gradients"));
  FrazilModel *without;
  ok(frazil_model_requires_grad(model, false, &without));
  ok(frazil_model_to_type(without, FRAZIL_DTYPE_INT64, &converted));
  CHECK(dtype_of(converted, "scale.factor") == FRAZIL_DTYPE_INT64);
  frazil_model_free(without);
  frazil_model_free(converted);
  CHECK(is_error(frazil_model_to(model, FRAZIL_DTYPE_INT64, &converted), FRAZIL_ERROR_KIND_UNSUPPORTED, "floating point or complex"));
  CHECK(is_error(frazil_model_to(model, 99, &converted), FRAZIL_ERROR_KIND_ARGUMENT, "99"));
  char *text;
  ok(frazil_model_requires_grad(model, false, &converted));
  ok(frazil_model_ir(converted, &text));
  CHECK(strstr(text, "requires_grad=1") == NULL);
  frazil_string_free(text);
  frazil_model_free(converted);
}

static void extra_files(const FrazilSession *session, const FrazilModel *model, const char *folder) {
  char path[4096], *text;
  snprintf(path, sizeof path, "%s/net.pt", folder);
  static const uint8_t bytes[] = {0, 1, 255};
  const FrazilExtraFile files[] = {{"notes.txt", (const uint8_t *)"hello", 5}, {"raw.bin", bytes, 3}};
  ok(frazil_model_save_with(model, path, files, 2));
  FrazilModel *loaded;
  ok(frazil_model_load(session, path, &loaded));
  size_t count;
  ok(frazil_model_extra_file_count(loaded, &count));
  CHECK(count == 2);
  ok(frazil_model_extra_file_name(loaded, 0, &text));
  CHECK(is_text(text, "notes.txt"));
  CHECK(is_error(frazil_model_extra_file_name(loaded, 2, &text), FRAZIL_ERROR_KIND_ARGUMENT, "there are 2"));
  FrazilBytes *content, *archive;
  ok(frazil_model_extra_file(loaded, "raw.bin", &content));
  CHECK(frazil_bytes_len(content) == 3 && memcmp(frazil_bytes_data(content), bytes, 3) == 0);
  frazil_bytes_free(content);
  CHECK(is_error(frazil_model_extra_file(loaded, "other", &content), FRAZIL_ERROR_KIND_INPUT, "no extra file `other`"));
  /* They stay with the model, here in memory. */
  const FrazilExtraFile replaced[] = {{"notes.txt", NULL, 0}};
  ok(frazil_model_save_bytes(loaded, replaced, 1, &archive));
  frazil_model_free(loaded);
  ok(frazil_model_load_bytes(session, "net.pt", frazil_bytes_data(archive), frazil_bytes_len(archive), &loaded));
  frazil_bytes_free(archive);
  ok(frazil_model_extra_file_count(loaded, &count));
  CHECK(count == 2);
  ok(frazil_model_extra_file(loaded, "notes.txt", &content));
  CHECK(frazil_bytes_len(content) == 0);
  frazil_bytes_free(content);
  frazil_model_free(loaded);
  CHECK(frazil_bytes_data(NULL) == NULL && frazil_bytes_len(NULL) == 0);
}

typedef struct {
  int before, after, released;
  FrazilErrorKind fails;
} Seen;

static void release(void *context) { ((Seen *)context)->released++; }

/* Gives ten times the first argument, or an error. */
static FrazilError *before(void *context, const FrazilValue *arguments, FrazilValue **replacement) {
  Seen *seen = context;
  seen->before++;
  if (seen->fails != FRAZIL_ERROR_KIND_NONE) return frazil_error_new(seen->fails, "the hook fails");
  FrazilValue *first;
  ok(frazil_value_item(arguments, 0, &first));
  const float elements[] = {10 * element(first, 0), 10 * element(first, 1)};
  frazil_value_free(first);
  FrazilValue *items[] = {floats(elements, 2)};
  ok(frazil_value_tuple((const FrazilValue *const *)items, 1, replacement));
  frazil_value_free(items[0]);
  return NULL;
}

/* Looks at the result, and lets it be. */
static FrazilError *after(void *context, const FrazilValue *arguments, const FrazilValue *result, FrazilValue **replacement) {
  Seen *seen = context;
  seen->after++;
  size_t count;
  ok(frazil_value_count(arguments, &count));
  CHECK(count == 1 && frazil_value_kind(result) == FRAZIL_VALUE_KIND_TENSOR && *replacement == NULL);
  return NULL;
}

/* Gives another result. */
static FrazilError *negates(void *context, const FrazilValue *arguments, const FrazilValue *result, FrazilValue **replacement) {
  (void)context, (void)arguments;
  const float elements[] = {-element(result, 0), -element(result, 1)};
  *replacement = floats(elements, 2);
  return NULL;
}

static void hooks(const FrazilModel *model) {
  FrazilEngine *engine = interpreter_of(model, NULL);
  Seen seen = {0, 0, 0, FRAZIL_ERROR_KIND_NONE};
  uint64_t first, second, third;
  ok(frazil_engine_register_forward_pre_hook(engine, before, &seen, release, &first));
  ok(frazil_engine_register_forward_hook(engine, after, &seen, release, &second));
  ok(frazil_engine_register_forward_hook(engine, negates, NULL, NULL, &third));
  CHECK(first != second && second != third);
  const float elements[] = {1, 2};
  FrazilValue *x = floats(elements, 2), *result;
  const FrazilValue *arguments[] = {x};
  ok(frazil_engine_call_module(engine, arguments, 1, &result));
  CHECK(element(result, 0) == -10.5f && element(result, 1) == -20.5f);
  frazil_value_free(result);
  ok(frazil_engine_call(engine, "forward", arguments, 1, &result));
  CHECK(element(result, 0) == 1.5f);
  frazil_value_free(result);
  CHECK(seen.before == 1 && seen.after == 1 && seen.released == 0);

  /* What a hook fails with comes out as it was. */
  seen.fails = FRAZIL_ERROR_KIND_RAISED;
  CHECK(is_error(frazil_engine_call_module(engine, arguments, 1, &result), FRAZIL_ERROR_KIND_RAISED, "the hook fails"));
  seen.fails = FRAZIL_ERROR_KIND_IO;
  CHECK(is_error(frazil_engine_call_module(engine, arguments, 1, &result), FRAZIL_ERROR_KIND_IO, "the hook fails"));
  seen.fails = FRAZIL_ERROR_KIND_NONE;

  bool removed;
  ok(frazil_engine_remove_hook(engine, first, &removed));
  CHECK(removed && seen.released == 1);
  ok(frazil_engine_remove_hook(engine, first, &removed));
  CHECK(!removed);
  ok(frazil_engine_call_module(engine, arguments, 1, &result));
  CHECK(element(result, 0) == -1.5f);
  frazil_value_free(result);

  /* State that calls have changed, as a model. */
  FrazilModel *snapshot;
  FrazilValue *calls;
  int64_t n;
  ok(frazil_engine_snapshot(engine, &snapshot));
  ok(frazil_model_attribute(snapshot, "calls", &calls));
  ok(frazil_value_as_int(calls, &n));
  CHECK(n == 3);
  frazil_value_free(calls);
  frazil_model_free(snapshot);
  char *text;
  ok(frazil_engine_graph(engine, "forward", &text));
  CHECK(has_text(text, "prim::GetAttr[name=\"calls\"]"));
  frazil_engine_free(engine);
  CHECK(seen.released == 2);
  frazil_value_free(x);
}

/* Kinds of errors, and the places that they are about. */
static void errors(const FrazilSession *session, const FrazilModel *model) {
  FrazilModel *refused;
  static const char bad[] = "def f(x):\n    return y\n";
  FrazilError *error = frazil_model_load_bytes(session, "bad.py", (const uint8_t *)bad, sizeof bad - 1, &refused);
  CHECK(frazil_error_kind(error) == FRAZIL_ERROR_KIND_INPUT && frazil_error_place_count(error) == 1);
  CHECK(strcmp(frazil_error_place(error, 0), "bad.py:2:12") == 0 && frazil_error_place(error, 1) == NULL);
  frazil_error_free(error);
  static const char graph[] = "graph(%x : Tensor):\n  return (%y)\n";
  error = frazil_model_load_bytes(session, "bad.ir", (const uint8_t *)graph, sizeof graph - 1, &refused);
  CHECK(frazil_error_place_count(error) == 1 && strcmp(frazil_error_place(error, 0), "bad.ir:2:11") == 0);
  frazil_error_free(error);

  /* Of a text, the place is one of that file. */
  static const char raises[] = "graph(%x : Tensor):\n  %n : int = prim::Constant[value=7]()\n  %y : Tensor = aten::unsqueeze(%x, %n)\n  return (%y)\n";
  FrazilModel *text_model;
  FrazilValue *vector = floats((const float[]){1, 2}, 2), *nothing;
  const FrazilValue *vectors[] = {vector};
  ok(frazil_model_load_bytes(session, "raises.ir", (const uint8_t *)raises, sizeof raises - 1, &text_model));
  FrazilEngine *raising = interpreter_of(text_model, NULL);
  error = frazil_engine_call(raising, "forward", vectors, 1, &nothing);
  CHECK(frazil_error_kind(error) == FRAZIL_ERROR_KIND_RAISED && strstr(frazil_error_message(error), "at raises.ir:3:17"));
  CHECK(frazil_error_place_count(error) == 1 && strcmp(frazil_error_place(error, 0), "raises.ir:3:17") == 0);
  frazil_error_free(error);
  frazil_engine_free(raising);
  frazil_value_free(vector);
  frazil_model_free(text_model);

  FrazilEngine *engine = interpreter_of(model, NULL);
  const int64_t sizes[] = {1, 2};
  const float elements[] = {1, 2};
  FrazilTensor *matrix;
  FrazilValue *x, *result;
  ok(frazil_tensor_new(FRAZIL_DTYPE_FLOAT32, sizes, 2, elements, sizeof elements, &matrix));
  ok(frazil_value_tensor(matrix, &x));
  const FrazilValue *arguments[] = {x};
  error = frazil_engine_call(engine, "forward", arguments, 1, &result);
  CHECK(frazil_error_kind(error) == FRAZIL_ERROR_KIND_RAISED && strstr(frazil_error_message(error), "a vector is wanted"));
  CHECK(frazil_error_place_count(error) == 1 && strncmp(frazil_error_place(error, 0), "modules.py:18:", 14) == 0);
  frazil_error_free(error);
  frazil_value_free(x);
  frazil_tensor_free(matrix);

  /* Methods that are not there are the caller's mistake, wherever they are named. */
  char *text;
  FrazilSignature *signature;
  FrazilAliases *aliases;
  FrazilValue *constants;
  CHECK(is_error(frazil_engine_call(engine, "backward", NULL, 0, &result), FRAZIL_ERROR_KIND_INPUT, "no method `backward`"));
  CHECK(is_error(frazil_engine_graph(engine, "backward", &text), FRAZIL_ERROR_KIND_INPUT, "no method `backward`"));
  CHECK(is_error(frazil_model_graph(model, "backward", &text), FRAZIL_ERROR_KIND_INPUT, "no method `backward`"));
  CHECK(is_error(frazil_model_code(model, "backward", &text), FRAZIL_ERROR_KIND_INPUT, "no method `backward`"));
  CHECK(is_error(frazil_model_code_with_constants(model, "backward", &text, &constants), FRAZIL_ERROR_KIND_INPUT, "no method `backward`"));
  CHECK(is_error(frazil_model_signature(model, "scale.backward", &signature), FRAZIL_ERROR_KIND_INPUT, "no method `scale.backward`"));
  CHECK(is_error(frazil_aliases_new(model, "backward", &aliases), FRAZIL_ERROR_KIND_INPUT, "no method `backward`"));
  frazil_engine_free(engine);

  error = frazil_error_new(FRAZIL_ERROR_KIND_BUSY, NULL);
  CHECK(frazil_error_kind(error) == FRAZIL_ERROR_KIND_BUSY && *frazil_error_message(error) == 0);
  frazil_error_free(error);
  CHECK(frazil_error_place_count(NULL) == 0 && frazil_error_place(NULL, 0) == NULL);
}

static void code(const FrazilSession *session, const FrazilModel *model) {
  FrazilModel *evaluating, *frozen;
  ok(frazil_model_eval(model, &evaluating));
  ok(frazil_model_freeze(evaluating, NULL, &frozen));
  char *text;
  FrazilValue *constants;
  ok(frazil_model_code_with_constants(frozen, "forward", &text, &constants));
  CHECK(has_text(text, "CONSTANTS.c0"));
  ok(frazil_value_repr(session, constants, &text));
  CHECK(has_text(text, "{'c0': tensor("));
  frazil_value_free(constants);
  ok(frazil_model_graph(frozen, "forward", &text));
  CHECK(has_text(text, "aten::mul"));
  ok(frazil_model_dot(frozen, &text));
  CHECK(has_text(text, "digraph"));
  frazil_model_free(frozen);
  FrazilOptions *options = frazil_options_new();
  ok(frazil_options_preserve(options, "offset"));
  ok(frazil_options_set_optimize_numerics(options, false));
  ok(frazil_model_optimize_for_inference(evaluating, options, &frozen));
  bool has;
  ok(frazil_model_has_attribute(frozen, "offset", &has));
  CHECK(has);
  frazil_options_free(options);
  frazil_model_free(frozen);
  frazil_model_free(evaluating);
}

/* Text beside its tensors, and functions as modules. */
static void texts(const FrazilSession *session, const FrazilModel *model, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/net.ir", folder);
  ok(frazil_model_save_ir(model, path));
  FrazilModel *again, *restored, *functions, *function;
  ok(frazil_model_load(session, path, &again));
  ok(frazil_model_restored(again, &restored));
  CHECK(run(restored, 1) == 2.5f);
  frazil_model_free(restored);
  frazil_model_free(again);
  functions = load_source(session, "f.py", "def f(x):\n    return x + 1\ndef g(x):\n    return f(x) * 2\n");
  ok(frazil_model_function(functions, "g", &function));
  CHECK(run(function, 1) == 6);
  frazil_model_free(function);
  CHECK(is_error(frazil_model_function(functions, "h", &function), FRAZIL_ERROR_KIND_INPUT, "no function `h`"));
  frazil_model_free(functions);
}

/* From a file, in evaluation mode. */
static void from_a_file(const FrazilSession *session, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/net.pt", folder);
  FrazilOptions *options = frazil_options_new();
  ok(frazil_options_set_interpret(options, true));
  ok(frazil_options_set_eval(options, true));
  char file[4096];
  snprintf(file, sizeof file, "%s/net.tune", folder);
  ok(frazil_options_set_tune(options, file));
  FrazilEngine *engine;
  ok(frazil_engine_load(session, path, options, &engine));
  FrazilModel *model;
  bool is_training;
  ok(frazil_engine_snapshot(engine, &model));
  ok(frazil_model_is_training(model, &is_training));
  CHECK(!is_training);
  frazil_model_free(model);
  frazil_engine_free(engine);
  CHECK(is_error(frazil_engine_load(session, "no/such/file", options, &engine), FRAZIL_ERROR_KIND_IO, "no/such/file"));
  frazil_options_free(options);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  FrazilSession *session;
  ok(frazil_session_new(&session));
  FrazilModel *made = load_source(session, "modules.py", source), *model;
  ok(frazil_model_train(made, true, &model));
  attributes(session, model);
  signatures(model);
  state(session, model, argv[1]);
  conversions(model);
  extra_files(session, model, argv[1]);
  hooks(model);
  errors(session, model);
  code(session, model);
  texts(session, model, argv[1]);
  from_a_file(session, argv[1]);
  frazil_model_free(model);
  frazil_model_free(made);
  frazil_session_free(session);
  puts("all is as it should be");
  return 0;
}
