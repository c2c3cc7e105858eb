"""run.json is one typed value in every version; what it does not name is kept, and a wrong file is one line."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import RecordFault
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import from_json
from opjoule.cli.record_commands import ReportOptions
from opjoule.cli.report import run_report
from opjoule.pages.report.timeline import read_timeline
from opjoule.results.answer import open_answer
from opjoule.results.recorded import board_to_meter
from opjoule.runs.record.json_file import write_json
from opjoule.runs.record.run import Run
from opjoule.runs.record.run_record import RunRecord, _digest
from raw_record import finished_record, run_json

ROOT = Path(__file__).resolve().parents[4]
EARLIER = ROOT / "host/tests/support/earlier_record"


def test_every_field_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "run-record.md").read_text()
    _, _, section = page.partition("\n## run.json\n")
    (table, *_) = re.findall(r"(?m)(?:^\|.*\n)+", section)
    first_cells = re.findall(r"(?m)^\| (`[^|]*) \|", table)
    assert set(re.findall(r"`(\w+)`", " ".join(first_cells))) == set(Run.__struct_fields__)


def test_what_is_not_named_is_kept(tmp_path):
    record = RunRecord.create(tmp_path / "run", {"later": {"n": [1]}}, simulated=True)
    record.document["further"] = {"key": "of another version"}
    record.update(found={"cores": 4, "weather": "fine"})
    opened = RunRecord.open(record.directory)
    opened.add_notices(Notice(NoticeKind.FAULT, "a line"))
    again = RunRecord.open(record.directory)
    assert again.document["further"] == {"key": "of another version"}
    assert again.document["asked"] == {"later": {"n": [1]}}
    assert again.document["found"] == {"cores": 4, "weather": "fine"} and again.run.found.cores == 4


@pytest.mark.parametrize("entry", [{"misspelt": 1}, {"found": {"cores": "four"}}, {"phases": [{"name": "run"}]}])
def test_nothing_wrong_is_written(tmp_path, entry):
    record = RunRecord.create(tmp_path / "run", {}, simulated=True)
    before = (record.directory / "run.json").read_bytes()
    with pytest.raises((TypeError, RecordFault)):
        record.update(**entry)
    assert (record.directory / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"found": {"cores": "four"}}, r"Expected `int \| null`, got `str` - at `\$\.found\.cores`"),
        (
            {"phases": [{"name": "lunch", "repeat": 1, "start_board_ns": 1, "end_board_ns": 2}]},
            "missing required field `role`",
        ),
        ({"sensor": {"shunt_ohm": 0.1}}, "missing required field `gain_errors_max`"),
        ({"status": "fine"}, r"'fine' - at `\$\.status`"),
    ],
)
def test_the_line_names_the_key(entries, said):
    with pytest.raises(RecordFault, match=rf"^run\.json is corrupt: .*{said}") as caught:
        run_json(**entries)
    assert "\n" not in str(caught.value)


def killed(record: Path) -> None:
    """As if the program had ended before its analysis."""
    document = json.loads((record / "run.json").read_text())
    for key in ("checksums", "clock_maps", "clock_map_used"):
        document.pop(key, None)
    document |= {"status": "partial", "digest": ""}
    document["digest"] = _digest(document)
    write_json(record / "run.json", document)
    for path in [record / "result.json", *record.glob("*.parquet")]:
        path.unlink()


BUDGET_OF = {
    "budget": "energy_j",
    "marginal_budget": "marginal_energy_j",
    "headline_budget": "marginal_energy_per_operation_j",
}


def test_an_earlier_record_is_analysed_to_the_figures_that_it_had(tmp_path):
    """Those of the program as it was before run.json was a value; sums of floats differ by machine in the last bits.

    At that time every k was 2, of an energy's parts, too; standard uncertainties are the same.
    """
    shutil.copytree(EARLIER, tmp_path / "earlier")
    killed(tmp_path / "earlier")
    run_report(ReportOptions(record=tmp_path / "earlier"))
    answer = open_answer(tmp_path / "earlier")
    wanted = json.loads((ROOT / "host/tests/support/earlier_figures.json").read_text())
    figures = {path: answer.quantity(path) for path in wanted}
    for path, (value, u) in wanted.items():
        k = from_json(answer.result[BUDGET_OF[path.partition(".")[0]]]).k if "budget." in path else 2.0
        assert figures[path].value == pytest.approx(value * k / 2, rel=1e-12, abs=0), path
        standard_u = figures[path].standard_u if figures[path].u is not None else None
        assert standard_u == (None if u is None else pytest.approx(u / 2, rel=1e-9, abs=0)), path
    assert RunRecord.open(tmp_path / "earlier").run.sensor.shunt.ohm == 0.1


def test_the_report_draws_with_the_map_that_the_result_rests_on(tmp_path):
    """However small the uncertainty that another one states."""
    record = finished_record(tmp_path / "record")
    used = record.run.clock_maps[record.run.clock_map_used]
    late = replace(used, target_ref_ns=used.target_ref_ns + 10**9, u_offset_ns=0.0, u_rate=0.0)
    before = [phase.start_s for phase in read_timeline(record).phases]
    record.update(clock_maps={"a-better-one": late})
    record.finish("complete")
    assert board_to_meter(record.run) == used
    assert [phase.start_s for phase in read_timeline(record).phases] == before
    record.update(clock_map_used="a-better-one")
    moved = [phase.start_s for phase in read_timeline(record).phases]
    assert np.subtract(moved, before) == pytest.approx(1.0, abs=1e-6)


def test_a_map_that_is_not_there_is_reported_in_the_page(tmp_path):
    record = finished_record(tmp_path / "record")
    record.update(clock_map_used="none-such")
    assert [line for line in read_timeline(record).notes if line.startswith("run.json: ") and "'none-such'" in line]
