"""is_launched.py FILE: writes whether torch believes that a launcher started this process."""

import sys
from pathlib import Path

import torch.distributed as dist

Path(sys.argv[1]).write_text(str(dist.is_torchelastic_launched()))
