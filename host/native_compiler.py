"""Lends an emulated Debian root the compiler of this computer: the emulator needs hours for what set-up compiles.

In the root, the programs `cc1` and `cc1plus`, which turn C and C++ into assembly, are replaced by those of Debian's
cross compiler of the same release, and run on the real processor. All else of the root's own gcc stays, and runs
emulated: the driver, the headers, the assembler and the linker. Uses only the standard library.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from logged_commands import logged
from minimal_roots import MinimalRoot, can_run, emulation, get_root, inside
from network_settings import NetworkSettings

LENDER: Final = "opt/amd64"
"""Folder in the emulated root with a root of amd64 that has the cross compiler."""
_CROSS_COMPILER: Final = """set -e
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends g++-aarch64-linux-gnu
for program in cc1 cc1plus; do aarch64-linux-gnu-g++ -print-prog-name=$program > /$program.path; done
"""
LEND: Final = f"""set -e
test -d /{LENDER} || exit 0
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends g++
lend() {{ # PROGRAM LANGUAGE
  theirs=$(cat /{LENDER}/$1.path)
  own=$(g++ -print-prog-name=$1)
  folders=$(g++ -E -v -x $2 /dev/null 2>&1 | sed -n '/^#include </,/^End of search/s/^ /-isystem /p' | tr '\\n' ' ')
  dpkg-divert --local --rename --add "$own"
  libraries=/{LENDER}/usr/lib/x86_64-linux-gnu
  printf '#!/bin/sh\\nexec %s --library-path %s %s "$@" -nostdinc %s %s\\n' $libraries/ld-linux-x86-64.so.2 $libraries \
    "/{LENDER}$theirs" "$3" "$folders" > "$own"
  chmod +x "$own"
}}
lend cc1 c ''
lend cc1plus c++ -nostdinc++
printf '#include <string>\\nint main() {{ return std::string("lent").size() == 4 ? 0 : 1; }}\\n' > /tmp/lent.cc
g++ -O2 -o /tmp/lent /tmp/lent.cc
/tmp/lent
"""
"""Script that runs in the emulated root: replaces the two programs, and checks that a program made with them works."""


def is_lendable(root: MinimalRoot) -> bool:
    """Whether a root's processor is emulated on this computer, and the real one can compile for it."""
    return bool(emulation(root.architecture)) and can_run("amd64")


def put_lender(tree: Path, root: MinimalRoot, network: NetworkSettings, log: Path) -> None:
    """Puts the release's cross compiler into an unpacked, emulated root. Raises: SetupError: it cannot be had."""
    lender = MinimalRoot(root.suite, "amd64")
    get_root(lender, log, network)
    folder = tree / LENDER
    lender.unpack(folder, log)
    network.write(folder, "/root")
    logged(inside(folder, lender, _CROSS_COMPILER, variables=network.variables), log)
    for gone in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc"):
        shutil.rmtree(folder / gone, ignore_errors=True)
