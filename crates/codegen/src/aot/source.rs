//! The C file of a compiled library: its tables and its interface.

use super::header::dtype_name;
use frazil_executor::memory::PAGE;
use frazil_executor::program::{kernel_name, phase_name};
use frazil_planner::plan::{Buffer, Call, Plan, Port};
use std::fmt::Write;

/// Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => {
        let _ = writeln!($out, $($arguments)*);
    };
}

/// Returns the C file of the plan's library. It expects `model.h`, `constants.bin` and `sources.bin` in the directory where it is compiled.
pub fn source(plan: &Plan) -> String {
    let mut out = String::from(
        "#include \"model.h\"\n#include <pthread.h>\n#include <stdarg.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <sys/mman.h>\n\n",
    );
    out.push_str(RUNTIME);
    constants(&mut out, plan);
    ports(&mut out, "input", &plan.inputs);
    ports(&mut out, "output", plan.results());
    put!(out, "#define CHECK_COUNT {}\n", plan.checks.len());
    steps(&mut out, plan);
    out.push_str(
        &INTERFACE
            .replace("MODEL", &plan.name)
            .replace("UPPER", &plan.name.to_uppercase()),
    );
    out
}

fn constants(out: &mut String, plan: &Plan) {
    put!(
        out,
        r#"__asm__(".pushsection .rodata.frazil_constants,\"a\",@progbits\n"
        ".balign 64\n"
        "frazil_constants:\n"
        ".incbin \"constants.bin\"\n"
        ".popsection\n");
extern const unsigned char frazil_constants[] __attribute__((visibility("hidden")));
#define WORKSPACE_BYTES ((size_t){})
#define PREPARED_BYTES {}
"#,
        plan.workspace_bytes,
        plan.preparation.bytes
    );
    if plan.preparation.bytes > 0 {
        // Aligned to pages, which are released once they have been read.
        put!(
            out,
            r#"__asm__(".pushsection .rodata.frazil_sources,\"a\",@progbits\n"
        ".balign {PAGE}\n"
        "frazil_sources:\n"
        ".incbin \"sources.bin\"\n"
        ".popsection\n");
extern const unsigned char frazil_sources[] __attribute__((visibility("hidden")));
#define SOURCE_BYTES {}
#define SOURCE_PAGE {PAGE}
"#,
            plan.preparation.sources.len()
        );
    }
}

fn ports(out: &mut String, kind: &str, ports: &[Port]) {
    for (i, p) in ports.iter().enumerate() {
        let shape: Vec<String> = p.shape.iter().map(|d| format!("{d}, ")).collect();
        put!(
            out,
            "static const int64_t {kind}_shape_{i}[] = {{ {}0 }};",
            shape.concat()
        );
    }
    put!(out, "#define {}_COUNT {}", kind.to_uppercase(), ports.len());
    put!(out, "static const frazil_tensor_info {kind}_table[] = {{");
    for (i, p) in ports.iter().enumerate() {
        let (dtype, name) = (dtype_name(p.dtype), c_string(&p.name));
        put!(
            out,
            "  {{ {name}, {dtype}, {}, {kind}_shape_{i}, {} }},",
            p.shape.len(),
            p.bytes()
        );
    }
    put!(out, "  {{ 0, FRAZIL_UINT8, 0, 0, 0 }}\n}};\n");
}

fn c_string(text: &str) -> String {
    let escaped = text.bytes().map(|b| match b {
        b'"' | b'\\' => format!("\\{}", b as char),
        b'?' => "\\?".to_owned(),
        0x20..0x7f => (b as char).to_string(),
        b => format!("\\{b:03o}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// The C declarations of the runtime, generated from the Rust ones.
const RUNTIME: &str = include_str!("../../../rt/include/frazil_rt.h");

/// Appends the tables that `frazil_rt_run` reads to `out`.
fn steps(out: &mut String, plan: &Plan) {
    for (i, spec) in plan.kernels.iter().enumerate() {
        for phase in 0..spec.phases().len() {
            let name = phase_name(&kernel_name(&plan.name, i), phase);
            put!(out, "void {name}(uint8_t *const *buffers, int64_t begin, int64_t end);");
        }
    }
    step_table(out, plan, "", &plan.calls);
    if plan.preparation.bytes > 0 {
        step_table(out, plan, "prepare_", &plan.preparation.calls);
    }
    let calls = plan.calls.iter().chain(&plan.preparation.calls);
    let most = calls.map(|c| c.buffers.len()).max().unwrap_or(0).max(1);
    put!(out, "#define MOST_BUFFERS {most}\n");
}

/// Appends the table of steps for `calls`, and the number of steps, to `out`. All names begin with `prefix`.
fn step_table(out: &mut String, plan: &Plan, prefix: &str, calls: &[Call]) {
    put!(out, "\nstatic const frazil_rt_buffer {prefix}buffers[] = {{");
    for buffer in calls.iter().flat_map(|c| &c.buffers) {
        let (kind, index, offset) = match *buffer {
            Buffer::Input { index, offset } => ("INPUT", index, offset),
            Buffer::Output { index, offset } => ("OUTPUT", index, offset),
            Buffer::Workspace { offset } => ("WORKSPACE", 0, offset),
            Buffer::Constant { offset } => ("CONSTANT", 0, offset),
            Buffer::Prepared { offset } => ("PREPARED", 0, offset),
            // Plans of libraries have none.
            Buffer::Shared { .. } => continue,
        };
        put!(out, "  {{ FRAZIL_RT_BUFFER_KIND_{kind}, {index}, {offset}u }},");
    }
    put!(
        out,
        "  {{ FRAZIL_RT_BUFFER_KIND_INPUT, 0, 0 }}\n}};\n\nstatic const frazil_rt_step {prefix}steps[] = {{"
    );
    let (mut first, mut count) = (0, 0);
    for call in calls {
        let Some(spec) = plan.kernels.get(call.kernel as usize) else {
            continue;
        };
        for (phase, tasks) in spec.phases().into_iter().enumerate() {
            let name = phase_name(&kernel_name(&plan.name, call.kernel as usize), phase);
            let buffers = call.buffers.len();
            let [backward, turns] = [call.order.backward, call.order.turns].map(u32::from);
            put!(
                out,
                "  {{ {name}, {tasks}, {{ {backward}, {turns} }}, {prefix}buffers + {first}, {buffers} }},"
            );
            count += 1;
        }
        first += call.buffers.len();
    }
    put!(
        out,
        "  {{ 0, 0, {{ 0, 0 }}, 0, 0 }}\n}};\nenum {{ {prefix}step_count = {count} }};\n"
    );
}

/// The source of the interface; `MODEL` is replaced by the plan's name.
const INTERFACE: &str = r#"/* Protects the list of instances, and what they share. */
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
  const frazil_rt_memory m = { inputs, all, self->workspace, frazil_constants, prepared, self->addresses, self->runs++ };
  frazil_rt_run(steps, step_count, &m, self->pool, self->parallel_for, self->user);
  for (int32_t i = 0; i < CHECK_COUNT; i++)
    if (checks[i]) return FRAZIL_INDEX_OUT_OF_RANGE;
  return FRAZIL_OK;
}

frazil_status MODEL_run(MODEL_instance *self, const void *const *inputs, void *const *outputs) {
  if (!self) return FRAZIL_NULL_POINTER;
  if (!begin(self)) return FRAZIL_BUSY;
  frazil_status status = check_addresses(self, "input", inputs, input_table, INPUT_COUNT);
  if (!status) status = check_addresses(self, "output", (const void *const *)outputs, output_table, OUTPUT_COUNT);
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
    const uintptr_t begin = (uintptr_t)outputs[i], end = begin + output_table[i].bytes;
    for (int32_t j = 0; j < INPUT_COUNT + i; j++) {
      const int is_input = j < INPUT_COUNT;
      const int32_t k = is_input ? j : j - INPUT_COUNT;
      const frazil_tensor_info *other = is_input ? &input_table[k] : &output_table[k];
      const uintptr_t from = (uintptr_t)(is_input ? inputs[k] : outputs[k]), to = from + other->bytes;
      if (begin < to && from < end)
        return refuse(self, FRAZIL_OVERLAP, "output %d (%.64s) overlaps %s %d (%.64s)", (int)i, output_table[i].name, is_input ? "input" : "output", (int)k, other->name);
    }
  }
  return FRAZIL_OK;
}

frazil_status MODEL_run_tensors(MODEL_instance *self, const frazil_tensor *inputs, int32_t input_count, const frazil_tensor *outputs, int32_t output_count) {
  if (!self) return FRAZIL_NULL_POINTER;
  if (!begin(self)) return FRAZIL_BUSY;
  void *in[INPUT_COUNT + 1], *out[OUTPUT_COUNT + 1];
  frazil_status status = check_tensors(self, "input", input_table, INPUT_COUNT, inputs, input_count, in);
  if (!status) status = check_tensors(self, "output", output_table, OUTPUT_COUNT, outputs, output_count, out);
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
"#;
