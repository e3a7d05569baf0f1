"""Python's frames of every thread on a signal, where the system does not let another process read them.

The launcher gives a descriptor (TROUPE_STACKS_FD) and a signal (TROUPE_STACKS_SIGNAL). The handler is the interpreter's own
`faulthandler`: it takes no lock of the interpreter. A signal for which the script has a handler is not taken.
"""

from __future__ import annotations

import os
import signal

from . import native


def prepare() -> None:
    file, number = os.environ.get("TROUPE_STACKS_FD"), os.environ.get("TROUPE_STACKS_SIGNAL")
    if not file or not number:
        return
    wanted = int(number)
    if not signal.SIGRTMIN <= wanted <= signal.SIGRTMAX or signal.getsignal(wanted) != signal.SIG_DFL:
        return
    import faulthandler

    faulthandler.register(wanted, file=int(file), all_threads=True, chain=False)
    native.library.troupe_stacks_by(wanted)
