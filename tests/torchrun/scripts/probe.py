"""probe.py DIRECTORY WHAT…: writes down what it was given, says a few lines, and ends as told.

WHAT is `exit N`, `kill N`, `raise`, `wait FILE` (until it exists), or nothing; `rank R:` before it means that only
this local rank does so, once all have written theirs down, and the others wait to be ended.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main(directory: str, *what: str) -> None:
    rank, local = os.environ["RANK"], os.environ["LOCAL_RANK"]
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    seen = {
        "environment": dict(os.environ),
        "arguments": sys.argv[1:],
        "directory": os.getcwd(),
        "leads session and group": os.getsid(0) == os.getpgid(0) == os.getpid(),
        "unbuffered": sys.stdout.write_through,
        "interpreter": sys.executable,
        "is main": __name__,
    }
    place = Path(directory, f"{rank}.{attempt}")
    place.with_suffix(".part").write_text(json.dumps(seen))
    for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
        for line in ("apple", "pear", "ünïcode\ttab"):
            stream.write(f"{name} {rank} {line}\n")  # at once: print() writes the end on its own
            stream.flush()
    place.with_suffix(".part").rename(f"{place}.json")
    if what and what[0] == "rank":
        if what[1].rstrip(":") != local:
            time.sleep(600)
        world = range(int(os.environ["WORLD_SIZE"]))
        while not all(Path(directory, f"{other}.{attempt}.json").exists() for other in world):
            time.sleep(0.02)
        what = what[2:]
    act(*what)


def act(verb: str = "", argument: str = "0", *_: str) -> None:
    if verb == "exit":
        sys.exit(int(argument))
    if verb == "kill":
        os.kill(os.getpid(), int(argument))
        signal.pause()
    if verb == "raise":
        from torch.distributed.elastic.multiprocessing.errors import record

        record(fails)(argument)
    if verb == "wait":
        while not Path(argument).exists():
            time.sleep(0.02)


def fails(text: str) -> None:
    raise LookupError(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
