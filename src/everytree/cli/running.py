"""From arguments to an exit code.

0 done, 1 something to put right, 2 a wrong command line, 70 a fault of everytree, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from everytree.cli.app import app
from everytree.cli.problems import StoppedError, UserError

WRONG, FAULT, INTERRUPTED = 1, 70, 130
TRACEBACK = "EVERYTREE_TRACEBACK"
"""The environment variable that makes an internal error print its traceback."""

SAID_HERE = "X: .*numbers with a decimal comma"
"""A warning of the library that commands replace by their own, which names the file."""


def run(arguments: Sequence[str]) -> int:
    """One command; what goes wrong is one sentence on standard error."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", SAID_HERE)
            warnings.showwarning = _warner()
            app(args=list(arguments), prog_name="everytree")
    except SystemExit as end:  # typer's own: help and usage errors have been shown
        if end.code == INTERRUPTED:  # before a command began, of which typer says nothing
            return _say(StoppedError(), INTERRUPTED)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except StoppedError as problem:
        return _say(problem, INTERRUPTED)
    except UserError as problem:
        _give_up_output()
        return _say(problem, WRONG)
    except MemoryError:
        return _say(
            "there is not enough memory for this table; fit_batches of an estimator, in Python, reads it part by part",
            WRONG,
        )
    except BrokenPipeError:  # the reader, such as `| head`, has closed the pipe
        _give_up_output()
        return WRONG
    except OSError as error:
        _give_up_output()
        where = "" if error.filename is None else f"{error.filename}: "
        return _say(f"{where}{error.strerror or error}", WRONG)
    except Exception as error:
        return _fault(error)
    return 0


def _fault(error: Exception) -> int:
    """An unexpected error."""
    if isinstance(error, ModuleNotFoundError) and error.name == "pyarrow":
        return _say("tables are read by pyarrow, which is not installed: pip install 'everytree[cli]'", WRONG)
    asked = bool(os.environ.get(TRACEBACK))
    if asked:
        traceback.print_exception(error)
    advice = "" if asked else f"; {TRACEBACK}=1 in the environment shows where"
    return _say(f"this is a fault of everytree, please report it: {type(error).__name__}: {error}{advice}", FAULT)


def _give_up_output() -> None:
    """Discard what is still buffered for a closed output, so that there is no second error at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warner() -> Callable[..., None]:
    """Prints warnings of libraries in one line, without their source, and each of them once."""
    printed: set[str] = set()

    def warn(message: Warning | str, *where: Any, **more: Any) -> None:
        del where, more
        sentence = str(message).removeprefix("X: ").replace("`y`", "The target")
        if sentence not in printed:
            printed.add(sentence)
            _say(sentence, 0)

    return warn


def _say(sentence: object, code: int) -> int:
    print("everytree:", str(sentence).replace("\n", " "), file=sys.stderr)
    return code
