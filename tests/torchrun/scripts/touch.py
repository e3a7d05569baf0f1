"""A worker that needs every variable of the contract, and leaves a file named after its rank."""

import argparse
import os
import sys
from pathlib import Path

CONTRACT = """RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK ROLE_NAME ROLE_WORLD_SIZE
MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RUN_ID
TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_ERROR_FILE TORCH_NCCL_ASYNC_ERROR_HANDLING OMP_NUM_THREADS"""

parser = argparse.ArgumentParser()
parser.add_argument("--touch-file-dir")
parser.add_argument("--fail", action="store_true")
parser.add_argument("--local-rank", type=int)
options = parser.parse_args()

print("creating", os.environ["RANK"])
missing = [name for name in CONTRACT.split() if name not in os.environ]
assert not missing, missing
assert os.environ["SENTINEL_OF_THE_PARENT"] == "seen"
if options.local_rank is not None:
    assert options.local_rank == int(os.environ["LOCAL_RANK"])
if options.fail:
    sys.exit("told to fail")
if options.touch_file_dir:
    Path(options.touch_file_dir, os.environ["RANK"]).touch()
