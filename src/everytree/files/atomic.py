"""A file that is either the old one or the new one, whatever happens in between."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from everytree.files.locking import lock_or_skip


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write the parts to a temporary file beside `path`, then rename it; a failure leaves the old file in place.

    The contents are on the disk before the name is, and the name is before this returns: after a crash at any moment
    the name leads to all of the old contents or all of the new. A device or a pipe is written to directly: it has no
    old contents to keep, and must not be replaced by a file. Temporary files of earlier calls for this name whose
    processes were killed are removed.
    """
    target = Path(os.path.realpath(path))  # a link keeps its target
    if target.exists() and not target.is_file() and not target.is_dir():
        with open(target, "wb") as stream:
            stream.writelines(parts)
        return
    mode = stat.S_IMODE(target.stat().st_mode) if target.is_file() else None
    try:
        _remove_abandoned(target)
        file, temporary = _new_temporary(target, mode)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None  # with the path the user gave
    try:
        with file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                temporary.chmod(mode)
            if os.name != "nt":  # still locked, so that no other process takes it for abandoned
                temporary.replace(target)
        if os.name == "nt":  # where open files cannot be renamed
            temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _new_temporary(target: Path, mode: int | None) -> tuple[BinaryIO, Path]:
    """Create a file beside the target, locked as long as it is open: the lock shows that its process is alive."""
    # Made by open itself, so that the user's mask sets the permissions; files of tempfile are for the owner alone.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = target.with_name(f".{_stem(target)}.{secrets.token_hex(8)}.tmp")
        file = os.fdopen(os.open(temporary, flags, 0o666 if mode is None else mode), "wb")
        lock_or_skip(file.fileno())
        if os.name == "nt" or os.fstat(file.fileno()).st_nlink:  # not removed before it was locked
            return file, temporary
        file.close()


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files for this name that no process has locked: their writers are gone."""
    if os.name == "nt":
        return
    of_target = re.compile(rf"\.{re.escape(_stem(target))}\.[0-9a-f]{{16}}\.tmp")
    try:
        names = os.listdir(target.parent)
    except OSError:  # a folder that may be written but not read
        return
    found = [target.with_name(name) for name in names if of_target.fullmatch(name)]
    for path in found:
        try:
            number = os.open(path, os.O_RDONLY)
        except OSError:  # another user's file, or removed meanwhile
            continue
        try:
            if lock_or_skip(number):
                path.unlink(missing_ok=True)
        except PermissionError:  # in a folder where users may remove only their own files
            pass
        finally:
            os.close(number)


def _stem(target: Path) -> str:
    return target.name[:40]  # file names have a maximum length


def _sync_folder(folder: Path) -> None:
    """Flush file names to the disk; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
