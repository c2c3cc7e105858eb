"""Exports of a run, read back by others' readers: Perfetto's schema, Prometheus's parser, a CSV reader."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import opjoule
import pytest
from hdrh.histogram import HdrHistogram
from opjoule.base.units import from_json
from opjoule.cli.commands import main
from opjoule.results.exports import csv as csv_format
from opjoule.results.exports import formats, hdr, perfetto, writer
from opjoule.results.exports.openmetrics import openmetrics
from opjoule.runs.record.phases import Role
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from raw_record import OPERATIONS, REPEATS, finished_record
from report_record import GAPS_S, make_record, make_trace

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/work-with-runs.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return opjoule.open_run(finished_record(tmp_path_factory.mktemp("runs") / "record").directory)


class PerfettoFile:
    """What Perfetto's own schema reads of a file: tracks by name, slices and counter values on them."""

    def __init__(self, path):
        packets = Trace.FromString(path.read_bytes()).packet
        assert all(packet.ByteSize() for packet in packets)
        described = [packet.track_descriptor for packet in packets if packet.HasField("track_descriptor")]
        self.tracks = {track.uuid: track for track in described}
        assert len(self.tracks) == len(described), "each track has a number of its own"
        self.slices, self.values, self.moments = defaultdict(list), defaultdict(list), defaultdict(list)
        open_slices = {}
        for packet in packets:
            if not packet.HasField("track_event"):
                continue
            event, name = packet.track_event, self.tracks[packet.track_event.track_uuid].name
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                assert event.track_uuid not in open_slices, "slices of one track do not overlap"
                open_slices[event.track_uuid] = (packet.timestamp, event.name)
            elif event.type == TrackEvent.TYPE_SLICE_END:
                start_ns, title = open_slices.pop(event.track_uuid)
                self.slices[name].append((start_ns, packet.timestamp, title))
            elif event.type == TrackEvent.TYPE_INSTANT:
                self.moments[name].append((packet.timestamp, event.name))
            else:
                assert event.type == TrackEvent.TYPE_COUNTER and self.tracks[event.track_uuid].HasField("counter")
                self.values[name].append((packet.timestamp, event.double_counter_value))
        assert not open_slices


def test_each_module_of_the_folder_is_an_option_of_the_command(capsys):
    with pytest.raises(SystemExit):
        main(["runs", "export", "--help"])
    said = capsys.readouterr().out
    assert {"csv", "hdr", "openmetrics", "perfetto"} <= set(formats())
    assert all(f"--{name} PATH" in said and callable(writer(name)) for name in formats())


@pytest.mark.parametrize("name", formats())
def test_each_format_has_an_example_in_the_docs_and_marks_a_simulated_run(run, tmp_path, name):
    page = PAGE.read_text()
    assert f" --{name} " in page, f"give an example of `runs.py export RUN --{name} PATH` in {PAGE.name}"
    assert run.simulated
    list(writer(name)(run, tmp_path / "exported"))
    written = [path for path in (tmp_path / "exported", *(tmp_path / "exported").glob("*")) if path.exists()]
    texts = [path.name.encode() + (path.read_bytes() if path.is_file() else b"") for path in written]
    marked = any(b"SIMULATED" in text or b'simulated="true"' in text for text in texts)
    assert marked, f"exports/{name}.py writes a simulated run without SIMULATED in a file's name or text"


def exported(run, tmp_path, most=None):
    assert len(list(perfetto.write(run, tmp_path / "trace", most))) == 1, "nothing is lacking"
    return PerfettoFile(tmp_path / "trace")


def test_perfetto_reads_phases_operations_and_power_where_they_were(run, tmp_path):
    trace = exported(run, tmp_path)
    assert "SIMULATED" in trace.tracks[1].name and trace.tracks[1].process.process_name == run.title
    wanted = [
        (round(phase.start_s * 1e9), round(phase.end_s * 1e9), f"{phase.name} {phase.repeat}") for phase in run.phases
    ]
    assert trace.slices["phases"] == wanted
    operations = trace.slices["operations, thread 0"]
    assert len(operations) == OPERATIONS * REPEATS
    assert sum(uuid > 0 and track.name.startswith("operations") for uuid, track in trace.tracks.items()) == 1
    lengths_ns = np.array([end - start for start, end, _ in operations])
    assert lengths_ns == pytest.approx(run.operations["duration_ns"], abs=2, rel=1e-3)
    assert {title for *_, title in operations} == {"read", "update"}
    stamps_ns, watts = map(np.array, zip(*trace.values["power, SIMULATED"], strict=True))
    power = run.power
    assert watts == pytest.approx(power["power_w"])
    assert stamps_ns[1:] == pytest.approx((power["time_s"][1:] + power["time_s"][:-1]) / 2 * 1e9, abs=1)
    assert len(trace.moments["sync-edge"]) == 2 * REPEATS


def test_a_thinned_out_trace_says_so_and_keeps_the_extremes(run, tmp_path):
    trace = exported(run, tmp_path, most=100)
    every = OPERATIONS * REPEATS // 100
    assert len(trace.slices[f"operations, thread 0, every {every}th"]) == 100
    greatest = next(values for name, values in trace.values.items() if name.startswith("power, greatest of"))
    assert max(watts for _, watts in greatest) == pytest.approx(np.nanmax(run.power["power_w"]))
    assert len(greatest) <= 100


def test_lost_samples_are_a_slice_and_overlapping_work_has_tracks_of_its_own(tmp_path):
    make_record(tmp_path / "record")
    run = opjoule.open_run(tmp_path / "record")
    trace = exported(run, tmp_path)
    assert [title for *_, title in trace.slices["lost samples"]] == [f"{lost} samples lost" for _, lost in GAPS_S]
    assert len(trace.slices["compaction"]) == 4 and len(trace.slices["flush"]) == 5
    assert sum(track.name == "operations, thread 0" for track in trace.tracks.values()) > 1, (
        "they overlap in this record"
    )
    assert trace.values["dirty pages"]


def test_a_trace_on_its_own_is_exported_with_what_it_has(tmp_path):
    make_trace(tmp_path / "record")
    run = opjoule.open_run(tmp_path / "record")
    *lacking, _ = perfetto.write(run, tmp_path / "trace")
    assert len(lacking) == 3 and all(".parquet: not in" in line for line in lacking)
    assert PerfettoFile(tmp_path / "trace").values["power"]


def test_prometheus_reads_every_number_of_the_result(run):
    families = {family.name: family for family in text_string_to_metric_families(openmetrics(run))}
    [info] = families["opjoule_run"].samples
    assert info.labels["simulated"] == "true" and info.labels["db"] == "leveldb" and "SIMULATED" in info.labels["title"]
    for path, name in {
        "marginal_energy_per_operation_j": "opjoule_marginal_energy_per_operation{}_joules",
        "throughput_per_s": "opjoule_throughput{}_per_second",
        "power_w": "opjoule_power{}_watts",
    }.items():
        value, u = run[path].value, run[path].u
        assert [sample.value for sample in families[name.format("")].samples] == [value]
        assert [sample.value for sample in families[name.format("_expanded_uncertainty")].samples] == [u]
        assert families[name.format("")].unit and families[name.format("")].type == "gauge"
    assert {sample.labels["part"] for sample in families["opjoule_by_operation_count"].samples} == {
        "read",
        "update",
    }
    assert families["opjoule_latency_p99_seconds"].samples[0].value == run["latency_s.p99"].value


def test_names_from_the_record_cannot_break_the_openmetrics_text(tmp_path):
    name = 'a"b\\c\nd'
    make_record(tmp_path / "record", device=name)
    text = openmetrics(opjoule.open_run(tmp_path / "record"))
    [info] = {family.name: family for family in text_string_to_metric_families(text)}["opjoule_run"].samples
    assert info.labels["device"] == name


def test_csv_files_hold_the_tables_and_the_numbers(run, tmp_path):
    lines = list(csv_format.write(run, tmp_path))
    assert len(lines) == 8 and not any(line.startswith("no ") for line in lines)
    with (tmp_path / "operations-SIMULATED.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(run.operations) and {row["kind"] for row in rows} == {"read", "update"}
    with (tmp_path / "result-SIMULATED.csv").open() as file:
        numbers = {row["path"]: row for row in csv.DictReader(file)}
    wanted = from_json(run.result["energy_j"])
    assert float(numbers["energy_j"]["value"]) == wanted.value and float(numbers["energy_j"]["u"]) == wanted.u
    assert numbers["harness_energy_j"]["value"] == "" and numbers["harness_energy_j"]["reason"]
    with (tmp_path / "repeats-SIMULATED.csv").open() as file:
        repeats = [float(row["value"]) for row in csv.DictReader(file) if row["path"] == "energy_j"]
    assert len(repeats) == run.result["repeats"] and np.mean(repeats) == pytest.approx(wanted.value)


def test_every_export_of_a_partial_run_holds_its_fault(tmp_path):
    make_record(tmp_path / "record", status="partial")
    run = opjoule.open_run(tmp_path / "record")
    fault = "cable pulled after 31.0 s"
    ending, warning = {family.name: family for family in text_string_to_metric_families(openmetrics(run))}[
        "opjoule_warning"
    ].samples
    assert (ending.labels["title"], warning.labels["title"]) == ("PARTIAL", "FAULT")
    assert fault in warning.labels["text"]
    list(perfetto.write(run, tmp_path / "trace"))
    _, (_, title) = PerfettoFile(tmp_path / "trace").moments["warnings"]
    assert title.startswith("FAULT") and fault in title
    list(csv_format.write(run, tmp_path))
    with (tmp_path / "warnings-SIMULATED.csv").open() as file:
        rows = {row["title"]: row["text"] for row in csv.DictReader(file)}
    assert fault in rows["FAULT"] and "SIMULATED" in rows


def test_hdrhistogram_reads_the_latencies_of_each_kind(run, tmp_path):
    """HdrHistogram's own reader finds as many values, and percentiles within its 1/1,024."""
    lines = list(hdr.write(run, tmp_path))
    operations, works = (
        run.operations,
        [phase for phase in run.answer.record.run.phases if phase.role is Role.WORK],
    )
    assert len(lines) == len(set(operations["kind"][operations["ok"]].tolist()))
    for path in tmp_path.iterdir():
        rows = [line for line in path.read_text().splitlines() if line[0].isdigit()]
        assert len(rows) == len(works)
        for row, phase in zip(rows, works, strict=True):
            start_ns, end_ns = phase.start_board_ns, phase.end_board_ns
            inside = (operations["board_ns"] >= start_ns) & (operations["board_ns"] < end_ns)
            chosen = inside & operations["ok"] & (operations["kind"] == path.stem.removesuffix("-SIMULATED"))
            values = np.sort(operations["duration_ns"][chosen])
            read = HdrHistogram.decode(row.split(",")[3])
            assert read.get_total_count() == len(values)
            for percentile in (50, 95, 99, 100):
                exact = values[max(int(np.ceil(percentile / 100 * len(values))), 1) - 1]
                assert read.get_value_at_percentile(percentile) == pytest.approx(exact, rel=1 / 1024)
