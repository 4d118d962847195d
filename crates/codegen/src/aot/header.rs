//! The C header of a compiled library.

use super::range::SizeRange;
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

/// The sizes in the interface of a library.
pub struct Interface<'a> {
    /// The sizes of each input, as text: numbers, and names of sizes.
    pub inputs: Vec<Vec<String>>,
    /// The sizes of each output, as text.
    pub outputs: Vec<Vec<String>>,
    /// The sizes that callers choose.
    pub ranges: &'a [SizeRange],
}

/// Returns the header of the plan's library.
pub fn header(plan: &Plan) -> String {
    let shapes = |ports: &[Port]| {
        let shapes = ports.iter().map(|p| p.shape.iter().map(i64::to_string).collect());
        shapes.collect()
    };
    let interface = Interface {
        inputs: shapes(&plan.inputs),
        outputs: shapes(plan.results()),
        ranges: &[],
    };
    header_of(plan, &interface)
}

/// Returns the header of a library with the inputs and outputs of `plan`, whose sizes are those of `interface`.
pub fn header_of(plan: &Plan, interface: &Interface<'_>) -> String {
    let name = &plan.name;
    let upper = name.to_uppercase();
    let guard = format!("FRAZIL_MODEL_{upper}_H");
    let most = if interface.ranges.is_empty() { "" } else { "at most " };
    let list = |ports: &[Port], shapes: &[Vec<String>]| {
        let lines = ports.iter().zip(shapes).enumerate().map(|(i, (p, shape))| {
            format!(
                "     {i}: {}, {} [{}], {most}{} bytes\n",
                comment(&p.name),
                dtype_name(p.dtype),
                shape.join(", "),
                p.bytes()
            )
        });
        lines.collect::<String>()
    };
    let Ranged {
        list: sizes,
        declarations,
        argument,
        run,
        infos,
    } = Ranged::of(plan, interface.ranges);
    let text = format!(
        r#"/* Compiled by Frazil. Link with the library of the same name.

{sizes}   inputs:
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

/* Number of inputs and outputs, and their descriptions; NULL for an index that does not exist.{infos} */
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

{declarations}/* Bytes of scratch memory that an instance needs. */
size_t {name}_workspace_bytes(void);

/* Makes an instance. options may be NULL: one thread, own workspace. */
frazil_status {name}_create(const frazil_options *options, {name}_instance **instance);

/* Runs the function.{run} inputs and outputs are arrays of addresses in the order of the descriptions; outputs
   overlap neither each other nor the inputs. Every thread that runs tasks, the calling one included, needs
   1 MiB of stack. */
frazil_status {name}_run({name}_instance *instance, {argument}const void *const *inputs, void *const *outputs);

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
        inputs = list(&plan.inputs, &interface.inputs),
        outputs = list(plan.results(), &interface.outputs),
    );
    let checksum = crc32fast::hash(text.as_bytes());
    text.replace(CHECKSUM, &format!("0x{checksum:08x}u"))
}

/// The parts of a header that libraries for ranges have, and others have not.
#[derive(Default)]
struct Ranged {
    /// The ranges, in the first comment.
    list: String,
    /// Constants and functions.
    declarations: String,
    /// The argument of the run for the sizes.
    argument: &'static str,
    /// The argument's description.
    run: &'static str,
    /// The texts that stand for sizes in the descriptions of inputs and outputs.
    infos: &'static str,
}

impl Ranged {
    fn of(plan: &Plan, ranges: &[SizeRange]) -> Ranged {
        if ranges.is_empty() {
            return Ranged::default();
        }
        let name = &plan.name;
        let upper = name.to_uppercase();
        let line = |r: &SizeRange| format!("     {}: {} to {}\n", r.name, r.low, r.high);
        let bounds = |(i, r): (usize, &SizeRange)| {
            let SizeRange { name, low, high } = r;
            format!(
                "#define {upper}_INDEX_{name} {i}\n#define {upper}_MIN_{name} {low}\n#define {upper}_MAX_{name} {high}\n"
            )
        };
        Ranged {
            list: format!(
                "   sizes, both bounds included:\n{}",
                ranges.iter().map(line).collect::<String>()
            ),
            declarations: format!(
                r#"/* The sizes that callers choose: their number, their positions in arrays of sizes, and their bounds, which are included. */
#define {upper}_SIZE_COUNT {}
{}
/* Writes the sizes of the output `index` to `shape`, which has space for as many as the output has dimensions. `sizes` has {upper}_SIZE_COUNT elements.
   FRAZIL_WRONG_SIZE: a size is out of its range. FRAZIL_WRONG_COUNT: there is no such output. */
frazil_status {name}_output_sizes(const int64_t *sizes, int32_t index, int64_t *shape);

/* The scratch memory in bytes that suffices for all sizes; {name}_workspace_bytes returns the same. */
#define {upper}_WORKSPACE_BYTES {}

"#,
                ranges.len(),
                ranges.iter().enumerate().map(bounds).collect::<String>(),
                plan.workspace_bytes
            ),
            argument: "const int64_t *sizes, ",
            run: " sizes are those of this call.",
            infos: " The shapes contain -1 for\n   sizes that callers choose, and `bytes` is that of the largest sizes.",
        }
    }
}

/// Returns the C name of a dtype.
pub(super) fn dtype_name(dtype: DType) -> String {
    format!("FRAZIL_{}", dtype.python_name().to_uppercase())
}

/// Returns `name` in a form that does not end a C comment.
fn comment(name: &str) -> String {
    name.replace("*/", "* /")
}
