"""Greets whomever it is told to, but not nobody."""

import sys


def main() -> None:
    whom = sys.argv[sys.argv.index("--whom") + 1]
    if whom == "nobody":
        sys.exit(3)
    print(f"hello {whom}")
