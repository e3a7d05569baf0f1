"""Begins the hooks of Troupe in a training process, then is as if it had never been there.

The launcher puts this file's folder first on PYTHONPATH. Python imports `sitecustomize` at its start: here it waits for torch to
be imported, takes its folder off the path, and runs the `sitecustomize` that Python would have found without it. Every Python
process below a worker comes by here, so this is one small file that imports nothing, and what fails is not told to a script.
"""

import sys


class Finder:
    """Finds modules as all others on sys.meta_path do, and acts after one of its own was imported."""

    def __init__(self):
        self.actions = {}

    def when_imported(self, name, action):
        """Now, if it is imported already. `action` gets the module, and raises nothing."""
        module = sys.modules.get(name)
        if module is not None:
            action(module)
            return
        self.actions[name] = action
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                self.watch(spec.loader, name)
                return spec
        return None

    def watch(self, loader, name):
        run = getattr(loader, "exec_module", None)
        if run is None:
            return

        def exec_module(module):
            del loader.exec_module
            run(module)
            action = self.actions.pop(name, None)
            if not self.actions and self in sys.meta_path:
                sys.meta_path.remove(self)
            if action is not None:
                action(module)

        try:
            loader.exec_module = exec_module  # of this loader alone, and until it has run
        except AttributeError:
            pass


def failed(error):
    import os

    if os.environ.get("TROUPE_HOOKS") == "debug":
        sys.stderr.write(f"troupe: no hooks: {type(error).__name__}: {error}\n")


def begin():
    import os  # which Python has imported already

    folder = __file__.rpartition("/")[0]
    sys.path[:] = [each for each in sys.path if each != folder]
    if os.environ.get("TROUPE_HOOKS", "0") in ("", "0"):
        return
    finder = Finder()

    def after_torch(torch):
        try:
            sys.path.insert(0, folder)
            try:
                import _troupe_hooks
            finally:
                sys.path.remove(folder)
            _troupe_hooks.begin(torch, finder, folder)
        except Exception as e:
            failed(e)

    finder.when_imported("torch", after_torch)


try:
    begin()
except Exception as e:
    failed(e)
own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401 - the next one on the path
except ImportError as e:
    if e.name != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = own
