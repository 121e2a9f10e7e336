"""Processes that tests start have the package libtl under the name triton too."""

import os

if os.environ.get("TRITON_PY"):
    import triton_stand_in  # noqa: F401
