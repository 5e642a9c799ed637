"""From arguments to an exit code: 0 done, 1 something to put right, 2 a wrong command line, 130 interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from everytree.cli.app import app
from everytree.cli.problems import StoppedError, UserError

WRONG, INTERRUPTED = 1, 130


def run(arguments: Sequence[str]) -> int:
    """One command; what goes wrong is one sentence on standard error."""
    try:
        app(args=list(arguments), prog_name="everytree")
    except SystemExit as end:  # typer's own: help and usage errors have been shown
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except StoppedError as problem:
        return _say(problem, INTERRUPTED)
    except UserError as problem:
        return _say(problem, WRONG)
    except MemoryError:
        return _say("there is not enough memory for this table", WRONG)
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        return _say("tables are read by pyarrow, which is not installed: pip install 'everytree[cli]'", WRONG)
    except BrokenPipeError:  # `| head` has seen enough; what is still buffered must not complain again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WRONG
    return 0


def _say(sentence: object, code: int) -> int:
    print("everytree:", str(sentence).replace("\n", " "), file=sys.stderr)
    return code
