"""Every number of the result as a file of OpenMetrics text, for Prometheus and similar programs.

There are gauges for each quantity and its u, and infos for the run and its warnings.

Source: OpenMetrics 1.0, https://prometheus.io/docs/specs/om/open_metrics_spec/ (names, units, escapes, order, EOF).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from opjoule.base.files import write_whole
from opjoule.results.long_table import Row, rows
from opjoule.results.run import OpenedRun
from opjoule.results.run_list import listed

UNITS: Final = {
    "J": "joules",
    "W": "watts",
    "s": "seconds",
    "B": "bytes",
    "V": "volts",
    "1": "",
    "1/s": "per_second",
    "B/s": "bytes_per_second",
    "J/B": "joules_per_byte",
}
"""Unit in result.json -> unit of the metric, with which its name ends."""
_SUFFIX: Final = re.compile(r"_(j|w|s|v|bytes|bytes_per_s|per_s)$")
"""A unit at the end of a path; OpenMetrics spells it out."""
_U: Final = "expanded_uncertainty"


def write(run: OpenedRun, path: Path) -> Iterator[str]:
    """Writes the text to a file."""
    write_whole(path, openmetrics(run).encode())
    yield str(path)


def openmetrics(run: OpenedRun) -> str:
    """The text, up to the line `# EOF`; missing numbers are left out."""
    listed_run = listed(run.path)
    run_labels = {"run": run.path.resolve().name, "simulated": "true" if run.simulated else "false"}
    program = run.answer.run.found.opjoule or ""
    about = {"title": run.title, **listed_run.labels, "status": run.status, "opjoule": program}
    at = listed_run.started
    stamp = "" if at is None else f" {at.timestamp():.3f}"
    lines = [
        "# TYPE opjoule_run info",
        "# HELP opjoule_run What was measured.",
        f"opjoule_run_info{_labels(run_labels | about)} 1{stamp}",
    ]
    if run.answer.warnings:
        lines += ["# TYPE opjoule_warning info", "# HELP opjoule_warning What limits the run's figures."]
    for warning in run.answer.warnings:
        labels = _labels(run_labels | {"title": warning.title, "text": warning.sentence})
        lines.append(f"opjoule_warning_info{labels} 1{stamp}")
    for name, unit, about_it, samples in _families(run):
        lines.append(f"# TYPE {name} gauge")
        if unit:
            lines.append(f"# UNIT {name} {unit}")
        lines.append(f"# HELP {name} {_escaped(about_it)}")
        lines += [f"{name}{_labels(run_labels | part)} {value!r}{stamp}" for part, value in samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _families(run: OpenedRun) -> Iterator[tuple[str, str, str, list[tuple[dict[str, str], float]]]]:
    """Name, unit, meaning and all samples of each metric."""
    grouped: dict[str, list[tuple[dict[str, str], Row]]] = {}
    for row in rows(run.answer.concluded, run.answer.quantities):
        if row.quantity.value is not None and row.quantity.unit in UNITS:
            path, part = _part(row.path)
            grouped.setdefault(path, []).append((part, row))
    for path, group in grouped.items():
        first = group[0][1]
        unit = UNITS[first.quantity.unit]
        words = (_SUFFIX.sub("", word) for word in path.split("."))
        stem = "opjoule_" + re.sub(r"\W", "_", "_".join(words)).lower()
        meaning = first.meaning or first.label
        values = [(part, float(row.quantity.value)) for part, row in group if row.quantity.value is not None]
        yield _named(stem, unit), unit, meaning, values
        us = [(part, float(row.quantity.u)) for part, row in group if row.quantity.u]
        if us:
            yield _named(f"{stem}_{_U}", unit), unit, f"Expanded uncertainty (95 %): {meaning}", us


def _part(path: str) -> tuple[str, dict[str, str]]:
    """`by_operation.read.count` -> `by_operation.count`, {"part": "read"}; other paths are not changed."""
    group, _, rest = path.partition(".")
    if not group.startswith("by_"):
        return path, {}
    part, _, rest = rest.partition(".")
    return f"{group}.{rest}".rstrip("."), {"part": part}


def _named(stem: str, unit: str) -> str:
    return f"{stem}_{unit}" if unit else stem


def _labels(of: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in of.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
