"""A worker that a debugger follows: `debugged.py FILE -u [-m MODULE | -c CODE | SCRIPT] ARGUMENTS…`.

FILE is from `debugging.py`: how the debugger would start each of the three. Nothing of the debugger is in the command line,
and nothing of ours in what the worker sees. Runs as a script, so it needs the standard library only.
"""

from __future__ import annotations

import json
import os
import runpy
import sys


def main(file: str, given: list[str]) -> None:
    del sys.path[0]  # this file's folder, where a module of ours could pass for one of the program's
    with open(file, encoding="utf-8") as told:
        ways = json.load(told)
    os.environ["PYTHON_EXEC"] = sys.executable
    own = given[1:]  # -u is done
    way = own.pop(0) if own[0] in ways else ""
    # A script of the debugger's with its options, or -c and code: the worker's own is to follow at once.
    *first, last = ways[way]
    command = [*first, last + own[0], *own[1:]]
    if way == "-c":
        sys.argv[:] = [command[0], *command[2:]]
        exec(compile(command[1], "<string>", "exec"), sys.modules["__main__"].__dict__)
    else:
        sys.argv[:] = command
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
