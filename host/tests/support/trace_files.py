"""Files of other programs for tests: made-up contents, the options for them, and what comes of them."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import BadInput
from opjoule.energy.cells import Cells
from opjoule.energy.trace.imported.trace_file import ImportedTrace, read_trace_file
from opjoule.energy.trace.power_trace import Gap, PowerTrace


def energy_j(trace: ImportedTrace) -> float:
    """Energy between the first and the last row [J]."""
    gaps = [part for part in trace.parts() if isinstance(part, Gap)]
    cells = Cells.of(PowerTrace.of(trace.meter_ns, trace.current_a, trace.voltage_v, gaps))
    return float(cells.power.between(0, int(trace.meter_ns[-1])))


@dataclass
class File:
    """A file, the options for it, and what comes of it."""

    content: str | bytes
    columns: dict[str, str] = field(default_factory=dict)
    voltage: float | None = None
    rate: float | None = None
    energy_j: float | None = 3.0
    refusal: str = ""

    def read(self, folder: Path) -> ImportedTrace:
        """Reads the file."""
        path = folder / "trace"
        path.write_bytes(self.content if isinstance(self.content, bytes) else self.content.encode())
        return read_trace_file(path, self.columns, self.voltage, self.rate)

    def check(self, folder: Path) -> None:
        """Checks that the file is read right, or refused in one line with what to do."""
        if self.refusal:
            with pytest.raises(BadInput, match=self.refusal) as refused:
                self.read(folder)
            assert "\n" not in str(refused.value)
            return
        trace = self.read(folder)
        assert energy_j(trace) == pytest.approx(self.energy_j, rel=1e-5)
        power_w = 2.04 if self.energy_j == 2.04 else 3.0
        assert np.nanmean(trace.current_a * trace.voltage_v) == pytest.approx(power_w, rel=1e-5)


def rows(pattern: str, count: int = 11, step_s: float = 0.1, first: int = 0) -> str:
    """Rows whose places {t} (s), {ms}, {us} and {n} are the row's time and number."""
    each = []
    for number in range(first, count):
        time_s = number * step_s
        each.append(pattern.format(t=f"{time_s:.4f}", ms=round(time_s * 1e3), us=round(time_s * 1e6), n=number) + "\n")
    return "".join(each)


def clock(pattern: str, start: str = "2026-11-03T21:10:00", step_s: float = 0.1, count: int = 11) -> str:
    """Rows whose places {iso}, {basic}, {date}, {time}, {german}, {am} and {unix} are moments."""
    first = np.datetime64(start, "ms")
    each = []
    for number in range(count):
        moment = first + np.timedelta64(round(number * step_s * 1e3), "ms")
        text = str(moment)
        hour = int(text[11:13])
        each.append(
            pattern.format(
                iso=text,
                basic=text.replace("-", "").replace(":", ""),
                date=text[:10],
                time=text[11:],
                german=f"{text[8:10]}.{text[5:7]}.{text[:4]} {text[11:19]},{text[20:]}",
                am=f"{(hour + 11) % 12 + 1}:{text[14:]} {'PM' if hour >= 12 else 'AM'}",
                unix=f"{moment.astype(np.int64) / 1e3:.3f}",
            )
            + "\n"
        )
    return "".join(each)
