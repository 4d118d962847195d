/* Operators by name, and tracing with functions that call them; tests/program.rs compiles and runs it. */
#include "check.h"

static FrazilValue *call(const FrazilOps *ops, const char *operator, const FrazilValue *a, const FrazilValue *b) {
  const FrazilValue *arguments[] = {a, b};
  FrazilValue *result;
  ok(frazil_ops_call(ops, operator, arguments, b ? 2 : 1, NULL, NULL, 0, &result));
  return result;
}

static void operators(const FrazilSession *session) {
  FrazilOps *ops;
  ok(frazil_ops_new(session, &ops));
  bool tracing;
  ok(frazil_ops_is_tracing(ops, &tracing));
  CHECK(!tracing);
  const float elements[] = {3, -1, 2};
  FrazilValue *x = floats(elements, 3), *y = call(ops, "aten::relu", x, NULL), *ten, *sum;
  CHECK(element(y, 0) == 3 && element(y, 1) == 0);
  /* Arguments by name. */
  ok(frazil_value_int(10, &ten));
  const FrazilValue *arguments[] = {x, y};
  const char *names[] = {"alpha"};
  const FrazilValue *named[] = {ten};
  ok(frazil_ops_call(ops, "aten::add", arguments, 2, names, named, 1, &sum));
  CHECK(element(sum, 0) == 33);
  frazil_value_free(sum);
  /* Several results are a tuple; lists of tensors are arguments. */
  FrazilValue *sorted = call(ops, "aten::sort", x, NULL), *list, *both, *item;
  size_t count;
  ok(frazil_value_count(sorted, &count));
  CHECK(frazil_value_kind(sorted) == FRAZIL_VALUE_KIND_TUPLE && count == 2);
  frazil_value_free(sorted);
  ok(frazil_value_list(session, arguments, 2, &list));
  both = call(ops, "aten::cat", list, NULL);
  CHECK(element(both, 5) == 2);
  frazil_value_free(both);
  frazil_value_free(list);
  /* In place. */
  FrazilValue *same = call(ops, "aten::mul_", x, ten);
  CHECK(element(x, 0) == 30);
  frazil_value_free(same);
  ok(frazil_ops_size(ops, x, -1, &item));
  int64_t n;
  FrazilValue *size;
  ok(frazil_ops_item(ops, item, &size));
  ok(frazil_value_as_int(size, &n));
  CHECK(n == 3);
  frazil_value_free(size);
  frazil_value_free(item);
  CHECK(is_error(frazil_ops_call(ops, "aten::none_such", arguments, 2, NULL, NULL, 0, &item), FRAZIL_ERROR_KIND_INPUT, "aten::none_such"));
  CHECK(is_error(frazil_ops_call(ops, "aten::relu", arguments, 2, NULL, NULL, 0, &item), FRAZIL_ERROR_KIND_INPUT, "no overload"));
  CHECK(is_error(frazil_ops_parameter(ops, "weight", &item), FRAZIL_ERROR_KIND_ARGUMENT, "no module is traced"));
  CHECK(is_error(frazil_ops_size(ops, ten, 0, &item), FRAZIL_ERROR_KIND_ARGUMENT, "no tensor"));
  frazil_value_free(ten);
  frazil_value_free(y);
  frazil_value_free(x);
  frazil_ops_free(ops);
}

/* relu(x) * x1, in a tuple with the size of x as a float. */
static FrazilError *scaled(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  ++*(int *)context;
  CHECK(len == 2);
  bool tracing;
  ok(frazil_ops_is_tracing(ops, &tracing));
  CHECK(tracing);
  FrazilValue *positive = call(ops, "aten::relu", inputs[0], NULL);
  ok(frazil_ops_name(ops, positive, "positive"));
  ok(frazil_ops_set_place(ops, "net.c", 12));
  FrazilValue *product = call(ops, "aten::mul", positive, inputs[1]), *size;
  ok(frazil_ops_set_place(ops, NULL, 0));
  ok(frazil_ops_size(ops, inputs[0], 0, &size));
  FrazilValue *shares = call(ops, "aten::div", product, size);
  const FrazilValue *items[] = {product, shares};
  FrazilError *error = frazil_value_tuple(items, 2, result);
  frazil_value_free(positive);
  frazil_value_free(product);
  frazil_value_free(size);
  frazil_value_free(shares);
  return error;
}

/* Goes on by an element. */
static FrazilError *branches(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  (void)context, (void)len;
  FrazilValue *sum = call(ops, "aten::sum", inputs[0], NULL), *number;
  ok(frazil_ops_item(ops, sum, &number));
  double x;
  ok(frazil_value_as_float(number, &x));
  *result = call(ops, x > 0 ? "aten::neg" : "aten::abs", inputs[0], NULL);
  frazil_value_free(number);
  frazil_value_free(sum);
  return NULL;
}

static FrazilError *gives_a_list(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  (void)ops;
  return frazil_value_list(context, inputs, len, result);
}

static FrazilError *gives_nothing(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  (void)context, (void)ops, (void)inputs, (void)len, (void)result;
  return NULL;
}

static FrazilError *gives_a_number(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  (void)context, (void)ops, (void)inputs, (void)len;
  return frazil_value_int(3, result);
}

static FrazilError *fails(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  (void)context, (void)ops, (void)inputs, (void)len, (void)result;
  return frazil_error_new(FRAZIL_ERROR_KIND_RAISED, "no more");
}

static FrazilTensor *tensor(const float *elements, int64_t count) {
  FrazilTensor *made;
  ok(frazil_tensor_new(FRAZIL_DTYPE_FLOAT32, &count, 1, elements, (size_t)count * sizeof *elements, &made));
  return made;
}

static void functions(FrazilSession *session) {
  static const float elements[] = {1, -2, 3};
  FrazilTensor *x = tensor(elements, 3), *scale = tensor(elements + 2, 1), *shorter = tensor(elements, 2);
  const FrazilTensor *inputs[] = {x, scale}, *others[] = {shorter, scale};
  int calls = 0;
  FrazilModel *model;
  char *warnings, *text;
  FrazilTraceOptions *options = frazil_trace_options_new();
  ok(frazil_trace_options_add_name(options, "image"));
  ok(frazil_trace_options_add_name(options, "scale"));
  ok(frazil_trace_options_add_check_inputs(options, others, 2));
  ok(frazil_trace_options_set_tolerance(options, 1e-6));
  ok(frazil_trace(session, scaled, &calls, inputs, 2, options, &warnings, &model));
  CHECK(calls >= 2 && is_text(warnings, ""));
  ok(frazil_model_graph(model, "forward", &text));
  CHECK(strstr(text, "aten::mul(%positive, %scale) # net.c:12:0\n") && strstr(text, "aten::size(%image") && !strstr(text, ".rs:"));
  frazil_string_free(text);

  /* Of another length the size is another. */
  FrazilEngine *engine = interpreter_of(model, NULL);
  FrazilValue *arguments[2], *result, *shares;
  ok(frazil_value_tensor(shorter, &arguments[0]));
  ok(frazil_value_tensor(scale, &arguments[1]));
  ok(frazil_engine_call(engine, "forward", (const FrazilValue *const *)arguments, 2, &result));
  ok(frazil_value_item(result, 1, &shares));
  CHECK(element(shares, 0) == 1.5f && element(shares, 1) == 0);
  frazil_value_free(shares);
  frazil_value_free(result);
  frazil_value_free(arguments[0]);
  frazil_value_free(arguments[1]);
  frazil_engine_free(engine);
  frazil_model_free(model);
  frazil_trace_options_free(options);

  ok(frazil_trace(session, branches, NULL, inputs, 1, NULL, &warnings, &model));
  CHECK(has_text(warnings, "a tensor becomes a number"));
  frazil_model_free(model);
  ok(frazil_trace(session, branches, NULL, inputs, 1, NULL, NULL, &model));
  frazil_model_free(model);

  CHECK(is_error(frazil_trace(session, gives_a_list, session, inputs, 1, NULL, NULL, &model), FRAZIL_ERROR_KIND_UNSUPPORTED, "a list or a dictionary"));
  options = frazil_trace_options_new();
  ok(frazil_trace_options_set_strict(options, false));
  ok(frazil_trace_options_set_check(options, false));
  ok(frazil_trace_options_set_force_outplace(options, true));
  ok(frazil_trace(session, gives_a_list, session, inputs, 1, options, NULL, &model));
  frazil_model_free(model);
  frazil_trace_options_free(options);
  CHECK(is_error(frazil_trace(session, gives_nothing, NULL, inputs, 1, NULL, NULL, &model), FRAZIL_ERROR_KIND_ARGUMENT, "no result"));
  CHECK(is_error(frazil_trace(session, gives_a_number, NULL, inputs, 1, NULL, NULL, &model), FRAZIL_ERROR_KIND_ARGUMENT, "gives tensors"));
  CHECK(is_error(frazil_trace(session, fails, NULL, inputs, 1, NULL, NULL, &model), FRAZIL_ERROR_KIND_RAISED, "no more"));
  CHECK(is_error(frazil_trace(session, fails, NULL, NULL, 0, NULL, NULL, &model), FRAZIL_ERROR_KIND_ARGUMENT, "at least one input"));
  CHECK(is_error(frazil_trace(session, NULL, NULL, inputs, 1, NULL, NULL, &model), FRAZIL_ERROR_KIND_ARGUMENT, "the function is NULL"));
  frazil_tensor_free(shorter);
  frazil_tensor_free(scale);
  frazil_tensor_free(x);
}

/* Calls a function of source, whose branches stay. */
static FrazilError *clips(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  return frazil_ops_call_function(ops, context, "clip", inputs, len, result);
}

static FrazilError *weighs(void *context, const FrazilOps *ops, const FrazilValue *const *inputs, size_t len, FrazilValue **result) {
  (void)len;
  FrazilValue *weight;
  FrazilError *error = frazil_ops_parameter(ops, context, &weight);
  if (error) return error;
  *result = call(ops, "aten::mul", inputs[0], weight);
  frazil_value_free(weight);
  return NULL;
}

static void modules(const FrazilSession *session) {
  static const float elements[] = {-3, 2};
  FrazilTensor *x = tensor(elements, 1), *weight = tensor(elements + 1, 1);
  const FrazilTensor *inputs[] = {x};
  FrazilModel *functions = load_source(session, "clip.py", "def clip(x):\n    if bool(x.sum() > 0):\n        return x * 2\n    return -x\n");
  FrazilModel *model;
  char *text;
  ok(frazil_trace(session, clips, functions, inputs, 1, NULL, NULL, &model));
  ok(frazil_model_graph(model, "forward", &text));
  CHECK(has_text(text, "prim::CallFunction"));
  frazil_model_free(model);
  frazil_model_free(functions);

  FrazilParameters *parameters;
  ok(frazil_parameters_new("Net", &parameters));
  ok(frazil_parameters_add(parameters, "layer.weight", weight, false));
  ok(frazil_parameters_add(parameters, "steps", weight, true));
  ok(frazil_parameters_share(parameters, "head.weight", "layer.weight"));
  CHECK(is_error(frazil_parameters_share(parameters, "tail", "nothing"), FRAZIL_ERROR_KIND_INPUT, "no parameter `nothing`"));
  const FrazilTraceMethod methods[] = {{"forward", weighs, "layer.weight", inputs, 1}, {"head", weighs, "head.weight", inputs, 1}};
  ok(frazil_trace_module(session, parameters, methods, 2, NULL, NULL, &model));
  FrazilValue *state;
  size_t count;
  ok(frazil_model_state_dict(model, &state));
  ok(frazil_value_count(state, &count));
  CHECK(count == 3);
  frazil_value_free(state);
  FrazilEngine *engine = interpreter_of(model, "head");
  FrazilValue *argument, *result;
  ok(frazil_value_tensor(x, &argument));
  const FrazilValue *arguments[] = {argument};
  ok(frazil_engine_call(engine, "head", arguments, 1, &result));
  CHECK(element(result, 0) == -6);
  frazil_value_free(result);
  frazil_value_free(argument);
  frazil_engine_free(engine);
  frazil_model_free(model);
  const FrazilTraceMethod lost[] = {{"forward", weighs, "nowhere", inputs, 1}};
  CHECK(is_error(frazil_trace_module(session, parameters, lost, 1, NULL, NULL, &model), FRAZIL_ERROR_KIND_INPUT, "no parameter `nowhere`"));
  frazil_parameters_free(parameters);
  frazil_tensor_free(weight);
  frazil_tensor_free(x);
}

int main(void) {
  FrazilSession *session;
  ok(frazil_session_new(&session));
  operators(session);
  functions(session);
  modules(session);
  frazil_session_free(session);
  puts("all is as it should be");
  return 0;
}
