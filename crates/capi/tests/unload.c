/* Loads and unloads the library again and again; tests/program.rs compiles and runs it. Arguments: the library, and an archive. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <unistd.h>

static long resident_kilobytes(void) {
  long size, resident;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
  fclose(file);
  return resident * 4;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  long before = 0;
  for (int round = 0; round < 100; round++) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    FrazilError *(*new_session)(FrazilSession **);
    FrazilError *(*load)(const FrazilSession *, const char *, FrazilModel **);
    void (*free_model)(FrazilModel *);
    void (*free_session)(FrazilSession *);
    *(void **)&new_session = dlsym(library, "frazil_session_new");
    *(void **)&load = dlsym(library, "frazil_model_load");
    *(void **)&free_model = dlsym(library, "frazil_model_free");
    *(void **)&free_session = dlsym(library, "frazil_session_free");
    CHECK(new_session && load && free_model && free_session);
    FrazilSession *session;
    FrazilModel *model;
    CHECK(!new_session(&session));
    CHECK(!load(session, argv[2], &model));
    free_model(model);
    free_session(session);
    CHECK(!dlclose(library));
    if (round == 30) before = resident_kilobytes();
  }
  usleep(100000);
  CHECK(resident_kilobytes() <= before + 4096);
  puts("all is as it should be");
  return 0;
}
