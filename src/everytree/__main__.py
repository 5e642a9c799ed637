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
    except KeyboardInterrupt:  # before a command could handle it
        print("everytree: interrupted; nothing was written", file=sys.stderr)
        return INTERRUPTED


def command() -> None:
    """Run the command of this process, and end it.

    Where pyarrow was used, the process ends without unloading its libraries: pyarrow 26 may abort there while its
    threads are still starting, after everything has been written. An interrupted command ends the same way: if the
    interrupt came during an import, Python would end the process by a signal instead of the exit code.
    """
    code = main()
    if "pyarrow" in sys.modules or code == INTERRUPTED:
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None:
                    stream.flush()
            except OSError:  # `run` has reported it, or the output is closed
                pass
        os._exit(code)
    sys.exit(code)


def _without_extra(given: list[str]) -> int:
    """Run the demo, which needs no extra; for other commands, say what to install."""
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
