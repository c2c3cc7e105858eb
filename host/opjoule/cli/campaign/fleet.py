"""`host/campaign.py scheduler`, `worker` and `cell`, and a campaign on the rigs of a scheduler."""

import asyncio
import logging
import os
import signal
import sys
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from opjoule.base.errors import BadInput, Interrupted, OpJouleError
from opjoule.base.files import ProcessFolder, write_whole
from opjoule.base.scripts import HOST, MEASURE, ROOT, script_name
from opjoule.boards.rig import read_rig
from opjoule.campaign.campaign import Campaign, concluded, in_condition
from opjoule.campaign.fleet_rig import (
    JOB,
    OUTCOME,
    Job,
    Outcome,
    RigService,
    campaign_id,
    cell_needs,
    job_id,
    resources,
    rig_has,
    serve,
)
from opjoule.cli.campaign.file import CampaignFile, written_cell
from opjoule.cli.campaign.options import (
    CampaignOptions,
    RigCell,
    SchedulerOptions,
    StudyOptions,
    TlsOptions,
    WorkerOptions,
)
from opjoule.cli.failures import ENDING
from opjoule.cli.measure.command import alone_here, check_here, check_plans, exit_status, measure_again
from opjoule.cli.measure.options import PlanningOptions
from opjoule.cli.measure.planning import make_plan, rig_notices
from opjoule.pages.comparison import write_campaign_page
from opjoule.runs.measuring.plan import Plan
from opjoule.runs.record.directory import held

AGAIN_S: Final = 2.0
"""Time between two attempts of a worker to reach its scheduler [s]."""


def run_scheduler(options: SchedulerOptions) -> int:
    """Serves the scheduler of `distributed` until Ctrl-C."""
    asyncio.run(_schedule(options))
    raise Interrupted("ended; campaigns and workers wait for the next scheduler")


async def _schedule(options: SchedulerOptions) -> None:
    from distributed import Scheduler  # noqa: PLC0415  # loaded only if needed

    made: Any = Scheduler
    scheme, stop = "tls" if options.tls_files else "tcp", _ending()
    address = f"{scheme}://{options.host}:{options.port}"
    where = {"host": options.host, "port": options.port, "protocol": scheme, "security": security(options)}
    scheduler = made(**where, **_own_settings("scheduler"))
    try:
        await scheduler
    except RuntimeError as error:
        why = getattr(error.__cause__, "strerror", None) or error
        raise BadInput(f"{address}: {why}: give another --host or --port") from None
    print(f"{address}, until Ctrl-C", file=sys.stderr, flush=True)
    await stop.wait()
    await scheduler.close()


def _own_settings(part: str) -> dict[str, Any]:
    """Arguments with which a scheduler or worker serves no pages and is quiet: Dask always has its HTTP server."""
    import dask  # noqa: PLC0415  # loaded only if needed

    for name in ("distributed", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a stranger's bytes at a port are no news
    dask.config.set({f"distributed.{part}.http.routes": []})
    return {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


def _ending() -> asyncio.Event:
    """Event that Ctrl-C, SIGTERM or a closed terminal sets."""
    stop = asyncio.Event()
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def security(options: TlsOptions) -> Any:
    """TLS settings from the options; None without TLS. Raises: BadInput: a file is missing."""
    if not options.tls_files:
        return None
    from distributed import Security  # noqa: PLC0415  # loaded only if needed

    files = {"cert": str(options.tls_cert), "key": str(options.tls_key)}
    roles = {f"tls_{role}_{kind}": file for role in ("client", "worker", "scheduler") for kind, file in files.items()}
    for path in options.tls_files:
        if not path.is_file():
            raise BadInput(f"{path} does not exist: give PEM files to --tls-ca-file, --tls-cert and --tls-key")
    made: Any = Security
    return made(require_encryption=True, tls_ca_file=str(options.tls_ca_file), **roles)


def run_worker(options: WorkerOptions, command: Sequence[str] = ()) -> int:
    """Measures for campaigns until Ctrl-C.

    Args:
        command: program that measures the job in the folder given as its last argument; empty: measure.py.
    Raises: BadInput: rig.toml or the address is invalid.
    """
    rig = read_rig(options.rig) if options.rig else None
    spool = options.spool or ROOT / "build" / "spool" / options.name
    spool.mkdir(parents=True, exist_ok=True)

    def say(line: str) -> None:
        print(f"{options.name}: {line}", file=sys.stderr, flush=True)

    measures = command or (sys.executable, str(HOST / MEASURE), "campaign", "cell")
    cell_command = [*measures, "--name", options.name]
    if options.rig:
        cell_command += ["--rig", str(options.rig.absolute())]
    service = RigService(options.name, spool, cell_command, say)
    has = rig_has(rig)
    say(f"has {', '.join(sorted(has))}; records not yet fetched: {sum(1 for _ in spool.iterdir())}")
    with held(spool):
        asyncio.run(_work(options, service, has))
    raise Interrupted("ended; records not yet fetched are fetched when the worker is started again")


async def _work(options: WorkerOptions, service: RigService, has: frozenset[str]) -> None:
    """Starts a new Dask worker whenever the scheduler is back, since a worker ends with it; measurements go on."""
    stop = _ending()
    serve(service)
    ended = asyncio.create_task(stop.wait())
    shown = ""
    while not stop.is_set():
        working = asyncio.create_task(_work_once(options, service, has))
        await asyncio.wait({working, ended}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            await service.stop()
        working.cancel()
        [result] = await asyncio.gather(working, return_exceptions=True)
        why = f" ({result})" if isinstance(result, Exception) and str(result) else ""
        line = f"the scheduler at {options.scheduler} is away{why}: waiting for it"
        if not stop.is_set():
            if line != shown:
                service.say(line)
            shown = line
            await asyncio.wait({ended}, timeout=AGAIN_S)


async def _work_once(options: WorkerOptions, service: RigService, has: frozenset[str]) -> None:
    from distributed import Worker  # noqa: PLC0415  # loaded only if needed
    from distributed.comm.addressing import get_address_host_port  # noqa: PLC0415
    from distributed.utils import get_ip  # noqa: PLC0415

    where: Any = get_address_host_port
    host = options.host or get_ip(*where(options.scheduler))  # type: ignore[no-untyped-call]
    with ProcessFolder("opjoule-worker-") as scratch:
        worker: Any = Worker(
            options.scheduler,
            nthreads=1,
            name=service.name,
            resources=dict(resources(has)),
            security=security(options),
            host=host,
            local_directory=scratch,
            memory_limit=0,
            **_own_settings("worker"),
        )
        try:
            await worker
            service.say(f"works for {options.scheduler}")
            await worker.finished()
        finally:
            with suppress(Exception):  # the connection may be gone
                await worker.close(timeout=1)


def run_cell(cell: RigCell) -> int:
    """Measures a worker's job in its folder; ends as by Ctrl-C when the worker has ended."""
    _end_with_worker()
    job = msgspec.json.decode((cell.place / JOB).read_bytes(), type=Job)
    try:
        outcome = Outcome(_measure_cell(job, cell))
    except Interrupted:
        raise
    except OpJouleError as error:
        outcome = Outcome(error.exit_code, str(error))
    write_whole(cell.place / OUTCOME, msgspec.json.encode(outcome))
    return outcome.status


def _measure_cell(job: Job, cell: RigCell) -> int:
    options = replace(cell.options, rig_seed=zlib.crc32(f"{job.seed} {cell.name}".encode()))
    plan = plan_of_job(job, options, cell.name)
    [rig] = check_plans([(plan, options)])
    for notice in rig_notices(plan, rig, options):
        print(f"{script_name()}: warning: {notice.text}", file=sys.stderr)
    check_here(plan)
    with alone_here():
        return exit_status(measure_again(plan, rig, options, cell.place / job.name)[0])


def plan_of_job(job: Job, options: PlanningOptions, name: str) -> Plan:
    """Plan of a job on the rig of this name. Raises: BadInput: it differs from that of the campaign's computer."""
    plan = in_condition(make_plan(options), job.condition)
    asked = {**plan.asked, "repeats": 1, "block": job.block, "rig_name": name}
    plan = replace(plan, repeats=1, asked=asked)
    if plan.sha256 != job.plan_sha256:
        raise BadInput(
            f"{job.title}: the plan is different on this computer: install the OpJoule version and the workload or "
            "study files of the campaign's computer"
        )
    return plan


def _end_with_worker() -> None:
    """Ends this process when the worker ends: only the worker holds the other end of standard input."""
    worker = os.dup(0)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)

    def watch() -> None:
        with suppress(OSError):
            while os.read(worker, 1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def jobs_of(file: CampaignFile, campaign: Campaign) -> list[Job]:
    """The jobs that are sent to rigs, one per cell of the campaign."""
    written_cells = {tuple(cell.condition.items()): written_cell(cell.options) for cell in file.cells}
    name = campaign_id(campaign.folder)
    return [
        Job(
            job_id(name, *cell.identity),
            name,
            f"{file.name}, block {cell.block}, {cell.plan.condition_name}",
            *written_cells[tuple(cell.plan.condition.items())],
            dict(cell.plan.condition),
            cell.block,
            file.seed,
            cell.plan.sha256,
            cell.runs[-1].folder,
        )
        for cell in campaign.cells
    ]


def campaign_of(file: CampaignFile, cells: Sequence[tuple[Plan, PlanningOptions]], folder: Path) -> Campaign:
    """State of a campaign, read from the records in its folder."""
    plans = [plan for plan, _ in cells]
    return Campaign.of(plans, folder, seed=file.seed, retries=file.retries, resume=True, shared=file.shared)


def run_on_fleet(
    file: CampaignFile,
    options: CampaignOptions | StudyOptions,
    cells: Sequence[tuple[Plan, PlanningOptions]],
    folder: Path,
) -> int:
    """Measures the missing cells of a campaign on the rigs of --scheduler.

    Raises: RigFault: no scheduler, or no rig for the remaining cells. Interrupted: Ctrl-C.
    """
    from opjoule.campaign.fleet import Fleet  # noqa: PLC0415  # a lone rig needs no Dask

    assert options.scheduler
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        campaign = campaign_of(file, cells, folder)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)

        def measure_missing() -> None:
            jobs = jobs_of(file, campaign)
            needs = [cell_needs(cell.plan, cell.plan.asked["meter"]) for cell in campaign.cells]
            Fleet(campaign, jobs, needs, str(options.scheduler), security(options), options.wait).run()

        try:
            measure_missing()
            while file.until and campaign.needs_block(file.until):
                campaign.add_block()
                measure_missing()
        finally:
            campaign.save()
            write_campaign_page(folder)
        return concluded(campaign, json=options.json)
