"""With this folder on PYTHONPATH and ATTNRATE_TRACE set, every stage lists there the files it opens or renames.

One line each: r or w, a tab, the path. Weights and vocabularies show too: the library opens them in Python before it
hands them to Rust and C++.
"""

import os
import sys

folder, stage = os.environ.get("ATTNRATE_TRACE"), os.environ.get("DVC_STAGE")
if folder and stage:
    installed = tuple(f"{prefix}/lib/python" for prefix in (sys.prefix, sys.base_prefix))  # thousands, of no stage
    log = os.open(os.path.join(folder, stage), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def trace(event, args):
        if event == "open" and isinstance(args[0], (str, bytes)):
            path, kind = args[0], "w" if (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else "r"
        elif event == "os.rename":
            path, kind = args[1], "w"
        else:
            return
        path = os.fsdecode(path)
        if not path.startswith(installed):
            os.write(log, f"{kind}\t{os.path.realpath(path)}\n".encode())

    sys.addaudithook(trace)
