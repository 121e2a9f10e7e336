"""python -m libtl: the command line, all of tlc."""

import os
import sys

program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tlc")


def main():
    """Runs tlc in the place of this process, with the same arguments."""
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"libtl: error: {program}: {error.strerror}\n      = hint: reinstall the package libtl")


if __name__ == "__main__":
    main()
