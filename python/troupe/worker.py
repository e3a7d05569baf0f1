"""What a worker runs when the entry point is a function: `worker.py DIRECTORY`.

DIRECTORY belongs to this user alone and to one launch. It holds `call.pickle`, written by troupe.launch on this
machine; the result goes beside it as `result-<generation>-<rank>.pickle`. Nothing else is ever unpickled.
Runs as a script, so it needs the standard library only.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import pickle
import signal
import stat
import sys
import threading
import time
import traceback
from multiprocessing import spawn
from typing import NoReturn

FLUSH_WITHIN = 10.0  # seconds, for files other than the standard streams
LOST_OUTPUT = 120  # the interpreter's own exit code when its standard streams cannot be flushed


def main(directory: str) -> None:
    del sys.path[0]  # this file's folder, where a module of ours could pass for one of the program's
    require_private(directory)
    try:
        result = called(directory)
        keep(directory, result)
    except Exception:
        record_exception()
        raise


def run_and_leave(directory: str) -> NoReturn:
    """Runs the function and ends the process as the interpreter would, but does not tear the interpreter down.

    A tear-down races with the threads of native libraries: a thread of a gloo group that is still open asks for the
    interpreter's lock while that goes away, and the C++ runtime aborts the process although the function has
    returned. Therefore, as in the children that `multiprocessing` forks: threads that are no daemons are waited for,
    exit handlers run, files are flushed, and the process is gone.
    """
    code, interrupted = 0, False
    try:
        main(directory)
    except SystemExit as e:
        code = exit_code(e)
    except BaseException as e:
        code, interrupted = 1, isinstance(e, KeyboardInterrupt)
        sys.excepthook(*sys.exc_info())
    try:
        threading._shutdown()
    finally:
        try:
            atexit._run_exitfuncs()
        finally:
            if not flushed():
                code = LOST_OUTPUT
            if interrupted:  # the interpreter, too, ends by the signal itself
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGINT)
            os._exit(code)


def exit_code(e: SystemExit) -> int:
    """As the interpreter takes `sys.exit`: a number, nothing, or a text for people."""
    if e.code is None:
        return 0
    if isinstance(e.code, int):
        return e.code & 0xFF
    print(e.code, file=sys.stderr)
    return 1


def flushed() -> bool:
    """Writes out what files hold back. Returns whether the standard streams took it."""
    # A tear-down closes every file that a module still refers to, with its buffer; the kernel closes it without.
    others = threading.Thread(target=flush_open_files, daemon=True)
    others.start()
    others.join(FLUSH_WITHIN)  # a file may be a pipe that is full, or be held by a thread that waits for one
    done = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (AttributeError, ValueError):
            pass  # an object of the program's own stands in place of the stream
        except OSError:
            done = False
    return done


def flush_open_files() -> None:
    kinds = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    standard = (sys.stdout, sys.stderr)
    for file in [each for each in gc.get_objects() if type(each) in kinds]:
        if not any(file in (stream, getattr(stream, "buffer", None)) for stream in standard):
            with contextlib.suppress(OSError, ValueError):
                file.flush()


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
    run_and_leave(sys.argv[1])
