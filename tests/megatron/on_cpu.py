"""Runs a script of Megatron's where there is no CUDA: on_cpu.py SCRIPT WORDS…"""

from __future__ import annotations

import runpy
import sys

from tiny_gpt import without_cuda

if __name__ == "__main__":
    without_cuda()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
