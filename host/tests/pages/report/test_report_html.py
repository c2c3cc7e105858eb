"""What report.html holds, read as source, on SYNTHETIC records (report_record.py)."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from opjoule.base.errors import RecordFault
from opjoule.pages import drawing
from opjoule.pages.report.html import write_report
from opjoule.results.long_table import rows
from opjoule.runs.evaluation.wording import YCSB_QUANTITIES as YCSB
from opjoule.runs.record.result import Conclusion
from opjoule.runs.record.run_record import RunRecord
from report_record import FOUND, RESULT, make_record, make_trace, put_result

VENDOR = Path(drawing.__file__).parent / "vendor"


class Words(HTMLParser):
    """The visible text of a page and the attributes of all its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.attributes: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data.replace("\N{NO-BREAK SPACE}", " ")


def words_of(page: Path) -> Words:
    words = Words()
    words.feed(page.read_text(encoding="utf-8"))
    return words


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("complete")
    make_record(directory)
    return write_report(directory)


def test_headline_gives_both_energies_with_their_uncertainty(complete: Path) -> None:
    text = words_of(complete).text
    assert "LevelDB on rpi4 (SIMULATED), sd" in text
    assert "2.874 ± 0.043 mJ" in text
    assert "861 ± 52 µJ" in text


def test_the_head_is_worded_as_in_the_golden_screen(complete: Path, golden) -> None:
    head = re.search(r"<main>.*?(?=<section)", complete.read_text(encoding="utf-8"), re.S)
    assert head
    golden("report-head", re.sub(r"(?:\s*<[^>]*>\s*)+", "\n", head[0]).strip(), {complete.parent: "DIR"})


def test_simulated_banner_is_there_exactly_when_run_json_says_so(complete: Path, tmp_path: Path) -> None:
    assert "SIMULATED" in words_of(complete).text
    make_record(tmp_path, simulated=False)
    assert "SIMULATED" not in words_of(write_report(tmp_path)).text


def test_every_quantity_of_the_result_is_in_the_page(complete: Path) -> None:
    text = words_of(complete).text
    listed = rows(Conclusion(numbers=RESULT), YCSB)
    assert len(listed) >= 35
    for line in listed:
        if line.path.startswith(("budget.", "by_operation.", "by_activity.", "by_component.")):
            name = line.path.split(".")[1]
            assert name in text or name.replace("_", "-") in text  # a row of its own table
            continue
        assert line.path in text, f"{line.path} is missing"
        assert (line.shown.value if line.shown else line.reason) in text


def test_a_quantity_unknown_to_the_report_is_shown_too(tmp_path: Path) -> None:
    make_record(tmp_path)
    put_result(tmp_path, {**RESULT, "fan_share": {"value": 3.25, "u": 0.2, "unit": "1"}})
    text = words_of(write_report(tmp_path)).text
    assert "fan_share" in text
    assert "3.25 ± 0.20" in text


def test_an_interval_near_zero_is_stated_as_in_the_summary(tmp_path: Path) -> None:
    make_record(tmp_path)
    put_result(tmp_path, {**RESULT, "bytes_read": {"value": 16e3, "u": 43e3, "unit": "B"}})
    text = words_of(write_report(tmp_path)).text
    assert "16 (0 to 59)" in text and "16 ± 43" not in text


def test_page_asks_for_nothing_outside_itself(complete: Path) -> None:
    words = words_of(complete)
    assert not [value for name, value in words.attributes if name in ("src", "href", "srcset", "action")]
    assert "url(" not in complete.read_text(encoding="utf-8")
    policies = [value for name, value in words.attributes if name == "content" and "default-src" in value]
    assert policies == ["default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"]


def test_text_from_the_record_cannot_become_markup(complete: Path) -> None:
    """The synthetic record's command line holds `</script><b>`."""
    source = complete.read_text(encoding="utf-8")
    assert "</script><b>" not in source
    assert "note=a b</script><b>" in words_of(complete).text
    content = re.search(r'<script type="application/json" id="content">(.*?)</script>', source, re.S)
    assert content
    assert json.loads(content[1])["duration_s"] == pytest.approx(31.0, abs=0.01)


def test_budget_names_every_part_and_why_one_is_absent(complete: Path) -> None:
    text = words_of(complete).text
    for part in ("gain", "offset", "quantisation", "alignment", "loss", "baseline", "repeats"):
        assert part in text
    assert "--repeats" in text


@pytest.mark.parametrize("status", ["partial", "failed"])
def test_record_without_result_says_why(tmp_path: Path, status: str) -> None:
    make_record(tmp_path, status=status)
    text = words_of(write_report(tmp_path)).text
    assert status.upper() in text
    assert "cable pulled after 31.0 s" in text
    assert "mJ" not in text.partition("cable pulled after 31.0 s")[0]


def test_a_trace_on_its_own_is_drawn_without_an_answer(tmp_path: Path) -> None:
    make_trace(tmp_path)
    page = write_report(tmp_path)
    text = words_of(page).text
    assert "serial:/dev/ttyACM0" in text and "clock map" not in text and "frames lost" in text
    assert '"power_w"' in page.read_text(encoding="utf-8")


def test_record_of_run_json_alone_makes_a_page(tmp_path: Path) -> None:
    """The state after a crash in the first second."""
    RunRecord.create(tmp_path, {"db": "leveldb", "device": "rpi4"}, simulated=False)
    text = words_of(write_report(tmp_path)).text
    assert "PARTIAL" in text
    assert "no power trace" in text


@pytest.mark.parametrize(
    "name", ["power.parquet", "operations.parquet", "system.parquet", "events.parquet", "result.json"]
)
def test_a_corrupt_file_is_named_and_the_rest_is_shown(tmp_path: Path, name: str) -> None:
    make_record(tmp_path)
    (tmp_path / name).write_bytes(b"not what it was")
    text = words_of(write_report(tmp_path)).text
    assert name in text
    assert "LevelDB on rpi4" in text


def test_corrupt_run_json_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RecordFault, match=r"run\.json is corrupt"):
        write_report(tmp_path)


def test_vendored_library_is_what_its_note_says() -> None:
    stated = dict(re.findall(r"\| `(\S+)` \| `([0-9a-f]{64})` \|", (VENDOR / "README.md").read_text()))
    assert set(stated) == {"uPlot.iife.min.js", "uPlot.min.css"}
    for name, digest in stated.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    assert "MIT License" in (VENDOR / "uPlot.LICENSE").read_text()


def test_a_result_of_before_a_part_of_the_budget_was_known_is_still_shown(tmp_path: Path) -> None:
    make_record(tmp_path)
    older = {part: entry for part, entry in RESULT["budget"].items() if part not in {"voltage", "timebase"}}
    put_result(tmp_path, {**RESULT, "budget": older})
    text = words_of(write_report(tmp_path)).text
    assert all(part in text for part in older) and "timebase" not in text


def test_a_second_sensor_in_the_storages_supply_is_named_with_its_figures(tmp_path: Path) -> None:
    record = make_record(tmp_path)
    record.update(found={"storage_sensor": {"number": 1, "supply": "own"}})
    energy = {"value": 2.0, "u": 0.1, "unit": "J"}
    parts = {"storage": energy, "rest": {"value": 5.0, "u": 0.4, "unit": "J"}}
    sensor = {"1": {"energy_j": energy, "write_back_energy_j": energy}}
    put_result(tmp_path, {**RESULT, "by_component": parts, "by_sensor": sensor})
    text = words_of(write_report(tmp_path)).text
    assert "storage2.00 ± 0.10 J" in text and "rest5.00 ± 0.40 J" in text
    assert "sensor 1, in the supply of the medium" in text
    assert "sensor 1: energyby_sensor.1.energy_j" in text and "by sensor" not in text


def test_a_reason_that_several_parts_share_is_said_once(tmp_path: Path) -> None:
    make_record(tmp_path)
    missing = {"value": None, "u": None, "unit": "J", "reason": "too few windows"}
    activities = {"idle": {"value": 1.0, "u": 0.1, "unit": "J"}, "flush": missing, "write_back": missing}
    put_result(tmp_path, {**RESULT, "by_activity": activities})
    text = words_of(write_report(tmp_path)).text
    assert text.count("too few windows") == 1 and "By activity (flush, write-back): too few windows." in text


def test_the_command_to_repeat_a_run_can_be_pasted_beside_it(tmp_path):
    """Without --out, whose folder holds the run; a program's own words stay as they are."""
    record = make_record(tmp_path)
    for given, shown in (
        (["host/measure.py", "--out", "a", "--db", "leveldb"], "host/measure.py --db leveldb"),
        (
            ["host/measure.py", "command", "--out=a", "--", "p", "--out", "b"],
            "host/measure.py command -- p --out b",
        ),
    ):
        record.update(found={**FOUND, "command": given})
        assert shown in words_of(write_report(tmp_path)).text
