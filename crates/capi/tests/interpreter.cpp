// A C++ program that uses the interface as C++ would, without native code; tests/program.rs compiles and runs it.
// Arguments: the archive, and an input and PyTorch's result as raw floats.
#include "frazil.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

void ok(FrazilError *error) {
  if (!error) return;
  std::runtime_error raised(frazil_error_message(error));
  frazil_error_free(error);
  throw raised;
}

template <auto free> struct Free {
  template <class T> void operator()(T *handle) const { free(handle); }
};
template <class T, auto free> using Handle = std::unique_ptr<T, Free<free>>;

std::vector<float> read(const char *path, std::size_t count) {
  std::vector<float> floats(count);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char *>(floats.data()), static_cast<std::streamsize>(count * sizeof(float)))) throw std::runtime_error(path);
  return floats;
}

void run(char **arguments) {
  FrazilSession *session;
  ok(frazil_session_new(&session));
  Handle<FrazilSession, frazil_session_free> owned_session(session);
  FrazilModel *model;
  ok(frazil_model_load(session, arguments[1], &model));
  Handle<FrazilModel, frazil_model_free> owned_model(model);
  FrazilOptions *options = frazil_options_new();
  Handle<FrazilOptions, frazil_options_free> owned_options(options);
  ok(frazil_options_set_interpret(options, true));
  FrazilEngine *engine;
  ok(frazil_engine_new(model, options, &engine));
  Handle<FrazilEngine, frazil_engine_free> owned_engine(engine);

  std::vector<float> image = read(arguments[2], 3 * 32 * 32), expected = read(arguments[3], 10), scores(10);
  const std::int64_t sizes[] = {1, 3, 32, 32};
  FrazilTensor *input;
  ok(frazil_tensor_new(FRAZIL_DTYPE_FLOAT32, sizes, 4, image.data(), image.size() * sizeof(float), &input));
  Handle<FrazilTensor, frazil_tensor_free> owned_input(input);
  FrazilValue *argument;
  ok(frazil_value_tensor(input, &argument));
  Handle<FrazilValue, frazil_value_free> owned_argument(argument);
  const FrazilValue *given[] = {argument};
  FrazilValue *result;
  ok(frazil_engine_call(engine, "forward", given, 1, &result));
  Handle<FrazilValue, frazil_value_free> owned_result(result);
  FrazilTensor *output;
  ok(frazil_value_as_tensor(result, &output));
  Handle<FrazilTensor, frazil_tensor_free> owned_output(output);
  ok(frazil_tensor_read(output, scores.data(), scores.size() * sizeof(float)));
  for (std::size_t i = 0; i < scores.size(); i++)
    if (std::fabs(scores[i] - expected[i]) > 1e-4f + 1e-4f * std::fabs(expected[i])) throw std::runtime_error("another result than PyTorch's");
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 4) return 2;
  try {
    run(arguments);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::puts("all is as it should be");
}
