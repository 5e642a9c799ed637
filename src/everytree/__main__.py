"""`python -m everytree` and the `everytree` command."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if find_spec("typer") is None:
            return _without_extra(given)
        from everytree.cli.running import run

        return run(given)
    except KeyboardInterrupt:  # before a command could take care of it
        print("everytree: interrupted; nothing was written", file=sys.stderr)
        return 130


def command() -> None:
    """Run the command of this process, and end it.

    Where pyarrow has been at work the process ends without tearing down its libraries: pyarrow 26 may abort there while
    its threads are still starting, after everything has been written.
    """
    code = main()
    if "pyarrow" in sys.modules:
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _without_extra(given: list[str]) -> int:
    """The demo needs nothing; the other commands need what is said here."""
    if given != ["demo"]:
        print(
            "everytree: commands other than demo need typer and pyarrow: pip install 'everytree[cli]'", file=sys.stderr
        )
        return 1
    from everytree.demo import run

    run()
    return 0


if __name__ == "__main__":
    command()
