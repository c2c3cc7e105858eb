"""Table II of study S1: dd writes blocks of 4 KB to the medium, then reads them, one phase each.

python3 job.py --storage FOLDER --blocks N
"""

import argparse
import json
import os
import subprocess
import sys
import time

from opjoule_marks import phase
from opjoule_server import forget_file
from opjoule_study import Results

BLOCK_BYTES = 4096


def dd(*operands):
    """Runs dd and returns its duration [s]. If dd fails, ends the job with dd's last message."""
    start_s = time.monotonic()
    ran = subprocess.run(["dd", f"bs={BLOCK_BYTES}", *operands], stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"job.py: {ran.stderr.strip().splitlines()[-1]}")
    return time.monotonic() - start_s


def main():
    """Runs both phases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", dest="folder", required=True)
    parser.add_argument("--blocks", type=int, default=262_144)
    parser.add_argument("--results", default="")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.check:
        print(json.dumps({"bytes": asked.blocks * BLOCK_BYTES, "operations": 2 * asked.blocks}))
        return
    path, results = os.path.join(asked.folder, "dd"), Results(asked.results)
    count = f"count={asked.blocks}"
    with phase("WRITE"):
        wrote_s = dd("if=/dev/zero", f"of={path}", count, "conv=fdatasync")
    forget_file(path)
    with phase("READ"):
        read_s = dd(f"if={path}", "of=/dev/null", count)
    stored = os.path.getsize(path)
    if stored != asked.blocks * BLOCK_BYTES:
        sys.exit(f"job.py: the file has {stored} bytes instead of {asked.blocks * BLOCK_BYTES}")
    for name, lasted_s in (("WRITE", wrote_s), ("READ", read_s)):
        per_s = asked.blocks * BLOCK_BYTES / lasted_s
        results.add(name, operations=asked.blocks, answer=stored, mean_s=lasted_s, bandwidth_bytes_per_s=per_s)
        print(f"{name}: {per_s / 1e6:.1f} MB/s", flush=True)


if __name__ == "__main__":
    main()
