"""Fuzzes one parser of python_parsers.py with atheris (libFuzzer for Python); OPJOULE_PARSER names the parser.

Source: https://github.com/google/atheris, README, "Using Atheris".
"""

import os
import sys

import atheris

with atheris.instrument_imports(include=["opjoule", "tomllib", "json"]):
    import python_parsers


def main() -> None:
    """Runs libFuzzer with the command line's options."""
    parser = os.environ["OPJOULE_PARSER"]
    atheris.Setup(sys.argv, lambda data: python_parsers.feed(parser, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
