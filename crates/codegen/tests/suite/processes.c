/* A library in processes that fork, unload it, or are out of threads; processes.rs compiles and runs it. All weights are 1: a result counts the
   inputs in its window. Argument: what to do. */
#define _GNU_SOURCE
#include "convolutions.h"
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                               \
    }                                                                         \
  } while (0)

enum { ELEMENTS = SIZE * SIZE * CHANNELS };

typedef frazil_status create_fn(const frazil_options *, convolutions_instance **);
typedef frazil_status run_fn(convolutions_instance *, const void *const *, void *const *);
typedef void destroy_fn(convolutions_instance *);
static create_fn *create;
static run_fn *run_once;
static destroy_fn *destroy;
static void *library;

static void load(void) {
  library = dlopen("./convolutions.so", RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  create = (create_fn *)dlsym(library, "convolutions_create");
  run_once = (run_fn *)dlsym(library, "convolutions_run");
  destroy = (destroy_fn *)dlsym(library, "convolutions_destroy");
  CHECK(create && run_once && destroy);
}

static convolutions_instance *new_instance(int threads) {
  frazil_options options = {sizeof options};
  options.threads = threads;
  convolutions_instance *model;
  CHECK(!create(&options, &model));
  return model;
}

/* Runs until the instance is free. */
static void run(convolutions_instance *model) {
  float *x = malloc(ELEMENTS * sizeof *x), *y = malloc(ELEMENTS * sizeof *y);
  for (int i = 0; i < ELEMENTS; i++) x[i] = 1, y[i] = 0;
  const void *inputs[] = {x};
  void *outputs[] = {y};
  CHECK(!run_once(model, inputs, outputs));
  const int middle = (SIZE / 2 * SIZE + SIZE / 2) * CHANNELS;
  CHECK(y[middle] == 9.0f * CHANNELS * 9 * CHANNELS && y[0] == 1.0f * CHANNELS * CHANNELS * (4 + 6 + 6 + 9));
  free(x);
  free(y);
}

static int entries(const char *path) {
  DIR *folder = opendir(path);
  CHECK(folder);
  int count = 0;
  while (readdir(folder)) count++;
  closedir(folder);
  return count - 2;
}

static int threads(void) { return entries("/proc/self/task"); }

/* Whether there are so many threads, soon: one that has been joined is listed until the kernel has removed it. */
static int has_threads(int count) {
  for (int waited = 0; waited < 2000 && threads() > count; waited++) usleep(1000);
  return threads() == count;
}

/* Lines of the list of mappings that have `text` in them. */
static int mappings(const char *text) {
  FILE *file = fopen("/proc/self/maps", "r");
  CHECK(file);
  char line[4096];
  int count = 0;
  while (fgets(line, sizeof line, file)) count += strstr(line, text) != 0;
  fclose(file);
  return count;
}

static void wait_for(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One process forked from the other. */
static void fork_deep(convolutions_instance *model, int depth) {
  run(model);
  CHECK(has_threads(4));
  if (!depth) return;
  pid_t child = fork();
  CHECK(child >= 0);
  if (!child) {
    alarm(60);
    CHECK(has_threads(1));
    fork_deep(model, depth - 1);
    convolutions_instance *own = new_instance(2);
    run(own);
    run(model);
    CHECK(has_threads(5));
    destroy(own);
    CHECK(has_threads(4));
    /* The destructors of the library run too. */
    exit(0);
  }
  wait_for(child);
  run(model);
}

/* Several instances with several threads at once. */
static void few(void) {
  convolutions_instance *models[3];
  for (int i = 0; i < 3; i++) models[i] = new_instance(i + 1);
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 3; i++) run(models[i]);
  for (int i = 0; i < 3; i++) destroy(models[i]);
}

static int is_done;

/* Runs an instance, and creates and destroys others. */
static void *busy(void *model) {
  while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED)) {
    run(model);
    convolutions_instance *other = new_instance(3);
    run(other);
    destroy(other);
  }
  return 0;
}

/* Forks while other threads are in the library. */
static void fork_wide(void) {
  convolutions_instance *models[2];
  pthread_t others[2];
  for (int i = 0; i < 2; i++) {
    models[i] = new_instance(3);
    CHECK(!pthread_create(&others[i], 0, busy, models[i]));
  }
  for (int round = 0; round < 50; round++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
      alarm(60);
      for (int i = 0; i < 2; i++) run(models[i]);
      convolutions_instance *own = new_instance(2);
      run(own);
      destroy(own);
      destroy(models[0]);
      exit(0);
    }
    wait_for(child);
  }
  __atomic_store_n(&is_done, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; i++) {
    CHECK(!pthread_join(others[i], 0));
    destroy(models[i]);
  }
}

/* Unloads the library with threads that wait for work, and without. */
static void unload(void) {
  int before = 0, files = 0;
  for (int round = 0; round < 100; round++) {
    if (round) load();
    convolutions_instance *model = new_instance(4);
    run(model);
    CHECK(has_threads(4));
    /* The memory of an instance that is not destroyed is lost, so most are. */
    if (round % 10) destroy(model);
    CHECK(!dlclose(library));
    CHECK(has_threads(1) && mappings("convolutions.so") == 0);
    usleep(200);
    if (round == 50) before = mappings(""), files = entries("/proc/self/fd");
  }
  /* Those that are not destroyed are five with a workspace each. */
  CHECK(mappings("") <= before + 10 && entries("/proc/self/fd") == files);
}

/* Has no memory for the stacks of threads. */
static void without_threads(void) {
  convolutions_instance *before = new_instance(4);
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long pages;
  CHECK(file && fscanf(file, "%lu", &pages) == 1);
  fclose(file);
  struct rlimit limit;
  CHECK(!getrlimit(RLIMIT_AS, &limit));
  limit.rlim_cur = (pages << 12) + (6 << 20);
  CHECK(!setrlimit(RLIMIT_AS, &limit));
  const int already = threads();
  convolutions_instance *model = new_instance(40);
  CHECK(threads() < already + 39);
  run(model);
  run(before);
  destroy(before);
  destroy(model);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  load();
  if (!strcmp(argv[1], "few")) few();
  if (!strcmp(argv[1], "fork")) {
    convolutions_instance *model = new_instance(4);
    fork_deep(model, 2);
    destroy(model);
  }
  if (!strcmp(argv[1], "busy")) fork_wide();
  if (!strcmp(argv[1], "unload")) unload();
  if (!strcmp(argv[1], "limit")) without_threads();
  puts("all is as it should be");
  return 0;
}
