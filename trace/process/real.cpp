#include "trace/process/real.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstring>

namespace troupe::trace {

namespace {

constexpr std::size_t path_max = 4096;
const char mark_of_this_library = 0;

struct search_by_name {
  const char* begins;
  char path[path_max];
  bool found;
};

int look_at(dl_phdr_info* object, std::size_t, void* into) {
  auto& search = *static_cast<search_by_name*>(into);
  const char* slash = std::strrchr(object->dlpi_name, '/');
  const char* file = slash ? slash + 1 : object->dlpi_name;
  if (std::strncmp(file, search.begins, std::strlen(search.begins)) != 0 ||
      std::strlen(object->dlpi_name) >= path_max)
    return 0;
  std::strcpy(search.path, object->dlpi_name);
  search.found = true;
  return 1;
}

/// The symbol as the object at this path sees it; an object that is not loaded is not opened.
void* symbol_in(const char* path, const char* name) {
  void* object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!object)
    return nullptr;
  void* found = dlsym(object, name);
  dlclose(object);
  return found;
}

void* symbol_of_caller(const void* caller, const char* name) {
  Dl_info about{};
  if (!caller || dladdr(caller, &about) == 0 || !about.dli_fname)
    return nullptr;
  return symbol_in(about.dli_fname, name);
}

bool is_ours(const void* address) {
  Dl_info found{}, own{};
  return dladdr(address, &found) != 0 && dladdr(&mark_of_this_library, &own) != 0 &&
         found.dli_fbase == own.dli_fbase;
}

} // namespace

void* symbol_in_loaded(const char* library, const char* name) {
  search_by_name search{library, {}, false};
  // The callback runs under the loader's lock, so it opens nothing itself.
  dl_iterate_phdr(look_at, &search);
  return search.found ? symbol_in(search.path, name) : nullptr;
}

void* real_function::search(const void* caller) {
  void* found = dlsym(RTLD_NEXT, name_);
  if (!found || is_ours(found))
    found = symbol_of_caller(caller, name_);
  if (!found || is_ours(found))
    found = symbol_in_loaded(library_, name_);
  // The program's own dlerror() must not tell of these searches.
  dlerror();
  if (!found || is_ours(found))
    return nullptr;
  found_.store(found, std::memory_order_release);
  return found;
}

} // namespace troupe::trace
