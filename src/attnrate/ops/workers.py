"""Workers on this machine: one for each visible GPU, pinned to it, and others for what needs none. And who is idle."""

import importlib.util
import logging
from dataclasses import dataclass
from typing import Any

from distributed import LocalCluster, Scheduler
from distributed.core import Status

from attnrate import cores

MOST = 8  # workers beside those of the GPUs: as many stages of small models run side by side


@dataclass(frozen=True)
class Kind:
    """What a worker offers, and the GPUs it and its stages see: None is whatever this process sees."""

    resources: dict[str, int]
    devices: str | None = None

    def options(self) -> dict[str, Any]:
        """What Dask's nanny is told."""
        env = {} if self.devices is None else {"CUDA_VISIBLE_DEVICES": self.devices}
        return {"resources": self.resources, "env": env, "plugins": near(self.devices)}


BOTH, CPU, GPU = {"CPU": 1, "GPU": 1}, {"CPU": 1}, {"GPU": 1}


def layout(given: int | None, devices: list[str], cores: int, threads: int, launch: str, split: bool) -> list[Kind]:
    """The workers of this machine: `given` many, or as many as it has room for.

    split: some stages want a GPU, the others should leave it to them (the paper profile). A launcher of several
    processes, such as accelerate launch, gets all GPUs for one stage; python, after srun or not, one.
    """
    room = max(1, cores // threads)
    if not devices:
        return [Kind(BOTH)] * (given or room)  # what there is, as for `dvc repro`
    if not launch.endswith("python"):
        pinned = [Kind(GPU if split else BOTH, ",".join(devices))]
    elif given or not split:
        return [Kind(BOTH, devices[i % len(devices)]) for i in range(given or room)]
    else:
        pinned = [Kind(GPU, device) for device in devices]
    return [*pinned, *([Kind(CPU, "")] * min(MOST, max(1, room - len(pinned))) if split else [])]


def near(devices: str | None) -> list:
    """Keep a worker to the cores next to its GPU, where dask-cuda is installed.

    Of dask-cuda this alone is taken: its own cluster would open a CUDA context in each worker, and the GPU is the
    stage's, which is another process.
    """
    if not devices or "," in devices or importlib.util.find_spec("dask_cuda") is None:
        return []
    from dask_cuda.plugins import CPUAffinity
    from dask_cuda.utils import get_cpu_affinity

    return [CPUAffinity(get_cpu_affinity(int(devices) if devices.isdigit() else devices))]


class Local(LocalCluster):
    """A cluster of this machine whose workers differ."""

    def __init__(self, kinds: list[Kind]):
        self.kinds = kinds
        super().__init__(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        self.scale(len(kinds))

    def new_worker_spec(self) -> dict:
        ((name, spec),) = super().new_worker_spec().items()
        own = self.kinds[name].options()
        share = {
            "ATTNRATE_CORES": str(max(1, cores.available() // len(self.kinds)))
        }  # of what a stage runs side by side
        return {name: spec | {"options": spec["options"] | own | {"env": own["env"] | share}}}


async def in_order(dask_scheduler: Scheduler) -> None:
    """Nobody but `spread` moves stages between workers: Dask would move any, by how long it thinks they last."""
    await dask_scheduler.extensions["stealing"].stop()


def spread(dask_scheduler: Scheduler) -> None:
    """Give each idle worker the first of the stages that wait behind a busy one.

    A stage goes to a worker when it is sent, and Dask would leave it there for hours while a worker that came later, as
    jobs of Slurm do, has nothing to do. The busy worker refuses if it has just begun.
    """
    stealing, workers = dask_scheduler.extensions["stealing"], dask_scheduler.workers.values()
    waiting = [
        ts
        for worker in workers
        if len(worker.processing) > 1
        for ts in worker.processing
        if ts not in worker.executing and ts not in stealing.in_flight
    ]
    for ts in sorted(waiting, key=lambda ts: ts.priority):
        fit = dask_scheduler.valid_workers(ts)
        for worker in workers if fit is None else fit:
            if not (worker.processing or stealing.in_flight_tasks[worker]) and worker.status == Status.running:
                stealing.move_task_request(ts, ts.processing_on, worker)
                break
