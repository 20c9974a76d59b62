"""Files of macros, expanded by the package xacro, which evaluates their expressions. The only file that imports it."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from ..errors import FileError

SHOWN = 300  # characters of xacro's message


def expand_macros(path: str) -> bytes:
    """The file without macros, as XML."""
    try:
        import xacro  # pyright: ignore[reportMissingImports]
    except ImportError:
        fix = "pip install xacro, or give the file that `xacro FILE` writes"
        raise FileError(path, f"macros are expanded by the package xacro, which is not installed: {fix}") from None
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):  # its warnings
            document: Any = xacro.process_file(path)
            return document.toxml().encode()
    except (Exception, SystemExit) as error:  # macros may raise anything
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:SHOWN]
        fix = "give the file that `xacro FILE` writes where its packages and arguments are known"
        raise FileError(path, f"xacro cannot expand it ({cause}): {fix}") from error
