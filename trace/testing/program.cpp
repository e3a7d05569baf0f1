#include <dlfcn.h>

#include <cstdio>

// trace_program LIBRARY SCENARIO: loads the library as Python loads an extension, and runs one.
int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "trace_program LIBRARY SCENARIO\n");
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  auto* const run = reinterpret_cast<int (*)(const char*)>(dlsym(library, "run_scenario"));
  return run ? run(argv[2]) : 2;
}
