"""Command lines of measure.py in a process of limited memory."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BAD_INPUT = 2
BYTES_MAX = 1 << 30
LIMIT_S = 300
DRIVER = """
import json, resource, sys
from opjoule.cli.commands import main
for argv in json.load(open(sys.argv[1])):
    try:
        status = main(argv)
    except SystemExit as ended:
        status = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    print(json.dumps({"status": status}), file=sys.stderr, flush=True)
print(json.dumps({"peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), file=sys.stderr)
"""
