/* Values of every kind: made, asked, handed to methods and got back; tests/program.rs compiles and runs it. */
#include "check.h"

static const char source[] =
    "from enum import Enum\n"
    "class Color(Enum):\n"
    "    RED = 1\n"
    "    BLUE = 2\n"
    "class Point:\n"
    "    def __init__(self, x: float, name: str):\n"
    "        self.x = x\n"
    "        self.name = name\n"
    "    def twice(self) -> float:\n"
    "        return self.x * 2\n"
    "class Pair(NamedTuple):\n"
    "    first: int\n"
    "    second: Tensor\n"
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "    def forward(self, x: Dict[str, int]) -> Dict[str, int]:\n"
    "        x['last'] = 7\n"
    "        return x\n"
    "    @torch.jit.export\n"
    "    def complexes(self, z: complex, items: List[Optional[int]], where: Optional[str] = None) -> Tuple[complex, int, torch.device]:\n"
    "        n = 0\n"
    "        for item in items:\n"
    "            if item is not None:\n"
    "                n += item\n"
    "        return z * z, n, torch.device('cpu' if where is None else where)\n"
    "    @torch.jit.export\n"
    "    def on(self, device: torch.device) -> str:\n"
    "        return str(device)\n"
    "    @torch.jit.export\n"
    "    def points(self, p: Point) -> Point:\n"
    "        return Point(p.twice(), p.name + '!')\n"
    "    @torch.jit.export\n"
    "    def colors(self, c: Color) -> Color:\n"
    "        if c == Color.RED:\n"
    "            return Color.BLUE\n"
    "        return Color.RED\n"
    "    @torch.jit.export\n"
    "    def pairs(self, p: Pair) -> Pair:\n"
    "        return Pair(p.first + 1, p.second)\n";

static FrazilValue *call1(FrazilEngine *engine, const char *method, const FrazilValue *argument) {
  FrazilValue *result;
  ok(frazil_engine_call(engine, method, &argument, 1, &result));
  return result;
}

static void dictionaries(const FrazilSession *session, FrazilEngine *engine) {
  FrazilValue *keys[2], *items[2], *dict, *result, *key, *item;
  ok(frazil_value_str("b", &keys[0]));
  ok(frazil_value_str("a", &keys[1]));
  ok(frazil_value_int(1, &items[0]));
  ok(frazil_value_int(2, &items[1]));
  ok(frazil_value_dict(session, (const FrazilValue *const *)keys, (const FrazilValue *const *)items, 2, &dict));
  CHECK(frazil_value_kind(dict) == FRAZIL_VALUE_KIND_DICT);
  char *text;
  ok(frazil_value_type(session, dict, &text));
  CHECK(is_text(text, "Dict[str, int]"));
  ok(frazil_value_repr(session, dict, &text));
  CHECK(is_text(text, "{'b': 1, 'a': 2}"));

  /* The method changes the very dictionary, as in Python. */
  result = call1(engine, "forward", dict);
  size_t count;
  ok(frazil_value_count(dict, &count));
  CHECK(count == 3);
  static const char *const names[] = {"b", "a", "last"};
  static const int64_t numbers[] = {1, 2, 7};
  for (size_t i = 0; i < 3; i++) {
    ok(frazil_value_entry(result, i, &key, &item));
    int64_t n;
    ok(frazil_value_as_str(key, &text));
    CHECK(is_text(text, names[i]));
    ok(frazil_value_as_int(item, &n));
    CHECK(n == numbers[i]);
    frazil_value_free(key);
    frazil_value_free(item);
  }
  ok(frazil_value_entry(result, 0, NULL, &item));
  frazil_value_free(item);
  CHECK(is_error(frazil_value_entry(result, 3, &key, &item), FRAZIL_ERROR_KIND_ARGUMENT, "there are 3"));
  bool has;
  ok(frazil_value_has(result, keys[1], &has));
  CHECK(has);
  ok(frazil_value_has(result, items[1], &has));
  CHECK(!has);
  ok(frazil_value_get(result, keys[1], &item));
  frazil_value_free(item);
  CHECK(is_error(frazil_value_get(result, items[1], &item), FRAZIL_ERROR_KIND_ARGUMENT, "no key"));
  CHECK(is_error(frazil_value_get(items[1], keys[1], &item), FRAZIL_ERROR_KIND_ARGUMENT, "no dictionary"));
  frazil_value_free(result);
  frazil_value_free(dict);

  /* Keys and values are of one type, and containers are no keys. */
  const FrazilValue *mixed[] = {keys[0], items[0]};
  CHECK(is_error(frazil_value_dict(session, mixed, mixed, 2, &dict), FRAZIL_ERROR_KIND_ARGUMENT, "keys of a dictionary are of one type"));
  CHECK(is_error(frazil_value_dict(session, (const FrazilValue *const *)keys, mixed, 2, &dict), FRAZIL_ERROR_KIND_ARGUMENT,
                 "values of a dictionary are of one type"));
  FrazilValue *empty;
  ok(frazil_value_list(session, NULL, 0, &empty));
  const FrazilValue *lists[] = {empty};
  CHECK(is_error(frazil_value_dict(session, lists, mixed, 1, &dict), FRAZIL_ERROR_KIND_ARGUMENT, "a key is a string"));
  ok(frazil_value_dict(session, NULL, NULL, 0, &dict));
  ok(frazil_value_type(session, dict, &text));
  CHECK(is_text(text, "Dict[str, Tensor]"));
  frazil_value_free(dict);
  frazil_value_free(empty);
  for (int i = 0; i < 2; i++) {
    frazil_value_free(keys[i]);
    frazil_value_free(items[i]);
  }
}

static void numbers_devices_and_optionals(const FrazilSession *session, FrazilEngine *engine) {
  FrazilValue *z, *none, *two, *list, *result, *item, *device;
  ok(frazil_value_complex(1, 2, &z));
  CHECK(frazil_value_kind(z) == FRAZIL_VALUE_KIND_COMPLEX);
  ok(frazil_value_none(&none));
  ok(frazil_value_int(2, &two));
  const FrazilValue *items[] = {two, none, two};
  ok(frazil_value_list(session, items, 3, &list));
  char *text;
  ok(frazil_value_type(session, list, &text));
  CHECK(is_text(text, "List[Optional[int]]"));
  const FrazilValue *arguments[] = {z, list};
  ok(frazil_engine_call(engine, "complexes", arguments, 2, &result));
  ok(frazil_value_item(result, 0, &item));
  double re, im;
  ok(frazil_value_as_complex(item, &re, &im));
  CHECK(re == -3 && im == 4);
  CHECK(is_error(frazil_value_as_complex(two, &re, &im), FRAZIL_ERROR_KIND_ARGUMENT, "no complex number"));
  frazil_value_free(item);
  ok(frazil_value_item(result, 1, &item));
  int64_t n;
  ok(frazil_value_as_int(item, &n));
  CHECK(n == 4);
  frazil_value_free(item);
  ok(frazil_value_item(result, 2, &item));
  CHECK(frazil_value_kind(item) == FRAZIL_VALUE_KIND_DEVICE);
  ok(frazil_value_as_device(item, &text));
  CHECK(is_text(text, "cpu"));
  CHECK(is_error(frazil_value_as_device(two, &text), FRAZIL_ERROR_KIND_ARGUMENT, "no device"));
  frazil_value_free(item);
  frazil_value_free(result);

  /* A default, and the argument by name. */
  FrazilValue *where;
  ok(frazil_value_str("cuda:1", &where));
  const char *names[] = {"where"};
  const FrazilValue *named[] = {where};
  ok(frazil_engine_call_named(engine, "complexes", arguments, 2, names, named, 1, &result));
  ok(frazil_value_repr(session, result, &text));
  CHECK(is_text(text, "((-3+4j), 4, device(type='cuda', index=1))"));
  frazil_value_free(result);
  names[0] = "nowhere";
  CHECK(is_error(frazil_engine_call_named(engine, "complexes", arguments, 2, names, named, 1, &result), FRAZIL_ERROR_KIND_RAISED,
                 "Unknown keyword argument 'nowhere'"));

  ok(frazil_value_device("cpu", &device));
  result = call1(engine, "on", device);
  ok(frazil_value_as_str(result, &text));
  CHECK(is_text(text, "cpu"));
  frazil_value_free(result);
  frazil_value_free(device);
  CHECK(is_error(frazil_value_device("toaster", &device), FRAZIL_ERROR_KIND_ARGUMENT, "`toaster` is no device"));
  /* Strings may have zeros in them. */
  FrazilBytes *bytes;
  FrazilValue *zeros;
  ok(frazil_value_str_of((const uint8_t *)"a\0b", 3, &zeros));
  ok(frazil_value_as_str_bytes(zeros, &bytes));
  CHECK(frazil_bytes_len(bytes) == 3 && memcmp(frazil_bytes_data(bytes), "a\0b", 3) == 0);
  frazil_bytes_free(bytes);
  CHECK(is_error(frazil_value_as_str_bytes(two, &bytes), FRAZIL_ERROR_KIND_ARGUMENT, "no string"));
  CHECK(is_error(frazil_value_str_of((const uint8_t *)"\xff", 1, &item), FRAZIL_ERROR_KIND_ARGUMENT, "not UTF-8"));
  frazil_value_free(zeros);

  /* Types as annotations name them. */
  FrazilValue *empty, *converted;
  ok(frazil_value_list(session, NULL, 0, &empty));
  ok(frazil_value_convert(session, empty, "List[Optional[Tuple[int, str]]]", &converted));
  ok(frazil_value_type(session, converted, &text));
  CHECK(is_text(text, "List[Optional[Tuple[int, str]]]"));
  frazil_value_free(converted);
  ok(frazil_value_convert(session, two, "float", &converted));
  CHECK(frazil_value_kind(converted) == FRAZIL_VALUE_KIND_FLOAT);
  frazil_value_free(converted);
  CHECK(is_error(frazil_value_convert(session, two, "List[int]", &converted), FRAZIL_ERROR_KIND_INPUT, "of type int is no List[int]"));
  CHECK(is_error(frazil_value_convert(session, two, "Lisst[int]", &converted), FRAZIL_ERROR_KIND_INPUT, "Lisst"));
  CHECK(is_error(frazil_value_convert(session, two, "int):\n  pass\ndef g(x", &converted), FRAZIL_ERROR_KIND_ARGUMENT, "is no type"));
  frazil_value_free(empty);
  bool truth;
  FrazilValue *yes;
  ok(frazil_value_bool(true, &yes));
  ok(frazil_value_as_bool(yes, &truth));
  CHECK(truth);
  frazil_value_free(yes);
  frazil_value_free(where);
  frazil_value_free(list);
  frazil_value_free(two);
  frazil_value_free(none);
  frazil_value_free(z);
}

static void objects(const FrazilSession *session, const FrazilModel *model, FrazilEngine *engine) {
  const char *names[] = {"name", "x"};
  FrazilValue *x, *name, *point, *result, *attribute;
  ok(frazil_value_float(1.5, &x));
  ok(frazil_value_str("p", &name));
  const FrazilValue *values[] = {name, x};
  ok(frazil_value_object(model, "Point", names, values, 2, &point));
  CHECK(frazil_value_kind(point) == FRAZIL_VALUE_KIND_OBJECT);
  result = call1(engine, "points", point);
  char *text;
  ok(frazil_value_class(session, result, &text));
  CHECK(is_text(text, "__torch__.Point"));
  size_t count;
  ok(frazil_value_attribute_count(model, result, &count));
  CHECK(count == 2);
  ok(frazil_value_attribute_name(model, result, 0, &text));
  CHECK(is_text(text, "x"));
  CHECK(is_error(frazil_value_attribute_name(model, result, 2, &text), FRAZIL_ERROR_KIND_ARGUMENT, "there are 2"));
  ok(frazil_value_attribute(model, result, "x", &attribute));
  double number;
  ok(frazil_value_as_float(attribute, &number));
  CHECK(number == 3.0);
  frazil_value_free(attribute);
  ok(frazil_value_attribute(model, result, "name", &attribute));
  ok(frazil_value_as_str(attribute, &text));
  CHECK(is_text(text, "p!"));
  frazil_value_free(attribute);
  CHECK(is_error(frazil_value_attribute(model, result, "y", &attribute), FRAZIL_ERROR_KIND_INPUT, "no attribute `y`"));
  CHECK(is_error(frazil_value_attribute(model, x, "y", &attribute), FRAZIL_ERROR_KIND_ARGUMENT, "no object"));
  CHECK(is_error(frazil_value_object(model, "Point", names, values, 1, &attribute), FRAZIL_ERROR_KIND_INPUT, "no value for attribute `x`"));
  CHECK(is_error(frazil_value_object(model, "Line", names, values, 2, &attribute), FRAZIL_ERROR_KIND_INPUT, "no class `Line`"));
  values[0] = x;
  CHECK(is_error(frazil_value_object(model, "__torch__.Point", names, values, 2, &attribute), FRAZIL_ERROR_KIND_INPUT,
                 "attribute `name` is of type str"));
  names[1] = "y";
  CHECK(is_error(frazil_value_object(model, "Point", names, values, 2, &attribute), FRAZIL_ERROR_KIND_INPUT, "no attribute `y`"));
  frazil_value_free(result);
  frazil_value_free(point);
  frazil_value_free(name);
  frazil_value_free(x);
}

static void enumerations_and_named_tuples(const FrazilSession *session, const FrazilModel *model, FrazilEngine *engine) {
  FrazilValue *red, *blue, *value;
  ok(frazil_value_enum(model, "Color", "RED", &red));
  CHECK(frazil_value_kind(red) == FRAZIL_VALUE_KIND_ENUM);
  blue = call1(engine, "colors", red);
  char *text;
  ok(frazil_value_enum_name(blue, &text));
  CHECK(is_text(text, "BLUE"));
  ok(frazil_value_class(session, blue, &text));
  CHECK(has_text(text, "Color"));
  ok(frazil_value_enum_value(blue, &value));
  int64_t n;
  ok(frazil_value_as_int(value, &n));
  CHECK(n == 2);
  CHECK(is_error(frazil_value_enum(model, "Color", "GREEN", &value), FRAZIL_ERROR_KIND_INPUT, "no member `GREEN`"));
  CHECK(is_error(frazil_value_enum_name(value, &text), FRAZIL_ERROR_KIND_ARGUMENT, "no member"));
  CHECK(is_error(frazil_value_class(session, value, &text), FRAZIL_ERROR_KIND_ARGUMENT, "no class"));

  /* A tuple becomes the named one that the method takes. */
  const float elements[] = {4};
  FrazilValue *x = floats(elements, 1), *tuple, *pair, *first;
  const FrazilValue *items[] = {value, x};
  ok(frazil_value_tuple(items, 2, &tuple));
  pair = call1(engine, "pairs", tuple);
  CHECK(frazil_value_kind(pair) == FRAZIL_VALUE_KIND_TUPLE);
  ok(frazil_value_class(session, pair, &text));
  CHECK(has_text(text, "Pair"));
  ok(frazil_value_field_name(session, pair, 1, &text));
  CHECK(is_text(text, "second"));
  CHECK(is_error(frazil_value_field_name(session, pair, 2, &text), FRAZIL_ERROR_KIND_ARGUMENT, "there are 2"));
  CHECK(is_error(frazil_value_field_name(session, tuple, 0, &text), FRAZIL_ERROR_KIND_ARGUMENT, "no named tuple"));
  ok(frazil_value_item(pair, 0, &first));
  ok(frazil_value_as_int(first, &n));
  CHECK(n == 3);
  frazil_value_free(first);
  frazil_value_free(pair);
  frazil_value_free(tuple);
  frazil_value_free(x);
  frazil_value_free(value);
  frazil_value_free(blue);
  frazil_value_free(red);
}

/* Types of elements of every kind, with their sizes, through a copy and back. */
static void types_of_elements(void) {
  static const struct { int32_t dtype; size_t size; } types[] = {
      {FRAZIL_DTYPE_UINT8, 1},   {FRAZIL_DTYPE_INT8, 1},     {FRAZIL_DTYPE_INT16, 2},     {FRAZIL_DTYPE_INT32, 4},
      {FRAZIL_DTYPE_INT64, 8},   {FRAZIL_DTYPE_FLOAT16, 2},  {FRAZIL_DTYPE_FLOAT32, 4},   {FRAZIL_DTYPE_FLOAT64, 8},
      {FRAZIL_DTYPE_COMPLEX32, 4}, {FRAZIL_DTYPE_COMPLEX64, 8}, {FRAZIL_DTYPE_COMPLEX128, 16}, {FRAZIL_DTYPE_BOOL, 1},
      {FRAZIL_DTYPE_BFLOAT16, 2}};
  const int64_t sizes[] = {2, 1};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    uint8_t bytes[32] = {0, 1, 0, 1}, back[32];
    FrazilTensor *tensor;
    size_t len = 2 * types[i].size;
    ok(frazil_tensor_new(types[i].dtype, sizes, 2, bytes, len, &tensor));
    CHECK(frazil_tensor_dtype(tensor) == types[i].dtype);
    ok(frazil_tensor_read(tensor, back, len));
    CHECK(memcmp(bytes, back, len) == 0);
    frazil_tensor_free(tensor);
  }
  /* 1.0 and -2.0 in halves, and what they are in other types. */
  const uint16_t halves[] = {0x3c00, 0xc000}, brains[] = {0x3f80, 0xc000};
  float got[2];
  const struct { int32_t dtype; const uint16_t *elements; } kinds[] = {{FRAZIL_DTYPE_FLOAT16, halves}, {FRAZIL_DTYPE_BFLOAT16, brains}};
  for (int i = 0; i < 2; i++) {
    FrazilTensor *tensor, *converted;
    ok(frazil_tensor_new(kinds[i].dtype, sizes, 2, kinds[i].elements, 4, &tensor));
    ok(frazil_tensor_to(tensor, FRAZIL_DTYPE_FLOAT32, &converted));
    ok(frazil_tensor_read(converted, got, sizeof got));
    CHECK(got[0] == 1 && got[1] == -2);
    frazil_tensor_free(converted);
    frazil_tensor_free(tensor);
  }
}

static void count_release(void *context) { ++*(int *)context; }

static void strides(void) {
  static const float matrix[] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[] = {3, 2}, transposed[] = {1, 3}, dense[] = {2, 1}, huge[] = {INT64_MAX, 1}, negative[] = {-1, 1};
  float got[6];
  int released = 0;
  for (int shared = 0; shared < 2; shared++) {
    FrazilTensor *tensor;
    if (shared)
      ok(frazil_tensor_share_strided(FRAZIL_DTYPE_FLOAT32, sizes, transposed, 2, matrix, sizeof matrix, count_release, &released, &tensor));
    else
      ok(frazil_tensor_new_strided(FRAZIL_DTYPE_FLOAT32, sizes, transposed, 2, matrix, sizeof matrix, &tensor));
    CHECK(frazil_tensor_stride(tensor, 0) == 1 && frazil_tensor_stride(tensor, 1) == 3 && frazil_tensor_stride(tensor, 2) == -1);
    CHECK(!frazil_tensor_is_contiguous(tensor));
    ok(frazil_tensor_read(tensor, got, sizeof got));
    for (int i = 0; i < 6; i++) CHECK(got[i] == (float)(i / 2 + i % 2 * 3 + 1));
    frazil_tensor_free(tensor);
    CHECK(released == shared);
    const int64_t *const wrong[] = {huge, negative};
    for (int i = 0; i < 2; i++)
      CHECK(is_error(frazil_tensor_new_strided(FRAZIL_DTYPE_FLOAT32, sizes, wrong[i], 2, matrix, sizeof matrix, &tensor),
                     FRAZIL_ERROR_KIND_ARGUMENT, "negative or too large"));
    CHECK(is_error(frazil_tensor_share_strided(FRAZIL_DTYPE_FLOAT32, sizes, dense, 2, matrix, 20, count_release, &released, &tensor),
                   FRAZIL_ERROR_KIND_ARGUMENT, "reaches 24 bytes was given 20"));
    CHECK(released == shared);
  }
  FrazilTensor *tensor;
  ok(frazil_tensor_new(FRAZIL_DTYPE_FLOAT32, sizes, 2, matrix, sizeof matrix, &tensor));
  CHECK(frazil_tensor_is_contiguous(tensor) && frazil_tensor_stride(tensor, 0) == 2);
  frazil_tensor_free(tensor);
  /* Without elements nothing is reached. */
  const int64_t none[] = {0, 2};
  ok(frazil_tensor_new_strided(FRAZIL_DTYPE_FLOAT32, none, dense, 2, NULL, 0, &tensor));
  CHECK(frazil_tensor_rank(tensor) == 2 && frazil_tensor_size(tensor, 0) == 0);
  frazil_tensor_free(tensor);
  CHECK(is_error(frazil_tensor_share(FRAZIL_DTYPE_FLOAT32, none + 1, 1, (const char *)matrix + 1, 8, NULL, NULL, &tensor),
                 FRAZIL_ERROR_KIND_ARGUMENT, "not aligned"));
}

int main(void) {
  FrazilSession *session;
  ok(frazil_session_new(&session));
  FrazilModel *model = load_source(session, "values.py", source);
  FrazilOptions *options = frazil_options_new();
  ok(frazil_options_set_interpret(options, true));
  static const char *const methods[] = {"forward", "complexes", "on", "points", "colors", "pairs"};
  for (int i = 0; i < 6; i++) ok(frazil_options_add_method(options, methods[i]));
  FrazilEngine *engine;
  ok(frazil_engine_new(model, options, &engine));
  dictionaries(session, engine);
  numbers_devices_and_optionals(session, engine);
  objects(session, model, engine);
  enumerations_and_named_tuples(session, model, engine);
  types_of_elements();
  strides();
  frazil_engine_free(engine);
  frazil_options_free(options);
  frazil_model_free(model);
  frazil_session_free(session);
  puts("all is as it should be");
  return 0;
}
