"""`python -m everytree` and the `everytree` command."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:  # around the imports too: they take most of the first second
        from importlib.util import find_spec

        if find_spec("typer") is None:
            return _without_extra(given)
        from everytree.cli.running import run

        return run(given)
    except KeyboardInterrupt:  # before a command could take care of it
        print("everytree: interrupted; nothing was written", file=sys.stderr)
        return INTERRUPTED


def command() -> None:
    """Run the command of this process, and end it.

    Where pyarrow has been at work the process ends without tearing down its libraries: pyarrow 26 may abort there while
    its threads are still starting, after everything has been written. So does an interrupted one, which Python would
    end by a signal in place of the exit code where the interrupt came in the middle of an import.
    """
    code = main()
    if "pyarrow" in sys.modules or code == INTERRUPTED:
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None:
                    stream.flush()
            except OSError:  # `run` has said so, or nobody is there to read it
                pass
        os._exit(code)
    sys.exit(code)


def _without_extra(given: list[str]) -> int:
    """The demo needs nothing; the other commands need what is said here."""
    if given != ["demo"]:
        print(
            "everytree: commands other than demo need typer and pyarrow: pip install 'everytree[cli]'", file=sys.stderr
        )
        return 1
    from everytree.cli.demo import run

    run()
    return 0


if __name__ == "__main__":
    command()
