#include "worker/python/interpreter.hpp"

#include <dlfcn.h>

#include <cstring>
#include <initializer_list>

namespace troupe::worker {

interpreter python;

namespace {

template<class Function>
bool find(Function& to, const char* name) {
  void* const found = ::dlsym(RTLD_DEFAULT, name);
  std::memcpy(&to, &found, sizeof found);
  return found != nullptr;
}

void* word_at(const void* base, std::size_t offset) {
  void* value = nullptr;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

void** place_at(void* base, std::size_t offset) {
  return reinterpret_cast<void**>(static_cast<char*>(base) + offset);
}

constexpr std::size_t word = sizeof(void*);

/// PyTypeObject: its words behind the header and the size that each variable object has.
enum class type_word : std::size_t { end = 3, vectorcall_offset = 4, next = 25 };
constexpr int slot_of_end = 52, slot_of_next = 63; // Py_tp_dealloc, Py_tp_iternext

std::size_t offset_in_type(type_word which) {
  return python.header + word + static_cast<std::size_t>(which) * word;
}

/// A class says by a function of the stable ABI what the word must hold.
void** word_in_type(object* type, type_word which, int slot) {
  void** const place = place_at(type, offset_in_type(which));
  return *place != nullptr && *place == python.slot(type, slot) ? place : nullptr;
}

/// Of the word in a function of Python, as its class says; 0 if that makes no sense.
std::size_t call_offset() {
  const auto offset = reinterpret_cast<std::size_t>(
      word_at(python.function_type, offset_in_type(type_word::vectorcall_offset)));
  return offset > 0 && offset < 64 * word ? offset : 0;
}

/// Before 3.11 there was no function for it: the count in the state of a thread, which nothing but
/// the interpreter's own calls of tracers changes.
constexpr std::size_t tracing_offset = 44;

void change_tracing(void (*change)(void*), int by) {
  void* const state = python.thread();
  if (change != nullptr)
    change(state);
  else if (python.minor < 11)
    *reinterpret_cast<int*>(static_cast<char*>(state) + tracing_offset) += by;
}

} // namespace

void know_usual_call(object* function) {
  if (type_of(function) == python.function_type && call_offset() != 0)
    python.usual_call = word_at(function, call_offset());
}

bool find_interpreter(std::size_t header, int minor) {
  python.header = header;
  python.minor = minor;
  find(python.weak_reference, "PyWeakref_GetRef");
  find(python.enter_tracing, "PyThreadState_EnterTracing");
  find(python.leave_tracing, "PyThreadState_LeaveTracing");
  const bool found =
      find(python.call, "PyObject_CallFunctionObjArgs") && find(python.hold, "Py_IncRef") &&
      find(python.let_go, "Py_DecRef") && find(python.intern, "PyUnicode_InternFromString") &&
      find(python.compare, "PyUnicode_CompareWithASCIIString") &&
      find(python.item, "PyDict_GetItem") && find(python.modules, "PyImport_GetModuleDict") &&
      find(python.tuple_size, "PyTuple_Size") && find(python.tuple_item, "PyTuple_GetItem") &&
      find(python.weak, "PyWeakref_NewRef") &&
      (find(python.weak_object, "PyWeakref_GetObject") || python.weak_reference != nullptr) &&
      find(python.exception_matches, "PyErr_ExceptionMatches") &&
      find(python.fetch, "PyErr_Fetch") && find(python.restore, "PyErr_Restore") &&
      find(python.slot, "PyType_GetSlot") && find(python.thread, "PyThreadState_Get") &&
      find(python.any_exception, "PyExc_Exception") && find(python.none, "_Py_NoneStruct") &&
      find(python.dict_type, "PyDict_Type") && find(python.text_type, "PyUnicode_Type") &&
      find(python.function_type, "PyFunction_Type") &&
      find(python.builtin_type, "PyCFunction_Type") &&
      find(python.method_type, "PyMethodDescr_Type");
  if (!found)
    return false;
  python.module_name = python.intern("__name__");
  python.module_spec = python.intern("__spec__");
  // That the header is as long as said, and ends with the type.
  return python.module_name != nullptr && type_of(python.module_name) == python.text_type &&
         type_of(reinterpret_cast<object*>(python.function_type)) ==
             type_of(reinterpret_cast<object*>(python.dict_type));
}

object* type_of(object* of) {
  return static_cast<object*>(word_at(of, python.header - word));
}

void** call_word(object* callable) {
  object* const type = type_of(callable);
  // PyMethodDef: a name, the function, …
  if (type == python.builtin_type)
    return place_at(word_at(callable, python.header), word);
  if (type == python.method_type) // behind its class, its name and its qualified name
    return place_at(word_at(callable, python.header + 3 * word), word);
  if (type != python.function_type || python.usual_call == nullptr)
    return nullptr;
  void** const place = place_at(callable, call_offset());
  return *place == python.usual_call ? place : nullptr;
}

void** next_word(object* type) {
  return word_in_type(type, type_word::next, slot_of_next);
}

void** end_word(object* type) {
  return word_in_type(type, type_word::end, slot_of_end);
}

bool call_unseen(object* callable, object* argument) {
  change_tracing(python.enter_tracing, 1);
  object* const result = python.call(callable, argument, nullptr);
  change_tracing(python.leave_tracing, -1);
  if (result != nullptr) {
    python.let_go(result);
    return true;
  }
  const bool is_error = python.exception_matches(*python.any_exception) != 0;
  object *type = nullptr, *value = nullptr, *trace = nullptr;
  python.fetch(&type, &value, &trace);
  if (trace != nullptr)
    python.let_go(trace);
  if (!is_error) {
    python.restore(type, value, nullptr);
    return false;
  }
  for (object* each : {type, value})
    if (each != nullptr)
      python.let_go(each);
  return true;
}

} // namespace troupe::worker
