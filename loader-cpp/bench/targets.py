"""Targets of the loader, and whether they are met."""

from __future__ import annotations

import statistics
import textwrap
from dataclasses import dataclass, field

from tools import Case, Figures

RATIO_TARGETS = {"1 x 1000 B": 0.97, "10 x 100 B": 0.95}
"""Least ratio to the bare loop of the same engine, by record shape."""
NULL_RATIO_TARGET = 0.85
NULL_RATES = {("10 x 100 B", "load"): 4.0, ("10 x 100 B", "read"): 10.0}
"""Least number of operations without a database, in millions per second of processor time."""
LOG_NS, LOG_BYTES, LOG_MIB = 60.0, 6.0, 1.0
MEMORY_MIB = {"null": 4.0, "leveldb": 32.0}
THREADS_RATIO = 1.0
START_MS = 20.0


def ratios(tool: list[Figures], other: list[Figures], what: str, inverse: bool = False) -> list[float]:
    """Ratio of a tool to another for each pair; above 1 the tool is better (`inverse`: for figures to be small)."""
    values = [getattr(one, what) / getattr(two, what) for one, two in zip(tool, other, strict=True)]
    return [1 / value for value in values] if inverse else values


REASONS = {
    "ratio": "An operation costs the loader 0.06 to 0.1 us besides the engine: one clock reading (20 ns here), accounting "
    "and histogram (10 ns), the draw of the operation's kind and fields (10 ns), and calls through the engine interface "
    "with the check of the record's layout (15 ns). These figures come from `perf record` of 4 million LMDB reads, loader "
    "and bare loop compared symbol by symbol. An LMDB read takes 1 us: a ratio of 0.97 would leave 30 ns for all of this, "
    "and the same loader without any clock reading reached 0.953. If the range of the pairs (see Engines) reaches to both "
    "sides of the target, other work on this computer decides. docs/benchmarks.md and docs/benchmarks-busy.md are the "
    "same benchmark on two such computers; they differ by more than the amounts by which targets are missed.",
    "threads": "Four threads share two processors. With a second thread the C library takes locks and makes every system "
    "call a point where a thread could be cancelled (3 % of SQLite's processor time). SQLite's rollback journal allows no "
    "read beside a write, and Berkeley DB's default mode allows one thread at a time, so about 1 is the best that these "
    "two can reach. LevelDB hands writes from thread to thread in a queue. LMDB uses a page again only when no reader can "
    "still see it. Beside readers its writes therefore take other, colder pages (twice the processor time an operation, "
    "half of the rise in the kernel's page cache).",
    "start": "An engine that opens a database reads its log first. RocksDB replays the whole load of this size (10 MB), "
    "which stays in memory and log until 64 MiB have come, and writes it into a table. `null` shows the loader's own part.",
}
"""Reason for a missed target, by kind of target."""


@dataclass
class Targets:
    """The table of targets, to which each measure adds its rows."""

    rows: list[str] = field(default_factory=list)
    missed: int = 0
    kinds_missed: set[str] = field(default_factory=set)

    def add(self, measure: str, target: str, figure: str, met: bool, kind: str = "") -> None:
        """Adds a row. `kind`: a key of REASONS, or empty."""
        self.missed += not met
        if not met and kind:
            self.kinds_missed.add(kind)
        self.rows.append(f"| {measure} | {target} | {figure} | {'met' if met else '**missed**'} |")

    def at_most(self, measure: str, limit: float, figure: float, unit: str, kind: str = "") -> None:
        """Adds a figure that has an upper limit."""
        self.add(measure, f"at most {limit:g} {unit}", f"{figure:.1f} {unit}", figure <= limit, kind)

    def against_bare(self, case: Case, tool: list[Figures], plain: list[Figures]) -> None:
        """Adds the loader's ratios to its bare loop; processor time decides, throughput is only shown."""
        target = NULL_RATIO_TARGET if case.engine == "null" else RATIO_TARGETS[case.shape]
        cpu = statistics.median(ratios(tool, plain, "cpu_us", inverse=True))
        speed = statistics.median(ratios(tool, plain, "throughput_per_s"))
        name = f"{case.engine}, {case.shape}, {case.phase}: ratio to the bare loop"
        figure = f"{cpu:.3f} processor time, {speed:.3f} throughput"
        self.add(name, f"at least {target}", figure, cpu >= target, "ratio")
        if case.engine == "null" and (case.shape, case.phase) in NULL_RATES:
            rate, least = (
                1 / statistics.median(one.cpu_us for one in tool),
                NULL_RATES[case.shape, case.phase],
            )
            name = f"null, {case.shape}, {case.phase}: operations a second of one core"
            self.add(name, f"at least {least:g} million", f"{rate:.1f} million", rate >= least)

    def table(self) -> str:
        """The table as Markdown, with the number of missed targets and the reasons."""
        about = "Ratios to the bare loop are judged by processor time, which other work on the computer disturbs least."
        head = f"{about}\n\n| measure | target | figure | |\n|---|---|---|---|\n"
        return head + "\n".join(self.rows) + f"\n\n{len(self.rows)} measures, {self.missed} missed." + self.reasons()

    def reasons(self) -> str:
        """Reasons for the missed targets, by kind."""
        missed = [kind for kind in REASONS if kind in self.kinds_missed]
        return "".join("\n\n" + textwrap.fill(f"Missed, {kind}: {REASONS[kind]}", 118) for kind in missed)
