"""The terminal summary, on SYNTHETIC records (report_record.py)."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from compared_records import answer_of
from msgspec import structs
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.units import Cause
from opjoule.cli.commands import main
from opjoule.pages.report.terminal import REMEDIES, largest_parts, print_summary, remedies
from opjoule.runs.evaluation.wording import COMMAND, YCSB
from opjoule.runs.record.run import Generator, LoaderSummary
from opjoule.runs.record.run_record import RunRecord
from report_record import RESULT, make_record, make_trace, put_result
from rich.console import Console


def summary(directory: Path, width: int = 80) -> str:
    """What is printed, without colours."""
    out = io.StringIO()
    print_summary(directory, Console(file=out, width=width, highlight=False))
    return out.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def test_the_answer_comes_first(tmp_path: Path) -> None:
    make_record(tmp_path)
    first = " ".join(summary(tmp_path).split())
    assert first.startswith("LevelDB on rpi4 (SIMULATED), sd: 861 ± 52 µJ ")
    assert first.index("2.874 ± 0.043 mJ") < first.index("1.040 ± 0.050 J") < first.index("k = 2; one run")


def test_a_summary_is_worded_as_in_the_golden_screen(tmp_path: Path, golden) -> None:
    make_record(tmp_path)
    golden("summary", summary(tmp_path), {tmp_path: "DIR"})


def test_fits_80_columns(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    make_record(directory)
    printed = [line for line in summary(directory).splitlines() if str(tmp_path) not in line]
    assert max(len(line.rstrip()) for line in printed) <= 80
    assert len(printed) <= 36


def test_simulated_is_said_exactly_when_run_json_says_so(tmp_path: Path) -> None:
    make_record(tmp_path / "simulated")
    make_record(tmp_path / "real", simulated=False)
    assert "SIMULATED" in summary(tmp_path / "simulated", width=200)
    assert "SIMULATED" not in summary(tmp_path / "real", width=200)


def test_missing_numbers_come_with_their_reason(tmp_path: Path) -> None:
    make_record(tmp_path)
    assert "not measured: --no-harness" in summary(tmp_path)


@pytest.mark.parametrize("status", ["partial", "failed"])
def test_record_without_result_says_why_and_gives_no_number(tmp_path: Path, status: str) -> None:
    make_record(tmp_path, status=status)
    printed = summary(tmp_path)
    assert status.upper() in printed
    assert "cable pulled" in " ".join(printed.split()) and "mJ" not in printed


def test_square_brackets_in_a_reason_are_text(tmp_path: Path) -> None:
    make_record(tmp_path)
    strange = {"value": None, "u": None, "unit": "J", "reason": "lost [/bold] [red]"}
    put_result(tmp_path, {**RESULT, "write_back_energy_j": strange})
    assert "lost [/bold] [red]" in summary(tmp_path)


def test_a_trace_on_its_own_says_so(tmp_path: Path) -> None:
    make_trace(tmp_path)
    first, *_ = summary(tmp_path).split("\n\n")
    assert "serial:/dev/ttyACM0" in first and "±" not in first


def test_result_without_an_alignment_or_latency_still_prints(tmp_path: Path) -> None:
    make_record(tmp_path)
    missing = {"value": None, "u": None, "unit": "s", "reason": "no operation was logged"}
    put_result(tmp_path, {**RESULT, "latency_s": missing, "alignment": {}})
    assert "latency" in summary(tmp_path)


def test_remedy_fits_the_largest_part() -> None:
    assert largest_parts(answer_of(RESULT, YCSB.quantities))[0] == ("gain", pytest.approx(0.895, abs=0.005))
    assert remedies(answer_of(RESULT, YCSB.quantities), "")[0] == REMEDIES["gain"]
    noisy = {**RESULT["budget"], "baseline": {"value": 5.0, "u": None, "unit": "J"}}
    assert "(--idle 60)" in remedies(answer_of({"budget": noisy}, YCSB.quantities), "")[0]


@pytest.mark.parametrize("part", ["quantisation", "alignment", "baseline", "repeats"])
def test_more_of_the_same_is_not_advised_once_the_headline_is_known_to_3_per_cent(part: str) -> None:
    budget = {
        "budget": {
            part: {"value": 1.0, "u": None, "unit": "J"},
            "repeats": {"value": 0.1, "u": None, "unit": "J"},
        }
    }
    key = YCSB.quantities.headline.key
    for u, advised in ((0.031, 1), (0.03, 0)):
        known = {key: {"value": 1.0, "u": u, "unit": "J"}, **budget}
        assert len(remedies(answer_of(known, YCSB.quantities), "--seconds 30", idle_s=3.0)) == advised


@pytest.mark.parametrize("part", ["quantisation", "alignment"])
def test_advice_is_in_the_words_of_the_study(part, tmp_path: Path) -> None:
    """A command has no operations of which there could be more."""
    make_record(tmp_path)
    run = RunRecord.open(tmp_path).run
    budget = {"budget": {part: {"value": 1.0, "u": None, "unit": "J"}}}
    small = {"marginal_energy_j": {"value": 1.0, "u": 0.5, "unit": "J"}}
    for of in (budget, budget | small):
        advice = {
            wording: " ".join(remedies(answer_of(of, wording.quantities), wording.more(run)))
            for wording in (YCSB, COMMAND)
        }
        assert "(--seconds 40, or --operations 80000)" in advice[YCSB]
        assert "operation" not in advice[COMMAND]
        assert "command" in advice[COMMAND]


def test_a_short_run_has_one_number_of_operations_in_note_and_advice(tmp_path: Path) -> None:
    make_record(tmp_path)
    note = Notice(NoticeKind.TOO_SHORT, "it took 9 samples", "--seconds 50, or --operations 340000")
    uncertain = {"value": 1.0, "u": 0.5, "unit": "J"}
    put_result(
        tmp_path,
        {
            **RESULT,
            "marginal_energy_j": uncertain,
            "notices": [note],
        },
    )
    said = " ".join(summary(tmp_path).split())
    assert "measure more work (--seconds 50, or --operations 340000)" in said
    assert set(re.findall(r"--operations (\d+)", said)) == {"340000"}


def test_a_command_that_marks_nothing_is_not_spoken_of_in_operations(tmp_path: Path) -> None:
    make_record(tmp_path)
    RunRecord.open(tmp_path).update(plan={"study": {"name": "command", "command": ["job"]}}, asked={"study": "command"})
    none = {**RESULT, "operations": {"value": 0.0, "u": 0.0, "unit": "1"}}
    put_result(tmp_path, none)
    printed = summary(tmp_path)
    assert "operation" not in printed
    assert "above idle" in printed and "throughput" not in printed and "latency" not in printed
    put_result(tmp_path, RESULT)
    assert "throughput" in summary(tmp_path)


def test_every_part_of_a_budget_has_a_remedy() -> None:
    assert set(RESULT["budget"]) == set(REMEDIES)


@pytest.mark.parametrize(
    ("cause", "apart", "says"),
    [
        (Cause.COLLINEAR, "--design", "(--design): they separate read"),
        (Cause.TOO_WIDE, "--design", "(--design): they separate read"),
        (Cause.TOO_WIDE, "", "(more operations)"),
        (Cause.FEW_WINDOWS, "--design", "(more operations)"),
    ],
)
def test_kinds_that_cannot_be_told_apart_lead_to_mix_blocks_or_to_more_work(
    cause: Cause, apart: str, says: str
) -> None:
    untold = {"value": None, "u": None, "unit": "J", "reason": "any words", "cause": cause}
    energy = {"value": 1e-6, "u": 1e-7, "unit": "J"}
    kinds = {"read": {"energy_per_operation_j": untold}, "update": {"energy_per_operation_j": energy}}
    advice = remedies(answer_of({"by_operation": kinds}, YCSB.quantities), "more operations", apart)
    assert len(advice) == 1 and says in advice[0]
    known = {"update": {"energy_per_operation_j": energy}}
    assert remedies(answer_of({"by_operation": known}, YCSB.quantities), "more operations", apart) == []
    withheld = {"by_operation": untold}
    assert remedies(answer_of(withheld, YCSB.quantities), "more operations", apart) == []


def test_a_run_in_mix_blocks_says_so(tmp_path: Path) -> None:
    make_record(tmp_path)
    plain = RunRecord.open(tmp_path).run
    assert YCSB.notes(plain) == [] and YCSB.apart(plain) == "--design"
    summary = LoaderSummary(mix_blocks=600, workload={**plain.summary.workload, "mixblock.length_s": "0.1"})
    blocks = structs.replace(plain, loader={"run-1": summary})
    assert YCSB.notes(blocks) == []
    assert YCSB.apart(blocks) == ""
    assert "blocks of 0.1 s" in YCSB.work(blocks)
    streamed = structs.replace(plain, found=structs.replace(plain.found, generator=Generator("ycsb", runs_on="host")))
    assert YCSB.apart(streamed) == ""


def test_json_holds_every_caution_that_the_terminal_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each banner is in `simulated` or `notices`, and each of those is printed."""
    record = make_record(tmp_path)
    record.add_notices(Notice(NoticeKind.NOTE, "this computer's disk was slower than the simulated medium"))
    said = [Notice(NoticeKind.BUSY, "others took 40 %"), Notice(NoticeKind.UNSTEADY, "one repeat is far off")]
    put_result(tmp_path, {**RESULT, "notices": [*record.run.notices, *said]})
    record = RunRecord.open(tmp_path)
    record.add_notices(Notice(NoticeKind.FAULT, "the board was throttled"))
    record.finish("complete")
    (tmp_path / "events.parquet").write_bytes(b"changed")
    assert main(["runs", "show", str(tmp_path), "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    printed = [line.strip() for line in summary(tmp_path, width=1000).splitlines()]
    titles = {kind.upper(): kind for kind in NoticeKind}
    banners = [line for line in printed if line.split("  ")[0] in titles]
    assert told["simulated"] is True and told["status"] == "complete"
    kinds = [NoticeKind.ALTERED, NoticeKind.FAULT, NoticeKind.NOTE, NoticeKind.BUSY, NoticeKind.UNSTEADY]
    assert [notice["kind"] for notice in told["notices"]] == kinds
    assert [titles[line.split("  ")[0]] for line in banners] == [NoticeKind.SIMULATED, *kinds]
    for notice, banner in zip(told["notices"], banners[1:], strict=True):
        assert notice["line"].lower() in banner.lower()
