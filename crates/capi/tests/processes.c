/* The interface in processes that fork while other threads use it, receive signals, have no standard streams, are short of threads, or load the library
   again and again; tests/program.rs compiles and runs it. Arguments: what to do, a folder, the archive, an input and PyTorch's result as raw floats. */
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INPUT = 1 * 3 * 32 * 32, OUTPUT = 10 };
static float image[INPUT], expected[OUTPUT];
static const char *folder, *archive;
static FrazilValue *argument;

static void keep(void *context) { (void)context; }

static void check_call(FrazilEngine *engine) {
  FrazilValue *result;
  const FrazilValue *arguments[] = {argument};
  ok(frazil_engine_call(engine, "forward", arguments, 1, &result));
  FrazilTensor *tensor;
  ok(frazil_value_as_tensor(result, &tensor));
  float got[OUTPUT];
  ok(frazil_tensor_read(tensor, got, sizeof got));
  for (int i = 0; i < OUTPUT; i++) CHECK(fabsf(got[i] - expected[i]) <= 1e-4f + 1e-4f * fabsf(expected[i]));
  frazil_tensor_free(tensor);
  frazil_value_free(result);
}

static FrazilEngine *new_engine(const FrazilModel *model, bool interpret, size_t threads) {
  char cache[4096];
  snprintf(cache, sizeof cache, "%s/cache", folder);
  FrazilOptions *options = frazil_options_new();
  ok(frazil_options_set_strict(options, true));
  ok(frazil_options_set_threads(options, threads));
  ok(frazil_options_set_interpret(options, interpret));
  if (!interpret) ok(frazil_options_set_cache_dir(options, cache));
  FrazilEngine *engine;
  ok(frazil_engine_new(model, options, &engine));
  frazil_options_free(options);
  return engine;
}

/* Loads, runs natively and in the interpreter, saves, and frees everything. */
static void cycle(size_t threads) {
  FrazilSession *session;
  FrazilModel *model;
  ok(frazil_session_new(&session));
  ok(frazil_model_load(session, archive, &model));
  for (int interpret = 0; interpret < 2; interpret++) {
    FrazilEngine *engine = new_engine(model, interpret, threads);
    check_call(engine);
    frazil_engine_free(engine);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/saved%d.pt", folder, (int)gettid());
  ok(frazil_model_save(model, path));
  frazil_model_free(model);
  FrazilModel *saved;
  ok(frazil_model_load(session, path, &saved));
  unlink(path);
  frazil_model_free(saved);
  frazil_session_free(session);
}

static int entries(const char *path) {
  DIR *listed = opendir(path);
  CHECK(listed);
  int count = 0;
  while (readdir(listed)) count++;
  closedir(listed);
  return count - 2;
}

static long lines(const char *path) {
  FILE *file = fopen(path, "r");
  CHECK(file);
  long count = 0;
  for (int c; (c = getc(file)) != EOF;) count += c == '\n';
  fclose(file);
  return count;
}

static long resident_kilobytes(void) {
  long size, resident;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
  fclose(file);
  return resident * 4;
}

static int is_done;

static void *busy(void *unused) {
  while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED)) cycle(2);
  return unused;
}

/* Children of a process whose other threads are in the middle of everything. */
static void forks(void) {
  pthread_t others[3];
  cycle(2);
  for (int i = 0; i < 3; i++) CHECK(!pthread_create(&others[i], NULL, busy, NULL));
  for (int round = 0; round < 20; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(100);
      cycle(2);
      exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  __atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++) CHECK(!pthread_join(others[i], NULL));
}

/* Nothing is left of what is freed: no descriptor, mapping or memory. */
static void cycles(void) {
  int files = 0;
  long mappings = 0, resident = 0;
  for (int round = 0; round < 100; round++) {
    cycle(2);
    if (round == 30) {
      files = entries("/proc/self/fd");
      mappings = lines("/proc/self/maps");
      resident = resident_kilobytes();
    }
  }
  CHECK(entries("/proc/self/fd") == files);
  /* The allocator may have another arena or two. */
  CHECK(lines("/proc/self/maps") <= mappings + 8);
  CHECK(resident_kilobytes() <= resident + 8192);
}

/* What is compiled once is found in the cache twice. */
static void few(void) {
  for (int round = 0; round < 3; round++) cycle(3);
}

static void *scribble(void *unused) {
  while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED))
    for (int i = 0; i < 3; i++)
      if (write(i, "scribble", 8) < 0) sched_yield();
  return unused;
}

/* Without standard streams, which somebody writes to all the same. */
static void closed(void) {
  for (int i = 0; i < 3; i++) close(i);
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, scribble, NULL));
  for (int round = 0; round < 10; round++) cycle(2);
  __atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
  CHECK(!pthread_join(other, NULL));
}

static pthread_t host;
static int handled, handled_elsewhere;

static void handler(int number) {
  (void)number;
  __atomic_add_fetch(pthread_equal(pthread_self(), host) ? &handled : &handled_elsewhere, 1, __ATOMIC_RELAXED);
}

/* Signals interrupt everything and are handled by the threads of the program. */
static void signals(void) {
  host = pthread_self();
  /* Without SA_RESTART. */
  struct sigaction action = {.sa_handler = handler};
  sigemptyset(&action.sa_mask);
  CHECK(!sigaction(SIGALRM, &action, NULL));
  const struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  CHECK(!setitimer(ITIMER_REAL, &every, NULL));
  for (int round = 0; round < 10; round++) cycle(3);
  CHECK(!setitimer(ITIMER_REAL, &never, NULL));
  CHECK(handled > 100 && handled_elsewhere == 0);
}

/* No memory for the stack of another thread. The code is in the cache: the compiler needs more memory than there is. */
static void limited(void) {
  CHECK(!setenv("RUST_MIN_STACK", "1073741824", 1));
  pthread_attr_t attributes;
  CHECK(!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, (size_t)1 << 30));
  CHECK(!pthread_setattr_default_np(&attributes));
  long pages;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%ld", &pages) == 1);
  fclose(file);
  struct rlimit limit;
  CHECK(!getrlimit(RLIMIT_AS, &limit));
  limit.rlim_cur = ((rlim_t)pages << 12) + ((rlim_t)200 << 20);
  CHECK(!setrlimit(RLIMIT_AS, &limit));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, busy, NULL) == EAGAIN);
  cycle(8);
  CHECK(entries("/proc/self/task") == 1);
}

int main(int argc, char **argv) {
  CHECK(argc == 6);
  folder = argv[2];
  archive = argv[3];
  read_floats(argv[4], image, INPUT);
  read_floats(argv[5], expected, OUTPUT);
  static const int64_t sizes[] = {1, 3, 32, 32};
  FrazilTensor *input;
  ok(frazil_tensor_share(FRAZIL_DTYPE_FLOAT32, sizes, 4, image, sizeof image, keep, NULL, &input));
  ok(frazil_value_tensor(input, &argument));
  const int out = fcntl(1, F_DUPFD_CLOEXEC, 10);
  static const struct {
    const char *name;
    void (*test)(void);
  } tests[] = {{"few", few}, {"forks", forks}, {"cycles", cycles}, {"closed", closed}, {"signals", signals}, {"limited", limited}};
  int found = 0;
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
    if (!strcmp(argv[1], tests[i].name)) {
      tests[i].test();
      found = 1;
    }
  CHECK(found);
  frazil_value_free(argument);
  frazil_tensor_free(input);
  static const char text[] = "all is as it should be\n";
  CHECK(write(out, text, sizeof text - 1) == sizeof text - 1);
  return 0;
}
