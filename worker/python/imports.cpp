#include "worker/python/imports.hpp"

#include "worker/python/exchanged.hpp"

#include <cstring>

namespace troupe::worker {

namespace {

struct awaited {
  char name[64];
  object* action; ///< nullptr: free
};
awaited all_awaited[8];
void** exec_word = nullptr;

bool is_one_awaited() {
  for (const auto& each : all_awaited)
    if (each.action != nullptr)
      return true;
  return false;
}

/// The variables of exec(code, variables), where these are an ordinary dict.
object* variables_of(const arguments& with) {
  const auto count =
      reinterpret_cast<std::size_t>(with.word[2]) & (static_cast<std::size_t>(-1) >> 1);
  if (count < 2)
    return nullptr;
  object* const variables = static_cast<object* const*>(with.word[1])[1];
  return type_of(variables) == python.dict_type ? variables : nullptr;
}

/// Any code may be executed with this name in its variables; a module is known to all others.
object* module_of(object* name, object* variables) {
  const bool is_module = python.item(variables, python.module_spec) != nullptr;
  return is_module ? python.item(python.modules(), name) : nullptr;
}

void* executed(const observer&, const arguments& with, std::intptr_t, void* result) {
  object* const variables = result == nullptr ? nullptr : variables_of(with);
  object* const name = variables == nullptr ? nullptr : python.item(variables, python.module_name);
  if (name == nullptr || type_of(name) != python.text_type)
    return result;
  for (auto& each : all_awaited) {
    if (each.action == nullptr || python.compare(name, each.name) != 0)
      continue;
    object* const module = module_of(name, variables);
    if (module == nullptr)
      return result;
    object* const action = each.action;
    each.action = nullptr;
    python.hold(module);
    const bool goes_on = call_unseen(action, module);
    python.let_go(module);
    python.let_go(action);
    if (!is_one_awaited())
      change_back(exec_word);
    if (goes_on)
      return result;
    python.let_go(static_cast<object*>(result));
    return nullptr;
  }
  return result;
}

} // namespace

bool when_imported(object* exec, const char* name, object* action) {
  void** const word = call_word(exec);
  if (word == nullptr || std::strlen(name) >= sizeof all_awaited[0].name)
    return false;
  for (auto& each : all_awaited) {
    if (each.action != nullptr)
      continue;
    if (!is_one_awaited()) {
      observer by;
      by.after = executed;
      if (!exchange(word, by))
        return false;
      exec_word = word;
    }
    std::strcpy(each.name, name);
    python.hold(action);
    each.action = action;
    return true;
  }
  return false;
}

} // namespace troupe::worker
