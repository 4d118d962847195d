/* The interface of a compiled library, which the tables before it describe. MODEL is replaced by the name of the library, UPPER by the same in capital letters.
   SIZE_COUNT is the number of sizes that callers choose; 0 for libraries of one shape. */

/* Protects the list of instances, and what they share. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static MODEL_instance *instances;

#if PREPARED_BYTES
/* Sources lie in the order of the steps that read them, each as the first buffer. */
static void run_preparation(const frazil_rt_memory *m, const void *pool, frazil_parallel_for parallel_for, void *user) {
  size_t released = 0;
  for (uint64_t i = 0; i < prepare_step_count; i++) {
    frazil_rt_run(&prepare_steps[i], 1, m, pool, parallel_for, user);
    const size_t end = i + 1 < prepare_step_count ? prepare_steps[i + 1].buffers[0].offset : SOURCE_BYTES;
    const size_t pages = end / SOURCE_PAGE * SOURCE_PAGE;
    if (pages > released) {
      madvise((char *)frazil_sources + released, pages - released, MADV_DONTNEED);
      released = pages;
    }
  }
}

/* Shared by all instances, while there are any. */
static void *prepared;
static size_t prepared_users;

static int acquire_prepared(const void *pool, frazil_parallel_for parallel_for, void *user) {
  pthread_mutex_lock(&library_lock);
  if (!prepared) {
    const size_t large = (size_t)2 << 20;
    if (posix_memalign(&prepared, PREPARED_BYTES < large ? 64 : large, PREPARED_BYTES)) prepared = 0;
    if (prepared) {
      uint8_t *addresses[MOST_BUFFERS];
      const frazil_rt_memory m = { 0, 0, 0, frazil_sources, prepared, addresses, 0 };
      if (PREPARED_BYTES >= large) madvise(prepared, PREPARED_BYTES / large * large, MADV_HUGEPAGE);
      run_preparation(&m, pool, parallel_for, user);
    }
  }
  const int is_there = prepared != 0;
  prepared_users += is_there;
  pthread_mutex_unlock(&library_lock);
  return is_there;
}

static void release_prepared(void) {
  pthread_mutex_lock(&library_lock);
  if (!--prepared_users) {
    free(prepared);
    prepared = 0;
  }
  pthread_mutex_unlock(&library_lock);
}
#else
static void *const prepared = 0;
static int acquire_prepared(const void *pool, frazil_parallel_for parallel_for, void *user) {
  (void)pool, (void)parallel_for, (void)user;
  return 1;
}
static void release_prepared(void) {}
#endif

struct MODEL_instance {
  void *workspace;
  void *owned_workspace;
  void *pool;
  frazil_parallel_for parallel_for;
  void *user;
  uint64_t runs;
  unsigned char busy;
  /* The thread of the call that is under way. */
  pthread_t caller;
  MODEL_instance *previous, *next;
  char error[256];
  uint8_t *addresses[MOST_BUFFERS];
#if SIZE_COUNT
  sized_tables sized;
#endif
};

static void lock_library(void) { pthread_mutex_lock(&library_lock); }
static void unlock_library(void) { pthread_mutex_unlock(&library_lock); }

/* Calls of other threads of the parent never end in a forked child. Nothing of an unfinished run is used by the next. */
static void release_in_child(void) {
  for (MODEL_instance *i = instances; i; i = i->next)
    if (i->busy && !pthread_equal(i->caller, pthread_self())) i->busy = 0;
  unlock_library();
}

__attribute__((constructor)) static void prepare_forks(void) {
  pthread_atfork(lock_library, unlock_library, release_in_child);
}

/* Threads must not run code of a library that is unloaded. Instances that are running a call when the program ends keep theirs. */
__attribute__((destructor)) static void stop_threads(void) {
  if (pthread_mutex_trylock(&library_lock)) return;
  for (MODEL_instance *i = instances; i; i = i->next) {
    if (__atomic_exchange_n(&i->busy, 1, __ATOMIC_ACQUIRE)) continue;
    frazil_rt_pool_drop(i->pool);
    i->pool = 0;
    __atomic_store_n(&i->busy, 0, __ATOMIC_RELEASE);
  }
  unlock_library();
}

int32_t MODEL_input_count(void) { return INPUT_COUNT; }
int32_t MODEL_output_count(void) { return OUTPUT_COUNT; }

const frazil_tensor_info *MODEL_input_info(int32_t index) {
  return index >= 0 && index < INPUT_COUNT ? &input_table[index] : 0;
}

const frazil_tensor_info *MODEL_output_info(int32_t index) {
  return index >= 0 && index < OUTPUT_COUNT ? &output_table[index] : 0;
}

static int32_t index_of(const frazil_tensor_info *table, int32_t count, const char *name) {
  for (int32_t i = 0; name && i < count; i++)
    if (!strcmp(table[i].name, name)) return i;
  return -1;
}

int32_t MODEL_input_index(const char *input) { return index_of(input_table, INPUT_COUNT, input); }
int32_t MODEL_output_index(const char *output) { return index_of(output_table, OUTPUT_COUNT, output); }

uint32_t MODEL_abi_version(void) { return FRAZIL_ABI_VERSION; }

uint32_t MODEL_header(void) { return UPPER_HEADER; }

size_t MODEL_workspace_bytes(void) { return WORKSPACE_BYTES; }

const char *MODEL_status_message(frazil_status status) {
  switch (status) {
  case FRAZIL_OK: return "no error";
  case FRAZIL_INVALID_ARGUMENT: return "the number of threads is negative";
  case FRAZIL_OUT_OF_MEMORY: return "out of memory or threads";
  case FRAZIL_INDEX_OUT_OF_RANGE: return "an element of an input is an index that names nothing";
  case FRAZIL_BUSY: return "the instance is in use by another thread: it runs one call at a time";
  case FRAZIL_NULL_POINTER: return "a pointer is NULL";
  case FRAZIL_WRONG_VERSION: return "the options are of another version of the interface: compile the program with the header that came with the library";
  case FRAZIL_UNALIGNED: return "the workspace is not aligned to 64 bytes";
  case FRAZIL_WRONG_COUNT: return "there are more or fewer inputs or outputs than the function has";
  case FRAZIL_WRONG_DTYPE: return "a tensor has another type of elements than the function was compiled for";
  case FRAZIL_WRONG_RANK: return "a tensor has another number of dimensions than the function was compiled for";
  case FRAZIL_WRONG_SIZE: return "a tensor has another size than the function was compiled for";
  case FRAZIL_OVERLAP: return "an output overlaps an input or another output";
  }
  return "unknown status";
}

frazil_status MODEL_create(const frazil_options *options, MODEL_instance **instance) {
  static const frazil_options defaults;
  if (!instance) return FRAZIL_NULL_POINTER;
  *instance = 0;
  if (options) {
    if (options->size != sizeof *options) return FRAZIL_WRONG_VERSION;
    if (options->version && options->version != FRAZIL_ABI_VERSION) return FRAZIL_WRONG_VERSION;
    if (options->threads < 0) return FRAZIL_INVALID_ARGUMENT;
    if ((uintptr_t)options->workspace % 64) return FRAZIL_UNALIGNED;
  }
  const frazil_options *o = options ? options : &defaults;
  MODEL_instance *self = calloc(1, sizeof *self);
  if (!self) return FRAZIL_OUT_OF_MEMORY;
  self->workspace = o->workspace;
  if (!self->workspace) {
    if (posix_memalign(&self->owned_workspace, 64, WORKSPACE_BYTES ? WORKSPACE_BYTES : 64)) {
      free(self);
      return FRAZIL_OUT_OF_MEMORY;
    }
    self->workspace = self->owned_workspace;
  }
  self->parallel_for = o->parallel_for;
  self->user = o->user;
  if (!o->parallel_for && o->threads > 1) {
    self->pool = frazil_rt_pool_new((uint64_t)o->threads);
    if (!self->pool) {
      free(self->owned_workspace);
      free(self);
      return FRAZIL_OUT_OF_MEMORY;
    }
  }
  if (!acquire_prepared(self->pool, self->parallel_for, self->user)) {
    frazil_rt_pool_drop(self->pool);
    free(self->owned_workspace);
    free(self);
    return FRAZIL_OUT_OF_MEMORY;
  }
  lock_library();
  self->next = instances;
  if (instances) instances->previous = self;
  instances = self;
  unlock_library();
  *instance = self;
  return FRAZIL_OK;
}

/* Notes what a run is refused for. */
__attribute__((format(printf, 3, 4)))
static frazil_status refuse(MODEL_instance *self, frazil_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(self->error, sizeof self->error, format, arguments);
  va_end(arguments);
  return status;
}

/* Runs of one instance share its workspace: one at a time. */
static int begin(MODEL_instance *self) {
  if (__atomic_exchange_n(&self->busy, 1, __ATOMIC_ACQUIRE)) return 0;
  self->caller = pthread_self();
  self->error[0] = 0;
  return 1;
}

static frazil_status end(MODEL_instance *self, frazil_status status) {
  __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
  return status;
}

#if SIZE_COUNT
/* Sets the tables of the instance to those for these sizes, unless they are already. */
static frazil_status set_sizes(MODEL_instance *self, const int64_t *sizes) {
  if (!sizes) return refuse(self, FRAZIL_NULL_POINTER, "the array of sizes is NULL");
  for (int32_t i = 0; i < SIZE_COUNT; i++)
    if (sizes[i] < size_ranges[i].low || sizes[i] > size_ranges[i].high)
      return refuse(self, FRAZIL_WRONG_SIZE, "the size %s is %lld: %lld to %lld are supported", size_ranges[i].name, (long long)sizes[i], (long long)size_ranges[i].low, (long long)size_ranges[i].high);
  fill_tables(&self->sized, sizes);
  return FRAZIL_OK;
}

frazil_status MODEL_output_sizes(const int64_t *sizes, int32_t index, int64_t *shape) {
  if (!sizes || !shape) return FRAZIL_NULL_POINTER;
  if (index < 0 || index >= OUTPUT_COUNT) return FRAZIL_WRONG_COUNT;
  if (!are_in_range(sizes)) return FRAZIL_WRONG_SIZE;
  output_sizes(sizes, index, shape);
  return FRAZIL_OK;
}

#define INPUTS(self) (self)->sized.inputs
#define OUTPUTS(self) (self)->sized.outputs
#define STEPS(self) (self)->sized.steps
#define STEP_COUNT(self) (self)->sized.step_count
#define NUMBERS(self) (self)->sized.numbers
#else
#define INPUTS(self) input_table
#define OUTPUTS(self) output_table
#define STEPS(self) steps
#define STEP_COUNT(self) step_count
#define NUMBERS(self) 0
#endif

static frazil_status check_addresses(MODEL_instance *self, const char *kind, const void *const *given,
                                     const frazil_tensor_info *table, int32_t count) {
  if (count > 0 && !given) return refuse(self, FRAZIL_NULL_POINTER, "the array of %ss is NULL", kind);
  for (int32_t i = 0; i < count; i++)
    if (!given[i] && table[i].bytes) return refuse(self, FRAZIL_NULL_POINTER, "%s %d (%.64s) is NULL", kind, (int)i, table[i].name);
  return FRAZIL_OK;
}

static frazil_status run(MODEL_instance *self, const void *const *inputs, void *const *outputs) {
  unsigned char checks[CHECK_COUNT + 1] = { 0 };
  void *all[OUTPUT_COUNT + CHECK_COUNT + 1];
  for (int32_t i = 0; i < OUTPUT_COUNT; i++) all[i] = outputs[i];
  for (int32_t i = 0; i < CHECK_COUNT; i++) all[OUTPUT_COUNT + i] = &checks[i];
  const frazil_rt_memory m = { inputs, all, self->workspace, frazil_constants, prepared, self->addresses, self->runs++, NUMBERS(self) };
  frazil_rt_run(STEPS(self), STEP_COUNT(self), &m, self->pool, self->parallel_for, self->user);
  for (int32_t i = 0; i < CHECK_COUNT; i++)
    if (checks[i]) return FRAZIL_INDEX_OUT_OF_RANGE;
  return FRAZIL_OK;
}

#if SIZE_COUNT
frazil_status MODEL_run(MODEL_instance *self, const int64_t *sizes, const void *const *inputs, void *const *outputs) {
#else
frazil_status MODEL_run(MODEL_instance *self, const void *const *inputs, void *const *outputs) {
#endif
  if (!self) return FRAZIL_NULL_POINTER;
  if (!begin(self)) return FRAZIL_BUSY;
  frazil_status status = FRAZIL_OK;
#if SIZE_COUNT
  status = set_sizes(self, sizes);
#endif
  if (!status) status = check_addresses(self, "input", inputs, INPUTS(self), INPUT_COUNT);
  if (!status) status = check_addresses(self, "output", (const void *const *)outputs, OUTPUTS(self), OUTPUT_COUNT);
  return end(self, status ? status : run(self, inputs, outputs));
}

static const char *dtype_name(frazil_dtype dtype) {
  switch (dtype) {
  case FRAZIL_UINT8: return "uint8";
  case FRAZIL_INT8: return "int8";
  case FRAZIL_INT16: return "int16";
  case FRAZIL_INT32: return "int32";
  case FRAZIL_INT64: return "int64";
  case FRAZIL_FLOAT16: return "float16";
  case FRAZIL_FLOAT32: return "float32";
  case FRAZIL_FLOAT64: return "float64";
  case FRAZIL_BOOL: return "bool";
  case FRAZIL_BFLOAT16: return "bfloat16";
  }
  return "an unknown type";
}

/* Whether a tensor is what the table says; writes its address to `address`. */
static frazil_status check_tensor(MODEL_instance *self, const char *kind, int32_t i, const frazil_tensor_info *info,
                                  const frazil_tensor *given, void **address) {
  const char *name = info->name;
  if (given->dtype != info->dtype)
    return refuse(self, FRAZIL_WRONG_DTYPE, "%s %d (%.64s) has elements of %s: %s is expected", kind, (int)i, name, dtype_name(given->dtype), dtype_name(info->dtype));
  if (given->rank != info->rank)
    return refuse(self, FRAZIL_WRONG_RANK, "%s %d (%.64s) has %d dimensions: %d are expected", kind, (int)i, name, (int)given->rank, (int)info->rank);
  if (info->rank && !given->shape) return refuse(self, FRAZIL_NULL_POINTER, "the shape of %s %d (%.64s) is NULL", kind, (int)i, name);
  for (int32_t d = 0; d < info->rank; d++)
    if (given->shape[d] != info->shape[d])
      return refuse(self, FRAZIL_WRONG_SIZE, "%s %d (%.64s) has size %lld in dimension %d: %lld is expected", kind, (int)i, name, (long long)given->shape[d], (int)d, (long long)info->shape[d]);
  if (!given->data && info->bytes) return refuse(self, FRAZIL_NULL_POINTER, "the data of %s %d (%.64s) is NULL", kind, (int)i, name);
  *address = given->data;
  return FRAZIL_OK;
}

static frazil_status check_tensors(MODEL_instance *self, const char *kind, const frazil_tensor_info *table, int32_t count,
                                   const frazil_tensor *given, int32_t given_count, void **addresses) {
  if (given_count != count) return refuse(self, FRAZIL_WRONG_COUNT, "there are %d %ss: %d are expected", (int)given_count, kind, (int)count);
  if (count && !given) return refuse(self, FRAZIL_NULL_POINTER, "the array of %ss is NULL", kind);
  for (int32_t i = 0; i < count; i++) {
    const frazil_status status = check_tensor(self, kind, i, &table[i], &given[i], &addresses[i]);
    if (status) return status;
  }
  return FRAZIL_OK;
}

/* Outputs must not overlap inputs, nor each other. */
static frazil_status check_overlaps(MODEL_instance *self, void *const *inputs, void *const *outputs) {
  for (int32_t i = 0; i < OUTPUT_COUNT; i++) {
    const uintptr_t begin = (uintptr_t)outputs[i], end = begin + OUTPUTS(self)[i].bytes;
    for (int32_t j = 0; j < INPUT_COUNT + i; j++) {
      const int is_input = j < INPUT_COUNT;
      const int32_t k = is_input ? j : j - INPUT_COUNT;
      const frazil_tensor_info *other = is_input ? &INPUTS(self)[k] : &OUTPUTS(self)[k];
      const uintptr_t from = (uintptr_t)(is_input ? inputs[k] : outputs[k]), to = from + other->bytes;
      if (begin < to && from < end)
        return refuse(self, FRAZIL_OVERLAP, "output %d (%.64s) overlaps %s %d (%.64s)", (int)i, OUTPUTS(self)[i].name, is_input ? "input" : "output", (int)k, other->name);
    }
  }
  return FRAZIL_OK;
}

frazil_status MODEL_run_tensors(MODEL_instance *self, const frazil_tensor *inputs, int32_t input_count, const frazil_tensor *outputs, int32_t output_count) {
  if (!self) return FRAZIL_NULL_POINTER;
  if (!begin(self)) return FRAZIL_BUSY;
  void *in[INPUT_COUNT + 1], *out[OUTPUT_COUNT + 1];
  frazil_status status = FRAZIL_OK;
#if SIZE_COUNT
  int64_t sizes[SIZE_COUNT];
  read_sizes(sizes, inputs, input_count);
  status = set_sizes(self, sizes);
#endif
  if (!status) status = check_tensors(self, "input", INPUTS(self), INPUT_COUNT, inputs, input_count, in);
  if (!status) status = check_tensors(self, "output", OUTPUTS(self), OUTPUT_COUNT, outputs, output_count, out);
  if (!status) status = check_overlaps(self, in, out);
  return end(self, status ? status : run(self, (const void *const *)in, out));
}

const char *MODEL_error(const MODEL_instance *self) { return self ? self->error : ""; }

void MODEL_destroy(MODEL_instance *self) {
  if (!self) return;
  lock_library();
  if (self->previous) self->previous->next = self->next;
  else instances = self->next;
  if (self->next) self->next->previous = self->previous;
  unlock_library();
  release_prepared();
  frazil_rt_pool_drop(self->pool);
  free(self->owned_workspace);
  free(self);
}
