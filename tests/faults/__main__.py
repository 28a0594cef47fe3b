"""`python -m faults`: run by `cargo xtask faults`, with the options of `run.py`."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

# Short: the path of a socket has a bound. Outside the repository: a build must not touch what runs here.
folder = Path(tempfile.mkdtemp(prefix="lgf-"))
# The binary is also the server, which is pinned by its digest: it must stay the same for the whole run.
os.environ["LYCHGATE_BIN"] = str(shutil.copy2(os.environ["LYCHGATE_BIN"], folder / "lychgate"))

from .run import main  # noqa: E402

status = 0
try:
    status = main(folder)
finally:
    # What a violation was found in is kept.
    if status != 1:
        shutil.rmtree(folder)
sys.exit(status)
