"""DLRover's names on Troupe: what of it scripts import. An import of any other says what to do instead.

Raises ImportError if DLRover itself is installed, unless TROUPE_DLROVER_NAMES=1.
"""

import sys

from troupe_dlrover_names import objection
from troupe_dlrover_names.missing import Finder, names_of

if _reason := objection():
    raise ImportError(_reason, name=__name__)
if not any(isinstance(finder, Finder) for finder in sys.meta_path):
    sys.meta_path.append(Finder())

__getattr__ = names_of(__name__)
