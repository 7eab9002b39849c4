"""`python -m perdure.encryption ID` prints a fresh key as PERDURE_KEYS takes it."""

from __future__ import annotations

import sys

from perdure.encryption.keys import Keys, new_key
from perdure.errors import EncryptionError


def main(arguments: list[str]) -> int:
    """Print a key of that ID; answer with the exit status."""
    if len(arguments) != 1:
        print("usage: python -m perdure.encryption ID", file=sys.stderr)
        return 2
    line = new_key(arguments[0])
    try:
        Keys.parse(line)
    except EncryptionError as error:
        print(f"perdure: {error}", file=sys.stderr)
        return 1
    print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
