"""What becomes of interpreters that are started below a worker: by flags, with modules of the user's own, with other torches.

These are small programs: a torch of a few lines is imported well, late, by a thread, again, or fails half-way.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from observing import case, plain

# Of a start with hooks `_ctypes` may be there (which needs a codec in Python's development mode), and what is ours. By -S the folder
# of hooks stays where PYTHONPATH has it, as nothing is run that could take it away.
SHOWS = """
import sys
ours = ("_ctypes", "_troupe_hooks", "encodings.ascii")
print([each for each in sys.path if each and not (sys.flags.no_site and each.endswith("/libexec/troupe/hooks"))])
print([type(each).__name__ for each in sys.meta_path], [type(each).__name__ for each in sys.path_hooks])
print(sorted(name for name in sys.modules if not name.startswith(ours)))
print(getattr(sys.modules.get("sitecustomize"), "mark", "no mark"), sys.gettrace(), sys.getprofile(), sys.flags, sys._xoptions)
print(exec, "ctypes" in sys.modules, sorted(set(sys.path_importer_cache) - set(sys.path)))
"""
FLAGS = ["-I", "-S", "-E", "-s", "-B", "-O", "-OO", "-b", "-W error", "-X dev", "-X utf8", "-X faulthandler", "-P"]
# Own modules by name, and then what is run.
OWN = {
    "a sitecustomize": ({"sitecustomize.py": "mark = 'own'\n"}, SHOWS),
    "a package for it": ({"sitecustomize/__init__.py": "mark = 'package'\n"}, SHOWS),
    "one that fails": ({"sitecustomize.py": "raise RuntimeError('own')\n"}, SHOWS),
    "one that needs what is not there": ({"sitecustomize.py": "import not_there\n"}, SHOWS),
    "one that ends": ({"sitecustomize.py": "import sys\nsys.exit(3)\n"}, SHOWS),
    "one that warns": ({"sitecustomize.py": "import warnings\nwarnings.warn('own')\n"}, SHOWS),
    "one that is imported again": ({"sitecustomize.py": "print('made')\n"}, "import sitecustomize; print(sitecustomize.__name__)"),
    "none, asked for": ({}, "import importlib.util as u; print(u.find_spec('not_there'))"),
    "a usercustomize": ({"usercustomize.py": "print('user')\n"}, SHOWS),
    "a start file": ({"start.py": "print('start')\n"}, SHOWS),
}
GOOD = {"torch/__init__.py": "from . import nn\nmade = globals().get('made', 0) + 1\n__version__ = '9'\n", "torch/nn.py": "x = 1\n"}
SHOWS_TORCH = """
import sys
torch = sys.modules.get("torch")
print(torch and (torch.made, torch.nn.x, type(torch.__loader__).__name__, sorted(vars(torch.__loader__)), torch.__spec__.name))
print([type(each).__name__ for each in sys.meta_path], exec)
"""
TRACED = """
import sys, collections
seen = collections.Counter()
def trace(frame, event, argument):
    seen[frame.f_code.co_filename.rsplit("/", 2)[-1], frame.f_code.co_name, event] += 1
    return trace
"""
TORCHES = {
    "twice": (GOOD, "import torch, torch.nn\nimport torch" + SHOWS_TORCH),
    "late": (GOOD, "import json, random\ndef f():\n import torch\nf()" + SHOWS_TORCH),
    "by a thread": (GOOD, "import threading, importlib\nt = threading.Thread(target=lambda: importlib.import_module('torch'))\nt.start(); t.join()" + SHOWS_TORCH),
    "reloaded": (GOOD, "import torch, importlib\nimportlib.reload(torch)" + SHOWS_TORCH),
    "imported anew": (GOOD, "import sys, torch\ndel sys.modules['torch']\nimport torch" + SHOWS_TORCH),
    "missing": ({}, "import torch"),
    "a part is missing": ({"torch/__init__.py": "from . import not_there\n"}, "import torch.nn"),
    "fails half-way": ({"torch/__init__.py": "from . import nn\nraise RuntimeError('half')\n", "torch/nn.py": ""}, "import torch"),
    "fails, by importlib": ({"torch/__init__.py": "1 / 0\n"}, "import importlib\nimportlib.import_module('torch')"),
    "fails, then not": ({"torch/__init__.py": "import sys\nif not hasattr(sys, 'again'):\n sys.again = 1\n raise ImportError('first')\nfrom . import nn\nmade = 1\n", "torch/nn.py": "x = 1\n"}, "try:\n import torch\nexcept ImportError as e: print(e)\nimport torch" + SHOWS_TORCH),
    "does not compile": ({"torch/__init__.py": "def\n"}, "import torch"),
    "ends": ({"torch/__init__.py": "import sys\nsys.exit(4)\n"}, "import torch"),
    "warns": ({"torch/__init__.py": "import warnings\nwarnings.warn('own', stacklevel=2)\n"}, "import torch"),
    "a namespace": ({"torch/nn.py": "x = 1\n"}, "import torch.nn\nprint(torch.nn.x)"),
    "a finder fails": (GOOD, "import sys\nclass F:\n @staticmethod\n def find_spec(n, p=None, t=None):\n  raise KeyError(n)\nsys.meta_path.insert(0, F)\nimport torch"),
    "traced": (GOOD, TRACED + "sys.settrace(trace)\nimport torch\nsys.settrace(None)\nprint(sorted(seen.items()))"),
    "profiled": (GOOD, TRACED + "sys.setprofile(trace)\nimport torch\nsys.setprofile(None)\nprint(sorted(seen.items()))"),
    "code of that name": (GOOD, "exec('made = 0', {'__name__': 'torch'})\nimport torch" + SHOWS_TORCH),
}  # fmt: skip


def started(files: dict[str, str], program: str, flags: str = "", **environment: str) -> list[object]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_text(text)
        script = Path(folder) / "program.py"
        script.write_text(textwrap.dedent(program))
        before = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        run = subprocess.run(
            [sys.executable, *flags.split(), str(script)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*before, folder]), **environment},
            capture_output=True,
            text=True,
        )
        return [run.returncode, *(plain(text.replace(folder, "FOLDER")) for text in (run.stdout, run.stderr))]


@case
def flags() -> dict[str, list[object]]:
    return {each: started({}, SHOWS, each) for each in FLAGS if each != "-P" or sys.version_info >= (3, 11)}


@case
def modules_of_the_user() -> dict[str, list[object]]:
    seen = {name: started(files, program, PYTHONSTARTUP="start.py") for name, (files, program) in OWN.items()}
    # Where it keeps Python from starting, Python shows which module has asked for it: the one frame that can be seen.
    del seen["one that ends"][2]
    return seen


@case
def torches() -> dict[str, list[object]]:
    return {name: started(files, program) for name, (files, program) in TORCHES.items()}
