"""Figures from records: what is drawn is what the records say, nothing is cut off, SIMULATED stands in all."""

import contextlib
import csv
import io
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import opjoule
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from opjoule.base.errors import BadInput
from opjoule.cli import commands
from opjoule.cli.commands import main
from opjoule.pages.comparison import forest
from opjoule.pages.drawing import printed as back_end
from opjoule.pages.drawing.printed import FORMATS, printed, save
from opjoule.pages.plots import figures
from opjoule.pages.plots.cells import Plot
from opjoule.pages.plots.figures import FIGURES, csv_table, latex_table, methods, write_figures
from opjoule.results.comparison.cell import plotted
from opjoule.results.comparison.contrasts import Question, compare
from opjoule.results.comparison.index import ConditionRun, gather, write_index
from opjoule.results.long_table import NOT_IDENTIFIABLE
from opjoule.runs.studies.definition import EXACT, Counterpart
from opjoule.runs.studies.folder import find_study
from plotted_runs import ABOVE_IDLE, DATABASES, MEDIA, TOLD, make_runs, result, scaled
from report_record import make_record, make_trace, put_result

ROOT = Path(__file__).resolve().parents[4]
WRITTEN = ("energy-power", "energy-by-activity")
"""The others are drawn below, without a file."""
BEGINS = {"pdf": b"%PDF-", "svg": b"<?xml", "png": b"\x89PNG"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def layout(folder):
    return drawn_of(folder)


@pytest.fixture(scope="module")
def figure_files(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "FIGURES", {name: FIGURES[name] for name in WRITTEN})
        assert main(["runs", "figures", str(folder), "--out", str(out)]) == 0
    return out, output.getvalue().splitlines()


def drawn_of(*places):
    return plotted(*gather(map(str, places)))


def figure(name, layout):
    made = printed(FIGURES[name].draw(layout))
    FigureCanvasAgg(made).draw()
    return made


@pytest.mark.slow
def test_figures_are_written_in_every_format_and_say_simulated(figure_files):
    out, lines = figure_files
    assert {path.name for path in out.iterdir()} == {
        *(f"{name}.{kind}" for name in WRITTEN for kind in FORMATS),
        *("table.csv", "table.tex", "methods.txt"),
    }
    assert lines[0].startswith("ONE RUN: 9 of 9 cells") and len(lines) == len(WRITTEN) + 4
    for path in out.iterdir():
        if path.suffix[1:] in BEGINS:
            assert path.read_bytes().startswith(BEGINS[path.suffix[1:]])
        if path.suffix not in {".png", ".pdf"}:
            assert "simulated" in path.read_text().lower(), path


def test_the_same_records_make_the_same_files(layout, figure_files, tmp_path):
    for path in save(printed(FIGURES["energy-power"].draw(layout)), tmp_path, "energy-power"):
        assert path.read_bytes() == (figure_files[0] / path.name).read_bytes(), path.suffix


def test_bars_and_points_stand_where_the_records_say(layout):
    made = figure("bandwidth-latency", layout)
    left, right = made.axes
    assert "MB/s" in left.get_ylabel() and "ms" in right.get_ylabel()
    wanted = [
        result(database, medium)["bandwidth_bytes_per_s"]["value"] / 1e6 for medium in MEDIA for database in DATABASES
    ]
    assert [bar.get_height() for bar in left.patches] == pytest.approx(wanted)
    points = [line.get_ydata()[0] for line in right.lines if line.get_marker() == "D"]
    latency = [
        result(database, medium)["latency_s"]["mean"]["value"] * 1e3 for medium in MEDIA for database in DATABASES
    ]
    assert points == pytest.approx(latency)
    for axes, values in ((left, wanted), (right, latency)):
        assert max(values) > 10 * min(values) and axes.get_yscale() == "log"
        low, high = axes.get_ylim()
        assert 0 < low < min(values) and max(values) < high


def test_bars_that_lie_close_begin_at_zero(tmp_path):
    for medium in MEDIA:
        make_record(tmp_path / medium, db="leveldb", storage=medium)
    left = figure("energy-power", drawn_of(tmp_path)).axes[0]
    assert left.get_yscale() == "linear" and left.get_ylim()[0] == 0.0


def test_what_kinds_cost_all_told_has_a_panel_each_and_says_where_it_is_not_identifiable(layout):
    panels = figure("energy-all-told", layout).axes
    for axes, (kind, joules) in zip(panels, TOLD.items(), strict=True):
        assert axes.get_ylabel() == f"{kind}, all told [mJ]"
        factors = [(1 + number) * of_medium for of_medium in (6, 2, 1) for number in range(len(DATABASES))]
        told = [1e3 * joules * factor for factor in factors]
        untold = [text for text in axes.texts if text.get_text() == NOT_IDENTIFIABLE]
        if kind == "read":
            told = [value for at, value in enumerate(told) if at % 3 != DATABASES.index("sqlite")]
            assert [text.xy[0] for text in untold] == pytest.approx([at + 0.8 / 3 for at in range(3)])
        assert len(untold) == (3 if kind == "read" else 0)
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(told)
        spans = [bar.get_segments()[0][:, 1] for bar in axes.collections]
        assert [high - low for low, high in spans] == pytest.approx([0.04 * value for value in told])


def test_without_kinds_there_is_no_figure_of_what_they_cost_all_told(tmp_path):
    make_record(tmp_path / "old", db="leveldb")
    lines = list(write_figures([str(tmp_path / "old")], tmp_path / "out"))
    assert not list((tmp_path / "out").glob("energy-all-told*"))
    assert any(line.startswith("not drawn: energy-all-told: no run has") for line in lines)


def test_intervals_are_drawn_as_stated(layout):
    left, right = figure("energy-power", layout).axes
    for axes, key, scale in ((left, "energy_j", 1e-3), (right, "power_w", 1.0)):
        spans = [bar.get_segments()[0][:, 1] for bar in axes.collections]
        stated = [result(database, medium)[key] for medium in MEDIA for database in DATABASES]
        assert len(spans) == len(stated)
        for (low, high), number in zip(spans, stated, strict=True):
            assert high - low == pytest.approx(2 * number["u"] * scale)
            assert low + high == pytest.approx(2 * number["value"] * scale)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """With long names and many groups, as a campaign over several axes has."""
    folder = tmp_path_factory.mktemp("crowded")
    for database in ("leveldb", "a command with a long line of words"):
        for medium in MEDIA:
            for distribution in ("uniform", "s1-zipfian-read-1kb"):
                place = folder / database / f"{medium}-{distribution}"
                make_record(place, db=database, storage=medium, distribution=distribution)
                put_result(place, result(DATABASES[0], medium))
    return drawn_of(folder)


def tick_labels(axis):
    """Those that are drawn: of ticks inside the axis, none of a second axis' hidden one."""
    if not axis.get_visible():
        return []
    low, high = sorted(axis.get_view_interval())
    labels = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label for at, label in labels if low <= at <= high and label.get_text()]


@pytest.mark.parametrize("name", FIGURES)
def test_no_label_is_cut_off_or_stands_on_another(name, crowded):
    made = figure(name, crowded)
    [legend] = made.legends
    assert "SIMULATED" in legend.get_title().get_text()
    rows = [tick_labels(axis) for axes in made.axes for axis in (axes.xaxis, axes.yaxis)]
    words = [axis.label for axes in made.axes for axis in (axes.xaxis, axes.yaxis) if axis.label.get_text()]
    for text in (*(text for row in rows for text in row), *words, legend):
        box = text.get_window_extent()
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= made.bbox.x1 + 1 and box.y1 <= made.bbox.y1 + 1
        assert inside, f"cut off: {text}"
    for row in rows:
        for one, other in pairwise(label for label in row if label.get_rotation() in (0, 90)):
            assert not one.get_window_extent().overlaps(other.get_window_extent()), (one, other)
    assert not legend.get_window_extent().overlaps(made.axes[0].get_window_extent())


def test_the_plane_has_each_cell_at_its_energy_and_time(layout):
    axes = figure("energy-delay", layout).axes[0]
    points = [line for line in axes.lines if line.get_marker() in ("o", "s", "^")]
    results = [result(database, medium) for database in DATABASES for medium in MEDIA]
    assert [line.get_xdata()[0] for line in points] == pytest.approx(
        [1e3 / of["throughput_per_s"]["value"] for of in results]
    )
    assert [line.get_ydata()[0] for line in points] == pytest.approx([1e3 * of[ABOVE_IDLE]["value"] for of in results])
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_the_parts_of_a_stack_add_up_and_what_is_not_known_is_said(layout):
    for cell, stack in zip(layout.cells, layout.stacks, strict=True):
        assert sum(stack.values()) == pytest.approx(cell.number("marginal_energy_j").value)
        if cell.values["db"] == "SQLite":
            assert set(stack) == {NOT_IDENTIFIABLE}
        else:
            assert set(stack) == {
                "read",
                "update",
                "flush",
                "compaction",
                "write-back",
                "tail",
                NOT_IDENTIFIABLE,
            }
            assert stack[NOT_IDENTIFIABLE] == pytest.approx(0.05 * sum(stack.values()))


def test_a_result_that_withholds_its_kinds_has_them_as_one_part(tmp_path):
    make_runs(tmp_path)
    withheld = result("leveldb", "sd", 1)
    kinds = withheld["by_operation"].values()
    joules = sum(entry["energy_per_operation_j"]["value"] * entry["count"] for entry in kinds)
    withheld["by_operation"] = {"value": None, "u": None, "unit": "", "reason": "withheld"}
    withheld["by_activity"]["foreground"] = {"value": joules, "u": 0.1 * joules, "unit": "J"}
    put_result(tmp_path / "leveldb-sd-1", withheld)
    layout = drawn_of(tmp_path)
    parts = dict(zip(map(layout.name_of, layout.cells), layout.stacks, strict=True))
    assert parts["LevelDB, SD card"]["foreground"] == pytest.approx(joules)
    assert "foreground" in parts["RocksDB, SD card"], "the kinds are one part in every bar"
    assert not {"read", "update"} & {name for stack in layout.stacks for name in stack}


def test_a_part_that_one_run_refuses_is_not_drawn(tmp_path):
    """Told in one block, refused in the other: a mean of one would stand in a bar of two."""
    make_runs(tmp_path, blocks=2)
    refused = result("leveldb", "sd", 2)
    refused["by_activity"]["flush"] = {"value": None, "u": None, "unit": "J", "reason": "too few windows"}
    put_result(tmp_path / "leveldb-sd-2", refused)
    layout = drawn_of(tmp_path)
    [at] = [at for at, cell in enumerate(layout.cells) if layout.name_of(cell) == "LevelDB, SD card"]
    stack = layout.stacks[at]
    assert "flush" not in stack and "compaction" in stack
    assert sum(stack.values()) == pytest.approx(layout.cells[at].number("marginal_energy_j").value)


def test_runs_of_the_same_settings_are_one_bar_with_their_mean_and_spread(tmp_path):
    layout = drawn_of(make_runs(tmp_path, blocks=2))
    cell = layout.cell("LevelDB", "SD card")
    first, second = (result("leveldb", "sd", block)["energy_j"] for block in (1, 2))
    mean = cell.number("energy_j")
    assert len(cell.runs) == 2 and mean.value == pytest.approx((first["value"] + second["value"]) / 2)
    assert mean.u > second["u"]


def test_a_cell_without_a_value_has_a_dash_and_a_missing_cell_too(tmp_path):
    make_runs(tmp_path)
    for place in (tmp_path / "sqlite-sd-1").iterdir():
        place.unlink() if place.is_file() else None
    left, _ = figure("energy-power", drawn_of(tmp_path)).axes
    assert len(left.patches) == 8 and [text.get_text() for text in left.texts] == ["—"]


@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"order-of-measuring"}))
def test_energies_below_zero_and_cells_without_values_are_in_every_figure(name, tmp_path):
    """A short run's energy above idle is that of noise."""
    below, nothing = result("rocksdb", "sd"), result("leveldb", "sd")
    for key in ("marginal_energy_j", ABOVE_IDLE):
        below[key]["value"] *= -1
    for key, number in nothing.items():
        if "value" in (number if isinstance(number, dict) else {}):
            nothing[key] = {"value": None, "u": None, "unit": number["unit"], "reason": "withheld"}
    for database, numbers in (("rocksdb", below), ("leveldb", nothing)):
        make_record(tmp_path / database, db=database)
        put_result(tmp_path / database, numbers)
    made = figure(name, drawn_of(tmp_path))
    axes = made.axes[0]
    low, high = axes.get_ylim()
    assert low <= 0 < high
    if name == "energy-by-activity":
        assert low < -100 and axes.get_xlim()[0] < -0.4
    if name in ("energy-delay", "energy-throughput"):
        assert low < -10 and "LevelDB, SD card" in axes.get_xlabel()


def test_many_bars_lie_below_each_other_with_their_names_beside_them(layout, monkeypatch):
    monkeypatch.setattr(back_end, "LETTERS_MAX", 1000)
    upright = figure("energy-by-activity", layout)
    monkeypatch.setattr(back_end, "LETTERS_MAX", 90)
    lying = figure("energy-by-activity", layout)
    one, other = upright.axes[0], lying.axes[0]
    assert [bar.get_height() for bar in one.patches] == [bar.get_width() for bar in other.patches]
    names = [text.get_text() for text in other.get_yticklabels()]
    assert len(names) == len(layout.cells) and names[0] == layout.name_of(layout.cells[0])
    boxes = [text.get_window_extent() for text in other.get_yticklabels()]
    assert all(above.y0 >= below.y1 for above, below in pairwise(boxes)), "none on another, first on top"
    assert min(box.x0 for box in boxes) >= 0 and "energy above idle" in other.get_xlabel()


def test_what_cannot_stand_in_one_figure_is_refused(tmp_path):
    make_record(tmp_path / "a")
    make_record(tmp_path / "b", simulated=False)
    make_trace(tmp_path / "c")
    with pytest.raises(BadInput, match="simulated and measured"):
        drawn_of(tmp_path)
    with pytest.raises(BadInput, match=r"result\.json"):
        drawn_of(tmp_path / "c")
    [line] = drawn_of(tmp_path / "a", tmp_path / "c").left_out
    assert line.startswith(f"{tmp_path}/c: ") and "result.json" in line


def test_real_runs_do_not_say_simulated(tmp_path):
    make_record(tmp_path / "real", simulated=False)
    layout = drawn_of(tmp_path)
    texts = figure("energy-power", layout).findobj(lambda artist: hasattr(artist, "get_text"))
    assert not any("SIMULATED" in text.get_text() for text in texts)
    assert "SIMULATED" not in latex_table(layout) + methods(layout) and "false" in csv_table(layout)


def test_the_tables_hold_the_numbers(layout):
    rows = list(csv.DictReader(io.StringIO(csv_table(layout))))
    assert len(rows) == 9 and {row["simulated"] for row in rows} == {"true"}
    row = next(row for row in rows if (row["db"], row["storage"]) == ("LevelDB", "SSD on USB 3"))
    stated = result("leveldb", "ssd-usb3")[ABOVE_IDLE]
    assert (float(row[ABOVE_IDLE]), float(row[f"{ABOVE_IDLE}, u"])) == (stated["value"], stated["u"])
    read, update = (f"by_operation.{kind}.all_told_energy_per_operation_j" for kind in TOLD)
    assert (float(row[update]), float(row[f"{update}, u"])) == (TOLD["update"], 0.02 * TOLD["update"])
    assert next(row for row in rows if row["db"] == "SQLite")[read] == ""
    text = latex_table(layout)
    assert "& read, all told & update, all told" in text
    assert r"& $200.0 \pm 4.0$\,$\mu$J & $1.500 \pm 0.030$\,mJ" in text
    assert r"& not identifiable & $4.500 \pm 0.090$\,mJ" in text
    lines = [line for line in text.splitlines() if " & " in line]
    assert len(lines) == 10 and {line.count(" & ") for line in lines} == {9}
    assert r"LevelDB & SSD on USB 3 & $861 \pm 52$\,$\mu$J" in text and text.isascii()


def test_names_cannot_break_the_latex_table(tmp_path):
    make_record(tmp_path / "a", device="50%_of{it}&\\x")
    make_record(tmp_path / "b", device="other")
    assert r"50\%\_of\{it\}\&\textbackslash{}x" in latex_table(drawn_of(tmp_path))


def test_the_methods_name_versions_board_and_what_an_interval_is():
    text = methods(drawn_of(ROOT / "runs/example"))
    for words in (
        "OpJoule 0.1.0",
        "leveldb 1.23",
        "durability: async",
        "rpi4",
        "SSD on USB 3",
        "ina219",
        "expanded uncertainties (95 %)",
    ):
        assert words in text, words
    assert text.startswith("SIMULATED")


def test_set_up_brings_matplotlib_for_the_figures_alone():
    assert commands.parse(["runs", "figures"]).needs.figures
    assert not commands.parse(["runs", "list"]).needs.figures
    assert commands.parse(["compare", "runs", "--plot", "x.pdf"]).needs.figures
    assert not commands.parse(["compare", "runs"]).needs.figures


def test_the_citation_names_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(opjoule.__version__)}$", text, re.MULTILINE)
    assert text.startswith("cff-version: 1.2.0\n") and "\nlicense: MIT\n" in text


def test_an_axis_is_not_stretched_by_an_interval_far_beyond_all_values(tmp_path):
    """Two runs that differ have an interval of many times their value."""
    make_record(tmp_path / "first")
    make_record(tmp_path / "second")
    far = scaled(result("leveldb", "sd"), 3.0)
    put_result(tmp_path / "second", far)
    layout = drawn_of(tmp_path)
    mean = layout.cells[0].number("bandwidth_bytes_per_s")
    assert mean.u > 3 * mean.value
    low, high = figure("bandwidth-latency", layout).axes[0].get_ylim()
    assert low == 0.0 and mean.value / 1e6 < high < 3 * mean.value / 1e6
    low, high = figure("energy-throughput", layout).axes[0].get_xlim()
    assert low > 0.0 and high < 3 * layout.cells[0].number("throughput_per_s").value


@pytest.mark.parametrize("kind", FORMATS)
def test_ratios_are_drawn_in_the_format_of_the_files_name(folder, tmp_path, kind, capsys):
    target = tmp_path / f"ratios.{kind}"
    argv = [
        "compare",
        str(folder),
        "--by",
        "db",
        "--although",
        "storage",
        "--metric",
        f"{ABOVE_IDLE},power_w",
    ]
    assert main([*argv, "--plot", str(target)]) == 0
    assert target.read_bytes().startswith(BEGINS[kind])
    if kind == "svg":
        text = target.read_text()
        assert "SIMULATED" in text and "LevelDB / SQLite" in text and "ratio of power" in text


def test_the_forest_has_the_ratios_of_the_comparison_and_cuts_no_label(folder):
    runs, _ = gather([str(folder)])
    compared = compare(runs, Question(("db",), (ABOVE_IDLE,), although=frozenset(["storage"])))
    made = printed(forest(compared))
    canvas = FigureCanvasAgg(made)
    canvas.draw()
    axes = made.axes[0]
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert marks == pytest.approx([contrast.ratio.value for contrast in compared.contrasts])
    low, high = axes.get_xlim()
    assert low < 1.0 < high and axes.get_xscale() == "log"
    boxes = [text.get_window_extent() for text in [*axes.texts, *axes.get_yticklabels()]]
    assert all(box.x0 >= 0 and box.x1 <= made.bbox.width for box in boxes)
    assert all(one.y0 >= two.y1 - 1 for one, two in pairwise(box for box in boxes[: len(axes.texts)]))


def test_a_figure_for_print_of_another_kind_is_refused(capsys):
    with pytest.raises(SystemExit):
        commands.parse(["compare", "runs", "--plot", "x.gif"])
    assert ".pdf, .svg, .png" in capsys.readouterr().err


def test_a_figure_of_what_no_run_states_is_not_drawn(folder, tmp_path, capsys, monkeypatch):
    """A study's job moves no bytes through the loader: an empty pair of axes would say nothing."""
    nothing = Plot("no-such", lambda _cells: None, "no value")
    monkeypatch.setattr(figures, "FIGURES", {"energy-power": FIGURES["energy-power"], "no-such": nothing})
    assert main(["runs", "figures", str(folder), "--out", str(tmp_path)]) == 0
    assert "no-such: no value" in capsys.readouterr().out
    assert not list(tmp_path.glob("no-such*"))


def test_a_papers_figure_is_drawn_from_the_media_that_stand_for_its_own_alone(folder, tmp_path):
    shown = [
        Counterpart(name, "energy", EXACT, drawn=("energy-power",), media=media)
        for name, media in (("Figure 1", ("ssd*",)), ("Figure 2", ("sd", "emmc")), ("Figure 3", ()))
    ]
    study = replace(find_study("s2"), counterparts=tuple(shown))
    (record,) = folder.glob("sqlite-sd-1")
    list(write_figures([str(record)], tmp_path, study=study))
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == [
        "02-figure-2-energy-power.svg",
        "03-figure-3-energy-power.svg",
    ]


def test_stacked_bars_have_the_same_parts_in_one_order_and_colour(layout):
    """SQLite's bar has one part, and does not shift the others' colours; a page names all parts of each."""
    drawn_colours: dict[float, list[tuple]] = {}
    made = figure("energy-by-activity", layout)
    for patch in made.axes[0].patches:  # the bars are horizontal
        drawn_colours.setdefault(patch.get_y(), []).append(patch.get_facecolor())
    assert [len(colours) for colours in drawn_colours.values()] == [len(stack) for stack in layout.stacks]
    named = [text.get_text() for text in made.legends[0].get_texts()]
    assert named == [*layout.part_names, NOT_IDENTIFIABLE]
    order = [handle.get_facecolor() for handle in made.legends[0].get_patches()]
    for colours in drawn_colours.values():
        places = [order.index(colour) for colour in colours]
        assert places == sorted(places)
    assert all(list(stack) == [name for name in named if name in stack] for stack in layout.stacks)


def test_a_small_part_is_drawn_where_it_is_not_small_in_another_bar(tmp_path):
    make_runs(tmp_path)
    small = result("leveldb", "sd", 1)
    small["by_activity"]["flush"]["value"] *= 1e-4
    put_result(tmp_path / "leveldb-sd-1", small)
    layout = drawn_of(tmp_path)
    assert "flush" in layout.part_names
    assert sum("flush" in stack for stack in layout.stacks) == 6


def test_values_have_one_order_in_groups_and_cells_also_with_a_missing_cell(tmp_path):
    """The first database lacks the first medium: rows of a page and groups of bars agree all the same."""
    order = [(db, medium) for db in ("sqlite", "leveldb") for medium in ("ssd-usb3", "sd")][1:]
    runs = []
    for rank, (db, medium) in enumerate(order):
        make_record(tmp_path / f"{rank}", db=db, storage=medium)
        put_result(tmp_path / f"{rank}", result(db, medium))
        runs.append(ConditionRun(1, {"db": db, "storage": medium}, f"{rank}", rank=rank))
    write_index(tmp_path, runs, simulated=True)
    layout = drawn_of(tmp_path)
    assert layout.series == ["SQLite", "LevelDB"] and layout.groups == ["SD card", "SSD on USB 3"]
    of_leveldb = [cell.values["storage"] for cell in layout.cells if cell.values["db"] == "LevelDB"]
    assert of_leveldb == layout.groups


def test_values_without_a_campaign_are_in_the_order_of_comparisons(tmp_path):
    """Numbers by size, letters without regard to case: eMMC before the SD card, 4 before 16."""
    for threads in (16, 4):
        for medium in ("sd", "emmc"):
            place = tmp_path / f"{medium}-{threads}"
            make_record(place, storage=medium, threads=threads)
            put_result(place, result("leveldb", "sd"))
    layout = drawn_of(tmp_path)
    assert layout.series == ["eMMC", "SD card"] and layout.groups == ["4", "16"]
    compared = compare(gather([str(tmp_path)])[0], Question(("threads", "storage")))
    assert [group.name for group in compared.groups] == ["4 emmc", "4 sd", "16 emmc", "16 sd"]


def test_every_panel_of_ratios_has_the_same_rows(folder):
    """Also where the pair's greater side is another one by the second quantity."""
    runs, _ = gather([str(folder)])
    question = Question(("db",), (ABOVE_IDLE, "throughput_per_s"), although=frozenset(["storage"]))
    above, below = printed(forest(compare(runs, question))).axes
    rows = [[text.get_text() for text in axes.get_yticklabels()] for axes in (above, below)]
    assert rows[0] == rows[1] == ["LevelDB / RocksDB", "LevelDB / SQLite", "RocksDB / SQLite"]
    marks = [[line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"] for axes in (above, below)]
    assert all(ratio < 1.0 for ratio in marks[0]) and all(ratio > 1.0 for ratio in marks[1])
