#pragma once

#include <cstddef>
#include <cstdint>

/// The interpreter that this process runs, without its headers: one library serves Python 3.8 to
/// 3.14. Its functions are looked up by name in the process; of its objects only the few words are
/// read whose places did not change in these versions, counted from the size of an object's header,
/// which the interpreter itself says.
namespace troupe::worker {

struct object; ///< PyObject

struct interpreter {
  object* (*call)(object*, ...) = nullptr; ///< PyObject_CallFunctionObjArgs
  void (*hold)(object*) = nullptr;         ///< Py_IncRef
  void (*let_go)(object*) = nullptr;       ///< Py_DecRef
  object* (*intern)(const char*) = nullptr;
  int (*compare)(object*, const char*) = nullptr; ///< PyUnicode_CompareWithASCIIString
  object* (*item)(object*, object*) = nullptr;    ///< PyDict_GetItem: borrowed, no error is set
  object* (*modules)() = nullptr;
  std::ptrdiff_t (*tuple_size)(object*) = nullptr;
  object* (*tuple_item)(object*, std::ptrdiff_t) = nullptr;
  object* (*weak)(object*, object*) = nullptr;        ///< PyWeakref_NewRef
  object* (*weak_object)(object*) = nullptr;          ///< PyWeakref_GetObject: borrowed
  int (*weak_reference)(object*, object**) = nullptr; ///< PyWeakref_GetRef, from 3.13 on
  int (*exception_matches)(object*) = nullptr;
  void (*fetch)(object**, object**, object**) = nullptr;
  void (*restore)(object*, object*, object*) = nullptr;
  void* (*slot)(object*, int) = nullptr;                                     ///< PyType_GetSlot
  void* (*thread)() = nullptr;                                               ///< PyThreadState_Get
  void (*enter_tracing)(void*) = nullptr, (*leave_tracing)(void*) = nullptr; ///< from 3.11 on
  object** any_exception = nullptr;                                          ///< PyExc_Exception
  object *none = nullptr, *dict_type = nullptr, *text_type = nullptr, *function_type = nullptr,
         *builtin_type = nullptr, *method_type = nullptr;
  object *module_name = nullptr, *module_spec = nullptr; ///< "__name__", "__spec__"
  void* usual_call = nullptr; ///< of a function of Python that nothing has changed
  std::size_t header = 0;     ///< of an object: its counts and its type
  int minor = 0;              ///< of Python 3
};

/// Of this process. Nothing may be asked of it before find_interpreter.
extern interpreter python;
bool find_interpreter(std::size_t header, int minor);

/// From any function of Python that is new: all others are called in the same way.
void know_usual_call(object* function);

object* type_of(object* of);

/// The word through which the interpreter calls this object, whatever calls it: of a builtin
/// function, a method of a builtin type, or a function of Python. nullptr for all others.
void** call_word(object* callable);
/// The word of a class for iteration's next step, or for an object's end; nullptr if it is not
/// where it is expected.
void** next_word(object* type);
void** end_word(object* type);

/// Calls `callable(argument)` in such a way that no tracer and no profiler of the script sees it.
/// False if it was interrupted: then an error is set that must be passed on, which holds no frame.
/// All other errors are dropped.
bool call_unseen(object* callable, object* argument);

} // namespace troupe::worker
