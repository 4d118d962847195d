//! The C header of a compiled library.

use frazil_ir::DType;
use frazil_planner::plan::{Plan, Port};

/// The version of the interface; [`COMMON`] contains it too.
const ABI_VERSION: u32 = 2;

/// The common part of all headers. One file can include several headers.
const COMMON: &str = r#"#ifndef FRAZIL_TYPES_H
#define FRAZIL_TYPES_H

/* Element types. */
typedef enum frazil_dtype {
  FRAZIL_UINT8 = 0,
  FRAZIL_INT8 = 1,
  FRAZIL_INT16 = 2,
  FRAZIL_INT32 = 3,
  FRAZIL_INT64 = 4,
  FRAZIL_FLOAT16 = 5,
  FRAZIL_FLOAT32 = 6,
  FRAZIL_FLOAT64 = 7,
  FRAZIL_BOOL = 11,
  FRAZIL_BFLOAT16 = 15
} frazil_dtype;

/* The version of this interface. It changes with the meaning of a function or a structure. */
#define FRAZIL_ABI_VERSION 2

/* What the functions return. After those from FRAZIL_BUSY on nothing was run. */
typedef enum frazil_status {
  FRAZIL_OK = 0,
  FRAZIL_INVALID_ARGUMENT = 1, /* a negative number of threads */
  FRAZIL_OUT_OF_MEMORY = 2,
  FRAZIL_INDEX_OUT_OF_RANGE = 3, /* an element of an input names nothing; the outputs mean nothing */
  FRAZIL_BUSY = 4, /* another thread runs the instance */
  FRAZIL_NULL_POINTER = 5,
  FRAZIL_WRONG_VERSION = 6, /* the options are those of another version of this interface */
  FRAZIL_UNALIGNED = 7, /* a workspace that is not aligned to 64 bytes */
  FRAZIL_WRONG_COUNT = 8, /* of inputs or outputs */
  FRAZIL_WRONG_DTYPE = 9,
  FRAZIL_WRONG_RANK = 10,
  FRAZIL_WRONG_SIZE = 11, /* of a dimension */
  FRAZIL_OVERLAP = 12 /* an output overlaps an input or another output */
} frazil_status;

/* A tensor that the caller gives or gets: dense, row-major. */
typedef struct frazil_tensor_info {
  const char *name;
  frazil_dtype dtype;
  int32_t rank;
  const int64_t *shape;
  size_t bytes;
} frazil_tensor_info;

/* A tensor as the caller has it: dense, row-major, at any address. Inputs are only read. */
typedef struct frazil_tensor {
  void *data;
  frazil_dtype dtype;
  int32_t rank;
  const int64_t *shape;
} frazil_tensor;

/* A range of independent pieces of work. */
typedef void (*frazil_task)(void *argument, int64_t begin, int64_t end);

/* The caller's parallel loop: calls task(argument, begin, end) on disjoint ranges that together are
   0..tasks, on whatever threads it likes, and returns when all those calls have returned. */
typedef void (*frazil_parallel_for)(void *user, int64_t tasks, frazil_task task, void *argument);

/* How an instance runs. Zero everything, then set `size` and `version`. */
typedef struct frazil_options {
  size_t size;                      /* sizeof(frazil_options) */
  int32_t threads;                  /* threads of its own, the caller included; 0 and 1 create none */
  uint32_t version;                 /* FRAZIL_ABI_VERSION, or 0 to leave it unchecked */
  frazil_parallel_for parallel_for; /* the caller's threads instead; NULL for none */
  void *user;                       /* passed to parallel_for */
  void *workspace;                  /* at least ..._workspace_bytes() bytes, aligned to 64; NULL: allocated */
} frazil_options;

#endif
"#;

/// Placeholder for the header's checksum while the checksum is computed.
const CHECKSUM: &str = "@CHECKSUM@";

/// Returns the header of the plan's library.
pub fn header(plan: &Plan) -> String {
    let name = &plan.name;
    let guard = format!("FRAZIL_MODEL_{}_H", name.to_uppercase());
    let list = |ports: &[Port]| {
        let lines = ports.iter().enumerate().map(|(i, p)| {
            let shape: Vec<String> = p.shape.iter().map(i64::to_string).collect();
            format!(
                "     {i}: {}, {} [{}], {} bytes\n",
                comment(&p.name),
                dtype_name(p.dtype),
                shape.join(", "),
                p.bytes()
            )
        });
        lines.collect::<String>()
    };
    let text = format!(
        r#"/* Compiled by Frazil. Link with the library of the same name.

   inputs:
{inputs}   outputs:
{outputs}*/
#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{COMMON}
#if FRAZIL_ABI_VERSION != {ABI_VERSION}
#error "this header and another one that is included are of different versions of Frazil"
#endif

/* An instance: runs one call at a time; one that comes meanwhile is refused. Instances share code and weights and are independent of each other. */
typedef struct {name}_instance {name}_instance;

/* Number of inputs and outputs, and their descriptions; NULL for an index that does not exist. */
int32_t {name}_input_count(void);
int32_t {name}_output_count(void);
const frazil_tensor_info *{name}_input_info(int32_t index);
const frazil_tensor_info *{name}_output_info(int32_t index);

/* The number of the input or output of a name; -1 when there is none. */
int32_t {name}_input_index(const char *input);
int32_t {name}_output_index(const char *output);

/* The FRAZIL_ABI_VERSION that the library was made with. */
uint32_t {name}_abi_version(void);

/* Tells this header, and the one that the library was made with: both are written together, and one of them may have been replaced since. */
#define {upper}_HEADER {CHECKSUM}
uint32_t {name}_header(void);

/* Bytes of scratch memory that an instance needs. */
size_t {name}_workspace_bytes(void);

/* Makes an instance. options may be NULL: one thread, own workspace. */
frazil_status {name}_create(const frazil_options *options, {name}_instance **instance);

/* Runs the function. inputs and outputs are arrays of addresses in the order of the descriptions; outputs
   overlap neither each other nor the inputs. Every thread that runs tasks, the calling one included, needs
   1 MiB of stack. */
frazil_status {name}_run({name}_instance *instance, const void *const *inputs, void *const *outputs);

/* Runs the function as {name}_run does, on tensors that say what they are: their numbers, types of elements, ranks and sizes are checked first, and that
   outputs overlap nothing. */
frazil_status {name}_run_tensors({name}_instance *instance, const frazil_tensor *inputs, int32_t input_count,
                                 const frazil_tensor *outputs, int32_t output_count);

/* What the last run of an instance was refused for, in English: which input or output, what was expected, and what was given. Empty when it was not. It lives until
   the instance runs again or ends. */
const char *{name}_error(const {name}_instance *instance);

/* Ends an instance; NULL is allowed. */
void {name}_destroy({name}_instance *instance);

/* What a status means, in English. */
const char *{name}_status_message(frazil_status status);

#ifdef __cplusplus
}}
#endif

#endif
"#,
        inputs = list(&plan.inputs),
        outputs = list(plan.results()),
        upper = name.to_uppercase(),
    );
    let checksum = crc32fast::hash(text.as_bytes());
    text.replace(CHECKSUM, &format!("0x{checksum:08x}u"))
}

/// Returns the C name of a dtype.
pub(super) fn dtype_name(dtype: DType) -> String {
    format!("FRAZIL_{}", dtype.python_name().to_uppercase())
}

/// Returns `name` in a form that does not end a C comment.
fn comment(name: &str) -> String {
    name.replace("*/", "* /")
}
