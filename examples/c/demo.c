/* Calls a model that `jit-opt` compiled, and compares with what PyTorch computed. `make demo` builds and runs it:

       jit-opt model.pt --freeze --input-shape=1x3x32x32 -o libresidual_cnn.so
       cc demo.c -L. -lresidual_cnn -lm -o demo
       ./demo input.f32 expected.f32

   The program needs the library, its header and the C library, nothing else. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libresidual_cnn.h"

/* As in the model's tests. */
static const double tolerance = 1e-5;

/* Reads a file of exactly this many bytes. */
static void *read_file(const char *path, size_t bytes) {
  FILE *file = fopen(path, "rb");
  void *data = malloc(bytes);
  if (!file || !data || fread(data, 1, bytes, file) != bytes || fgetc(file) != EOF) {
    fprintf(stderr, "%s: cannot read %zu bytes\n", path, bytes);
    exit(1);
  }
  fclose(file);
  return data;
}

static void check(frazil_status status) {
  if (status != FRAZIL_OK) {
    fprintf(stderr, "residual_cnn: %s\n", residual_cnn_status_message(status));
    exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s INPUT EXPECTED\n", argv[0]);
    return 2;
  }
  const frazil_tensor_info *in = residual_cnn_input_info(0);
  const frazil_tensor_info *out = residual_cnn_output_info(0);
  float *image = read_file(argv[1], in->bytes);
  float *expected = read_file(argv[2], out->bytes);
  float *scores = malloc(out->bytes);

  residual_cnn_instance *instance;
  check(residual_cnn_create(NULL, &instance));
  const void *inputs[] = {image};
  void *outputs[] = {scores};
  check(residual_cnn_run(instance, inputs, outputs));
  residual_cnn_destroy(instance);

  double largest = 0;
  for (size_t i = 0; i < out->bytes / sizeof *scores; i++) {
    /* NaN compares false with everything: fmax would lose it. */
    double difference = fabs((double)scores[i] - expected[i]);
    if (!(difference <= tolerance + tolerance * fabs(expected[i]))) {
      fprintf(stderr, "class %zu: %g instead of %g\n", i, scores[i], expected[i]);
      return 1;
    }
    largest = fmax(largest, difference);
    printf("class %zu: %9.6f\n", i, scores[i]);
  }
  printf("agrees with PyTorch; largest difference %.1e\n", largest);
  free(image);
  free(expected);
  free(scores);
  return 0;
}
