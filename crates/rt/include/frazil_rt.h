/* The runtime of compiled functions. Made by cbindgen from crates/rt/src. */

enum frazil_rt_buffer_kind
#if __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // __STDC_VERSION__ >= 202311L
 {
  FRAZIL_RT_BUFFER_KIND_INPUT = 0,
  FRAZIL_RT_BUFFER_KIND_OUTPUT = 1,
  FRAZIL_RT_BUFFER_KIND_WORKSPACE = 2,
  FRAZIL_RT_BUFFER_KIND_CONSTANT = 3,
  FRAZIL_RT_BUFFER_KIND_PREPARED = 4,
  FRAZIL_RT_BUFFER_KIND_NUMBERS = 5,
  FRAZIL_RT_BUFFER_KIND_ADDRESS = 6,
};
#if __STDC_VERSION__ >= 202311L
typedef enum frazil_rt_buffer_kind frazil_rt_buffer_kind;
#else
typedef uint32_t frazil_rt_buffer_kind;
#endif // __STDC_VERSION__ >= 202311L

typedef void (*frazil_rt_kernel)(uint8_t *const *buffers, int64_t begin, int64_t end);

typedef struct {
  uint32_t backward;
  uint32_t turns;
} frazil_rt_order;

typedef struct {
  frazil_rt_buffer_kind kind;
  uint32_t index;
  uint64_t offset;
} frazil_rt_buffer;

typedef struct {
  frazil_rt_kernel kernel;
  int64_t tasks;
  frazil_rt_order order;
  const frazil_rt_buffer *buffers;
  uint64_t buffer_count;
} frazil_rt_step;

typedef struct {
  const void *const *inputs;
  void *const *outputs;
  uint8_t *workspace;
  const uint8_t *constants;
  uint8_t *prepared;
  uint8_t **addresses;
  uint64_t run;
  const int64_t *numbers;
} frazil_rt_memory;

typedef void (*frazil_rt_task)(void *argument, int64_t begin, int64_t end);

void *frazil_rt_pool_new(uint64_t threads);

void frazil_rt_pool_drop(void *pool);

void frazil_rt_run(const frazil_rt_step *steps,
                   uint64_t count,
                   const frazil_rt_memory *memory,
                   const void *pool,
                   void (*parallel_for)(void*, int64_t, frazil_rt_task, void*),
                   void *user);
