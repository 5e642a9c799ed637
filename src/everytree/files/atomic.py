"""A file that is either the old one or the new one, whatever happens in between."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write the parts to a temporary file beside `path`, then give it that name; a failure leaves what was there.

    The contents are on the disk before the name is, and the name is before this returns: after a crash at any moment
    the name leads to all of the old contents or all of the new. A device or a pipe is written to as it is: there is
    nothing in it to keep, and a file in its place would be a surprise.
    """
    target = Path(os.path.realpath(path))  # a link keeps leading to where it led
    if target.exists() and not target.is_file() and not target.is_dir():
        with open(target, "wb") as stream:
            stream.writelines(parts)
        return
    mode = stat.S_IMODE(target.stat().st_mode) if target.is_file() else None
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")  # names have an end
    # Made by open itself, so that the user's mask decides who may read; tempfile's files are for the owner alone.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(temporary, flags, 0o666 if mode is None else mode)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None  # the user knows no other name
    try:
        with os.fdopen(number, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Names are on the disk too; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
