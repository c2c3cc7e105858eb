"""What must not stand beside each other: figures refuse what a comparison refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opjoule.base.errors import BadInput
from opjoule.cli.commands import main
from opjoule.results.comparison.compared_run import allowed_groups
from opjoule.results.comparison.settings import GROUPS
from opjoule.runs.record.run_record import RunRecord
from report_record import make_record


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(argv) == BadInput.exit_code
    return capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"found": {"commit": "another"}}, "opjoule: commit"),
        ({"loader": {"run-1": {"settings": {"durability": "sync"}}}}, "durability"),
    ],
)
def test_figures_refuse_what_a_comparison_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, object], named: str
) -> None:
    make_record(tmp_path / "runs/a")
    make_record(tmp_path / "runs/b", storage="emmc")
    record = RunRecord.open(tmp_path / "runs/b")
    record.update(**changed)  # type: ignore[arg-type]
    record.finish("complete")
    figures = ["runs", "figures", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    for argv in (["compare", str(tmp_path / "runs"), "--by", "storage"], figures):
        said = refused(argv, capsys)
        assert "not comparable" in said and named in said
    assert not (tmp_path / "out").exists(), "nothing is drawn that is refused in words"
    allowed = said.split("--although ")[1].strip()
    assert main([*figures, "--although", allowed]) == 0
    assert named in capsys.readouterr().out


def test_a_name_that_is_no_group_is_refused() -> None:
    assert allowed_groups(" durability, short ") == {"durability", "short"} and not allowed_groups(None)
    with pytest.raises(BadInput, match="durabilty"):
        allowed_groups("durabilty")


def test_the_page_lists_every_group_under_its_name() -> None:
    page = Path(__file__).resolve().parents[4] / "docs/how-to/compare-runs.md"
    table = page.read_text().partition("| group | what is in it |\n")[2].partition("\n\n")[0]
    listed = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(GROUPS), f"{page.name}, table of groups: add or remove {set(listed) ^ set(GROUPS)}"
