"""What a worker runs when the entry point is a function: `worker.py DIRECTORY`.

DIRECTORY belongs to this user alone and to one launch. It holds `call.pickle`, written by troupe.launch on this
machine; the result goes beside it as `result-<generation>-<rank>.pickle`. Nothing else is ever unpickled.
Runs as a script, so it needs the standard library only.
"""

from __future__ import annotations

import json
import os
import pickle
import stat
import sys
import time
import traceback
from multiprocessing import spawn


def main(directory: str) -> None:
    del sys.path[0]  # this file's folder, where a module of ours could pass for somebody else's
    require_private(directory)
    try:
        result = called(directory)
        keep(directory, result)
    except Exception:
        record_exception()
        raise


def require_private(directory: str) -> None:
    seen = os.lstat(directory)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o077:
        sys.exit(f"{directory} is open to others than its user; nothing is read from it")


def called(directory: str) -> object:
    with open(os.path.join(directory, "call.pickle"), "rb") as file:
        preparation = pickle.load(file)
        # As for a process that `multiprocessing` spawned: import paths, arguments, and __main__ itself.
        spawn.prepare(preparation)
        function, arguments = pickle.load(file)
    try:
        return function(*arguments)
    except SystemExit as e:
        if e.code not in (0, None):
            raise
        return None


def keep(directory: str, result: object) -> None:
    """Whole or not at all: the reader may come when this process was killed."""
    generation = int(os.environ["TROUPE_GENERATION"])
    name = os.path.join(directory, f"result-{generation}-{os.environ['RANK']}.pickle")
    with open(name + ".part", "wb") as file:
        pickle.dump(result, file, protocol=pickle.HIGHEST_PROTOCOL)
    os.replace(name + ".part", name)


def record_exception() -> None:
    """The error file of torch's `@record`, which wins if the function was recorded itself."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or os.path.exists(path):
        return
    kind, error, _ = sys.exc_info()
    content = {
        "message": {
            "message": f"{kind.__name__}: {error}",
            "extraInfo": {
                "py_callstack": traceback.format_exc(),
                "timestamp": str(int(time.time())),
            },
        }
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


if __name__ == "__main__":
    main(sys.argv[1])
