"""Which stage goes first, and how long all of them take on so many workers: by the longest chain that follows."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

Upstream = Mapping[str, set[str]]  # a stage → what it needs


def chains(upstream: Upstream, hours: Mapping[str, float]) -> dict[str, float]:
    """Hours from the start of each stage to the end of the longest chain that begins with it."""
    found = {name: hours[name] for name in upstream}
    for name in reversed(list(TopologicalSorter(upstream).static_order())):
        for up in upstream[name]:
            found[up] = max(found[up], hours[up] + found[name])
    return found


def known(names: list[str], hours: Mapping[str, float]) -> dict[str, float]:
    """The hours of each stage; of an item that is not known, as for the mean of its stage; of a new stage, little."""
    found = {}
    for name in names:
        same = [h for n, h in hours.items() if n.partition("@")[0] == name.partition("@")[0]]
        found[name] = hours.get(name, sum(same) / len(same) if same else 1 / 3600)
    return found


@dataclass
class Plan:
    """The stages on a simulated clock."""

    end: dict[str, float] = field(default_factory=dict)  # hours
    where: dict[str, str] = field(default_factory=dict)  # stage → worker, such as GPU 3

    @property
    def hours(self) -> float:
        return max(self.end.values(), default=0.0)


def simulate(
    upstream: Upstream, hours: Mapping[str, float], needs: Mapping[str, str], workers: Mapping[str, int]
) -> Plan:
    """Whenever a worker is free, it takes the ready stage of its kind with the longest chain.

    `needs` names the kind of each stage, `workers` how many there are of each kind; a kind that is not there is served
    by the others' workers, as on one machine that does all.
    """
    first, plan, running = chains(upstream, hours), Plan(), []  # running: (end, stage, worker)
    free = {kind: [f"{kind} {i}" for i in reversed(range(n))] for kind, n in workers.items()}
    waiting, clock = set(upstream), 0.0
    while waiting or running:
        ready = [n for n in waiting if all(plan.end.get(up, float("inf")) <= clock for up in upstream[n])]
        for name in sorted(ready, key=lambda n: (-first[n], n)):
            kind = needs[name] if needs[name] in free else next(iter(free))
            if free[kind]:
                plan.where[name], plan.end[name] = free[kind].pop(), clock + hours[name]
                heapq.heappush(running, (plan.end[name], name, kind))
                waiting.remove(name)
        clock, name, kind = heapq.heappop(running)
        free[kind].append(plan.where[name])
    return plan
