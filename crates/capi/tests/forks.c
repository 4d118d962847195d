/* Compiles and runs a model, forks, and does the same in the child, with what it has from its parent and with engines of its own; tests/program.rs
   compiles and runs it. Arguments: the archive, an input and PyTorch's result as raw floats. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INPUT = 1 * 3 * 32 * 32, OUTPUT = 10 };
static float image[INPUT], expected[OUTPUT];

static void check_call(FrazilEngine *engine, const FrazilValue *argument) {
  FrazilValue *result;
  ok(frazil_engine_call(engine, "forward", &argument, 1, &result));
  FrazilTensor *tensor;
  ok(frazil_value_as_tensor(result, &tensor));
  float got[OUTPUT];
  ok(frazil_tensor_read(tensor, got, sizeof got));
  for (int i = 0; i < OUTPUT; i++) CHECK(fabsf(got[i] - expected[i]) <= 1e-4f + 1e-4f * fabsf(expected[i]));
  frazil_tensor_free(tensor);
  frazil_value_free(result);
}

/* The image is never freed. */
static void keep(void *context) { (void)context; }

static FrazilEngine *new_engine(const FrazilModel *model, bool interpret) {
  FrazilOptions *options = frazil_options_new();
  ok(frazil_options_set_strict(options, true));
  ok(frazil_options_set_threads(options, 2));
  ok(frazil_options_set_interpret(options, interpret));
  FrazilEngine *engine;
  ok(frazil_engine_new(model, options, &engine));
  frazil_options_free(options);
  return engine;
}

/* Forks `depth` times, one process from the other. */
static void work(const FrazilModel *model, const FrazilValue *argument, int depth) {
  FrazilEngine *engines[] = {new_engine(model, false), new_engine(model, true)};
  for (int i = 0; i < 2; i++) check_call(engines[i], argument);
  if (depth > 0) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      /* Who hangs is ended. */
      alarm(100);
      for (int i = 0; i < 2; i++) {
        check_call(engines[i], argument);
        frazil_engine_free(engines[i]);
      }
      work(model, argument, depth - 1);
      exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (int i = 0; i < 2; i++) {
    check_call(engines[i], argument);
    frazil_engine_free(engines[i]);
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  read_floats(argv[2], image, INPUT);
  read_floats(argv[3], expected, OUTPUT);
  FrazilSession *session;
  ok(frazil_session_new(&session));
  FrazilModel *model;
  ok(frazil_model_load(session, argv[1], &model));
  static const int64_t sizes[] = {1, 3, 32, 32};
  FrazilTensor *input;
  ok(frazil_tensor_share(FRAZIL_DTYPE_FLOAT32, sizes, 4, image, sizeof image, keep, NULL, &input));
  FrazilValue *argument;
  ok(frazil_value_tensor(input, &argument));
  work(model, argument, 2);
  frazil_value_free(argument);
  frazil_tensor_free(input);
  frazil_model_free(model);
  frazil_session_free(session);
  puts("all is as it should be");
  return 0;
}
