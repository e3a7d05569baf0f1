"""Acts after a module was imported, if it ever is. Untyped, as `typing` would be most of what it costs a small process."""

import sys


class Finder:
    """Finds modules as all others on sys.meta_path do, and has the loader say when one has run."""

    def __init__(self):
        self.actions = {}

    def find_spec(self, name, path=None, target=None):
        action = self.actions.get(name)
        if action is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                self.watch(spec, name, action)
                return spec
        return None

    def watch(self, spec, name, action):
        loader = spec.loader
        run = getattr(loader, "exec_module", None)
        if run is None:
            return

        def exec_module(module):
            del loader.exec_module
            run(module)
            if self.actions.pop(name, None) is not None:
                act(action, module)
            if not self.actions and self in sys.meta_path:
                sys.meta_path.remove(self)

        try:
            loader.exec_module = exec_module  # of this loader alone, and until it has run
        except AttributeError:
            pass


finder = Finder()


def when_imported(name, action):
    """Now, if it is imported already."""
    module = sys.modules.get(name)
    if module is not None:
        act(action, module)
        return
    finder.actions[name] = action
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)


def act(action, module):
    from . import attempt

    attempt(action, module)
