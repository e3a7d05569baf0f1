#ifndef TROUPE_PYTHON_H
#define TROUPE_PYTHON_H

/* How hooks look on at what a script does without the script being able to notice it: addresses of C
 * functions are exchanged (exchanged.hpp), no object of Python is.
 *
 * This library is loaded into every Python process below a worker, before PyTorch is. So it needs
 * nothing but the C library: another C++ library that is loaded first would be PyTorch's as well.
 * Each function is called with the interpreter's lock held. Objects are borrowed unless the text
 * says that they are kept. Functions that answer int answer 1, or 0 where nothing was changed. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* First. `header`: `object.__basicsize__`; `minor`: of Python 3. */
int troupe_python_begin(size_t header, int minor);

/* Keeps `action`, a function of Python, and calls it with the module as soon as one of that name has been executed without
 * an error. `exec`: the builtin function, by which every module of Python is executed. Once: a later
 * execution of the same module is not reported. */
int troupe_python_when_imported(void* exec, const char* name, void* action);

/* The functions of troupe_worker.h to be called from now on. */
struct troupe_python_feeds {
  void (*observed)(uint32_t event);
  void (*phase_enter)(uint32_t kind, const char* name);
  void (*phase_leave)(uint32_t kind);
  void (*collective_enter)(int32_t communicator, uint32_t kind, uint64_t bytes);
  void (*collective_leave)(int32_t communicator);
  void (*named)(void);
};
void troupe_python_feed(const struct troupe_python_feeds* to);

/* Events of troupe_observed before and after each call; -1: none. A builtin function, or a method of
 * a builtin class. */
int troupe_python_moments(void* callable, int32_t before, int32_t after);
/* The same of each step of an iteration over an object of exactly this class; `without`: after a step
 * that yields nothing. */
int troupe_python_next(void* type, int32_t before, int32_t after, int32_t without);

/* A call of this enters a phase, leaves it, or both. A call that is to enter it alone and fails has not
 * entered it. The callable may also be a function of Python that is called with `*arguments`, as
 * decorators do: Python 3.11 calls others past any word that could be exchanged. */
enum { TROUPE_PYTHON_ENTERS = 1, TROUPE_PYTHON_LEAVES = 2 };
int troupe_python_phase(void* callable, uint32_t kind, int when);
/* The end of each object of exactly this class leaves the phase. `plain`: a class that is written in
 * Python. The interpreter's own function for the end of such objects looks at the word itself, so
 * classes that have it are refused. */
int troupe_python_end(void* type, void* plain, uint32_t kind);

/* Steps of PyTorch's optimizers: `values` is the method of OrderedDict, `before` and `after` are the
 * global hooks, which each step looks through first and last. */
int troupe_python_optimizers(void* values, void* before, void* after);

/* Keeps `tell`, and calls it, with None, before each call of this; `named` is called after it. Below `tell`
 * is the frame of the call. */
int troupe_python_groups(void* callable, void* tell);

/* Collectives by their functions: `position` is that of the argument `group`. A group's communicator;
 * 0: the default group's. */
int troupe_python_collective(void* callable, uint32_t kind, int position);
void troupe_python_group(const void* group, int32_t communicator);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
