/* Runs a library for ranges of sizes on the cases in a file, and writes the outputs to another.

   A case is the array of sizes, then for each input its rank, its sizes, its bytes, and its data. An output is written as its rank, its sizes and its data. */
#include "libmodel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

static int64_t read_number(FILE *file) {
  int64_t number;
  if (fread(&number, sizeof number, 1, file) != 1) exit(20);
  return number;
}

int main(int count, char **arguments) {
  if (count != 3) return 10;
  FILE *cases = fopen(arguments[1], "rb"), *results = fopen(arguments[2], "wb");
  model_instance *model;
  if (!cases || !results || model_create(0, &model)) return 11;
  if (model_workspace_bytes() != MODEL_WORKSPACE_BYTES || model_header() != MODEL_HEADER) return 12;
  int64_t sizes[MODEL_SIZE_COUNT];
  while (fread(sizes, sizeof *sizes, MODEL_SIZE_COUNT, cases) == MODEL_SIZE_COUNT) {
    frazil_tensor in[MOST], out[MOST];
    static int64_t shapes[2 * MOST][MOST];
    const void *inputs[MOST];
    void *outputs[MOST], *again[MOST];
    for (int32_t i = 0; i < model_input_count(); i++) {
      in[i].dtype = model_input_info(i)->dtype, in[i].rank = (int32_t)read_number(cases), in[i].shape = shapes[i];
      for (int32_t d = 0; d < in[i].rank; d++) shapes[i][d] = read_number(cases);
      const size_t bytes = (size_t)read_number(cases);
      if (bytes > model_input_info(i)->bytes) return 13;
      in[i].data = malloc(bytes + 1);
      if (fread(in[i].data, 1, bytes, cases) != bytes) return 14;
      inputs[i] = in[i].data;
    }
    size_t bytes[MOST];
    for (int32_t i = 0; i < model_output_count(); i++) {
      const frazil_tensor_info *info = model_output_info(i);
      int64_t *shape = shapes[MOST + i];
      if (model_output_sizes(sizes, i, shape)) return 15;
      bytes[i] = 4;
      for (int32_t d = 0; d < info->rank; d++) {
        if (info->shape[d] >= 0 && info->shape[d] != shape[d]) return 16;
        bytes[i] *= (size_t)shape[d];
      }
      if (bytes[i] > info->bytes) return 17;
      /* Elements that are not written are found in the results. */
      outputs[i] = malloc(bytes[i] + 1), again[i] = malloc(bytes[i] + 1);
      memset(outputs[i], 0x7f, bytes[i]), memset(again[i], 0x7f, bytes[i]);
      const frazil_tensor one = { outputs[i], info->dtype, info->rank, shape };
      out[i] = one;
    }
    if (model_run_tensors(model, in, model_input_count(), out, model_output_count())) {
      puts(model_error(model));
      return 18;
    }
    if (model_run(model, sizes, inputs, again)) return 19;
    for (int32_t i = 0; i < model_output_count(); i++) {
      if (memcmp(outputs[i], again[i], bytes[i])) return 21;
      const int64_t rank = out[i].rank;
      fwrite(&rank, sizeof rank, 1, results);
      fwrite(shapes[MOST + i], sizeof(int64_t), (size_t)rank, results);
      fwrite(outputs[i], 1, bytes[i], results);
      free(outputs[i]), free(again[i]);
    }
    for (int32_t i = 0; i < model_input_count(); i++) free(in[i].data);
  }
  model_destroy(model);
  return fclose(results) ? 22 : 0;
}
