"""One rank that lets nothing untried by which a script could notice the hooks, and writes what it has seen to a file.

    observe.py FILE [PAGE_PROBE]     with the launcher's page, what the hooks have seen, too: else an equal file would prove nothing
"""

from __future__ import annotations

import json
import os
import subprocess
import sys


def page(probe: str) -> dict:
    number = int(os.environ["TROUPE_PROGRESS_FD"])
    return json.loads(subprocess.run([probe, str(number)], pass_fds=[number], capture_output=True, check=True).stdout)


def main() -> None:
    import observing
    import starting  # noqa: F401 - before torch is imported, since hooks are for the first process that has it

    seen = observing.observed()
    observing.CASES.clear()
    import torch.distributed as dist
    import training  # noqa: F401

    dist.init_process_group("gloo")
    seen.update(observing.observed())
    dist.destroy_process_group()
    with open(sys.argv[1], "w") as file:
        json.dump(seen, file, indent=1, sort_keys=True)
    if len(sys.argv) > 2:
        with open(f"{sys.argv[1]}.page", "w") as file:
            json.dump(page(sys.argv[2]), file)


if __name__ == "__main__":
    main()
