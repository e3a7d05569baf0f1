#!/usr/bin/env python3
"""Fails when a program of ours loads CAF's networking: one packet would end it (docs/adr/0003-no-caf-networking.md).

Usage: check_linked.py PROGRAM…
"""

import re
import subprocess
import sys

FORBIDDEN = re.compile(r"libcaf_(?:io|openssl)\S*")


def main(programs: list[str]) -> int:
    if not programs:
        print("no program was given")
        return 1
    bad = 0
    for program in programs:
        loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in sorted(set(FORBIDDEN.findall(loaded))):
            print(f"{program} loads {library}")
            bad += 1
    print(f"{len(programs)} programs, {bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
