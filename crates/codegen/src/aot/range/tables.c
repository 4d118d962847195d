/* The tables of steps for sizes that callers choose. The forms and their integers follow; crates/codegen/src/aot/range/source.rs writes them. */

/* A size that callers choose. */
typedef struct {
  const char *name;
  int64_t low, high;
} size_range;

/* The index of an integer of a form. */
#if MOST_VALUES < 65536
typedef uint16_t value_index;
#else
typedef uint32_t value_index;
#endif

/* A step of a form. `kernel` is an index in `kernels`. */
typedef struct {
  uint32_t kernel, first_buffer;
  value_index tasks, order;
  uint16_t buffer_count;
} form_step;

/* A buffer of a form. Numbers have the index of the first number of the call in place of that of an input or output, and no offset. */
typedef struct {
  uint32_t index;
  value_index offset;
  uint8_t kind;
} form_buffer;

/* Steps for sizes that differ in integers only. */
typedef struct {
  void (*evaluate)(const int64_t *s, size_t point, int64_t *values);
  const form_step *steps;
  const form_buffer *buffers;
  const value_index *numbers, *shapes;
  uint32_t step_count, buffer_count, number_count;
} size_form;

/* The form of the points from `first` to the next run. */
typedef struct {
  uint32_t first, form;
} form_run;

static const frazil_rt_kernel kernels[KERNEL_COUNT + 1];
static const size_range size_ranges[SIZE_COUNT];
static const size_form forms[FORM_COUNT];
static const form_run form_runs[RUN_COUNT];
/* For each dimension of each input, the index of its size, or -1. */
static const int32_t *const input_sizes[INPUT_COUNT + 1];

/* The tables for the sizes of the last run of an instance. */
typedef struct {
  unsigned char are_set;
  int64_t sizes[SIZE_COUNT];
  uint64_t step_count;
  frazil_rt_step steps[MOST_STEPS + 1];
  frazil_rt_buffer buffers[MOST_FORM_BUFFERS + 1];
  int64_t numbers[MOST_NUMBERS + 1];
  int64_t shapes[SHAPE_COUNT + 1];
  frazil_tensor_info inputs[INPUT_COUNT + 1], outputs[OUTPUT_COUNT + 1];
} sized_tables;

static int are_in_range(const int64_t *sizes) {
  for (int32_t i = 0; i < SIZE_COUNT; i++)
    if (sizes[i] < size_ranges[i].low || sizes[i] > size_ranges[i].high) return 0;
  return 1;
}

/* The index of sizes that are in their ranges; the last size changes fastest. */
static size_t point_of(const int64_t *sizes) {
  size_t point = 0;
  for (int32_t i = 0; i < SIZE_COUNT; i++)
    point = point * (size_t)(size_ranges[i].high - size_ranges[i].low + 1) + (size_t)(sizes[i] - size_ranges[i].low);
  return point;
}

static const size_form *form_of(size_t point) {
  size_t low = 0, high = RUN_COUNT;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (form_runs[middle].first <= point) low = middle;
    else high = middle;
  }
  return &forms[form_runs[low].form];
}

static size_t element_bytes(frazil_dtype dtype) {
  switch (dtype) {
  case FRAZIL_INT16: case FRAZIL_FLOAT16: case FRAZIL_BFLOAT16: return 2;
  case FRAZIL_INT32: case FRAZIL_FLOAT32: return 4;
  case FRAZIL_INT64: case FRAZIL_FLOAT64: return 8;
  case FRAZIL_UINT8: case FRAZIL_INT8: case FRAZIL_BOOL: return 1;
  }
  return 1;
}

/* Copies the descriptions `table` with the sizes `shapes`. Returns the end of these sizes. */
static const int64_t *describe(frazil_tensor_info *infos, const frazil_tensor_info *table, int32_t count, const int64_t *shapes) {
  for (int32_t i = 0; i < count; i++) {
    infos[i] = table[i];
    infos[i].shape = shapes;
    infos[i].bytes = element_bytes(table[i].dtype);
    for (int32_t d = 0; d < table[i].rank; d++) infos[i].bytes *= (size_t)*shapes++;
  }
  return shapes;
}

/* Fills the tables for sizes that are in their ranges. Nothing overflows: all sizes were tried when the library was made. */
static void fill_tables(sized_tables *tables, const int64_t *sizes) {
  if (tables->are_set && !memcmp(tables->sizes, sizes, sizeof tables->sizes)) return;
  int64_t values[MOST_VALUES + 1];
  const size_t point = point_of(sizes);
  const size_form *form = form_of(point);
  form->evaluate(sizes, point, values);
  for (uint32_t i = 0; i < form->step_count; i++) {
    const form_step *from = &form->steps[i];
    const uint32_t order = (uint32_t)values[from->order];
    const frazil_rt_step step = { kernels[from->kernel], values[from->tasks], { order & 1, order >> 1 }, tables->buffers + from->first_buffer, from->buffer_count };
    tables->steps[i] = step;
  }
  for (uint32_t i = 0; i < form->buffer_count; i++) {
    const form_buffer *from = &form->buffers[i];
    const int is_numbers = from->kind == FRAZIL_RT_BUFFER_KIND_NUMBERS;
    const frazil_rt_buffer buffer = {
      (frazil_rt_buffer_kind)from->kind, is_numbers ? 0 : from->index, is_numbers ? from->index * sizeof *tables->numbers : (uint64_t)values[from->offset]
    };
    tables->buffers[i] = buffer;
  }
  for (uint32_t i = 0; i < form->number_count; i++) tables->numbers[i] = values[form->numbers[i]];
  for (uint32_t i = 0; i < SHAPE_COUNT; i++) tables->shapes[i] = values[form->shapes[i]];
  describe(tables->outputs, output_table, OUTPUT_COUNT, describe(tables->inputs, input_table, INPUT_COUNT, tables->shapes));
  tables->step_count = form->step_count;
  memcpy(tables->sizes, sizes, sizeof tables->sizes);
  tables->are_set = 1;
}

/* Writes the sizes of an output to `shape`. */
static void output_sizes(const int64_t *sizes, int32_t index, int64_t *shape) {
  int64_t values[MOST_VALUES + 1];
  const size_t point = point_of(sizes);
  const size_form *form = form_of(point);
  form->evaluate(sizes, point, values);
  const value_index *from = form->shapes;
  for (int32_t i = 0; i < INPUT_COUNT; i++) from += input_table[i].rank;
  for (int32_t i = 0; i < index; i++) from += output_table[i].rank;
  for (int32_t d = 0; d < output_table[index].rank; d++) shape[d] = values[from[d]];
}

/* Reads the sizes from the inputs: each from the first dimension that has it. Inputs of another rank are refused afterwards. */
static void read_sizes(int64_t *sizes, const frazil_tensor *inputs, int32_t count) {
  for (int32_t i = 0; i < SIZE_COUNT; i++) sizes[i] = size_ranges[i].low;
  if (!inputs || count != INPUT_COUNT) return;
  for (int32_t i = INPUT_COUNT - 1; i >= 0; i--)
    for (int32_t d = input_table[i].rank - 1; d >= 0; d--)
      if (inputs[i].rank == input_table[i].rank && inputs[i].shape && input_sizes[i][d] >= 0)
        sizes[input_sizes[i][d]] = inputs[i].shape[d];
}

