"""Begins the hooks of Troupe in a training process, then is as if it had never been there.

The launcher puts this file's folder first on PYTHONPATH. Python imports `sitecustomize` at its start: here the folder is taken off
the path, and the native library is asked to wait until torch is imported: no finder and no loader of ours is there, so nothing is
to be seen of it. Then the `sitecustomize` that Python would have found without this one runs. Every Python process below a worker
comes by here, so this is one small file that imports next to nothing, and what fails is not told to a script.
"""

import sys


def failed(error):
    import os

    if os.environ.get("TROUPE_HOOKS") == "debug":
        sys.stderr.write(f"troupe: no hooks: {type(error).__name__}: {error}\n")


def library_in(folder):
    """The functions of worker/python/troupe_python.h. `ctypes` would take three times as long to import as what it is made of."""
    import _ctypes

    class Object(_ctypes._SimpleCData):
        _type_ = "O"

    class Text(_ctypes._SimpleCData):
        _type_ = "z"

    class Size(_ctypes._SimpleCData):
        _type_ = "L"

    class Answer(_ctypes._SimpleCData):
        _type_ = "i"

    class Function(_ctypes.CFuncPtr):
        _flags_ = 1 | 4  # C's convention, and the interpreter's lock stays held
        _restype_ = Answer

    library = _ctypes.dlopen(f"{folder}/libtroupe_python.so", 0)

    def function(name, *arguments):
        found = Function(_ctypes.dlsym(library, name))
        found.argtypes = arguments
        return found

    begin = function("troupe_python_begin", Size, Answer)
    if not begin(object.__basicsize__, sys.version_info[1]):
        raise RuntimeError("the library knows no such interpreter")
    return function("troupe_python_when_imported", Object, Text, Object)


def begin():
    import os  # which Python has imported already

    folder = __file__.rpartition("/")[0]
    sys.path[:] = [each for each in sys.path if each != folder]
    sys.path_importer_cache.pop(folder, None)
    if os.environ.get("TROUPE_HOOKS", "0") in ("", "0"):
        return
    wait = library_in(folder.rpartition("/")[0])

    def when_imported(name, action):
        """Now, if it is imported already. `action` gets the module, and raises nothing."""
        module = sys.modules.get(name)
        if module is not None:
            action(module)
        elif not wait(exec, name.encode(), action):
            raise RuntimeError(f"an import of {name} cannot be seen")

    def after_torch(torch):
        try:
            from importlib.machinery import PathFinder
            from importlib.util import module_from_spec

            spec = PathFinder.find_spec("_troupe_hooks", [folder])
            hooks = sys.modules[spec.name] = module_from_spec(spec)
            spec.loader.exec_module(hooks)
            hooks.begin(torch, when_imported, folder)
        except Exception as e:
            failed(e)
        finally:
            for each in (folder, f"{folder}/_troupe_hooks"):
                sys.path_importer_cache.pop(each, None)

    when_imported("torch", after_torch)


try:
    begin()
except Exception as e:
    failed(e)
# The next one on the path. Without one it is for Python to find that there is none, and not for this module to be in its place.
del sys.modules["sitecustomize"]
import sitecustomize  # noqa: E402, F401
