"""`python -m everytree` and the `everytree` command."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="everytree", description="Exact Bayesian averaging over every pruned tree.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="fit a meta-tree to a bundled data set and show what comes out")
    parser.parse_args(arguments)
    from everytree.demo import run

    run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
