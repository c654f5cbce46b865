"""The tiny study in edition 3: a collection told step by step, with attempts, second results and ceilings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from audits_fixture import Builder
from audits_plan import ARMS, MAIN, WALK, Plan, exact_plan
from audits_second import SECOND_EVENTS, Second
from audits_slow import CRASH, Json
from audits_tools import machine, pack, sha

COLLECTOR = "col@example.org"
UNITS = [f"{MAIN}.{c}.{arm}" for c in ("control", "probe") for arm in ARMS]
ON = "main.probe.on"
"""The unit that most tests try again."""
SHARDS = range(3)
"""The shards of a unit of draws: 10 requests, 4 a shard."""

Step = Callable[["Third"], object]


class Third(Builder):
    """A study whose collection is what its steps say."""

    steps: tuple[Step, ...] = ()

    def collect(self) -> None:
        self.entered: set[str] = set()
        self.kept: dict[tuple[str, int, int], list[Json]] = {}
        for step in self.steps:
            step(self)
        self.head("collector")
        self.commit("collect")

    def bodies(self, kind: str, unit: str | None = None) -> list[Json]:
        """The bodies of a type in the ledger so far, of one unit if it is given."""
        entries = [json.loads(line) for line in self.lines]
        found = [entry["body"] for entry in entries if entry["type"] == kind]
        return [body for body in found if unit is None or body["unit"] == unit]

    def over(self, unit: str) -> bool:
        fails = self.bodies("unit-invalid", unit)
        most = self.files["protocol.json"]["attempts"]
        return any(
            body.get("cause") in ("unit-ceiling", "study-ceiling") or body["attempt"] >= most
            for body in fails
        )

    def now_at(self, unit: str) -> int:
        """The present attempt of a unit, or the one it ended in."""
        fails = len(self.bodies("unit-invalid", unit))
        return fails if self.over(unit) else fails + 1

    def results(self, unit: str, attempt: int) -> dict[int, list[Json]]:
        """The lines of each shard of a unit in an attempt."""
        stage, c, arm = unit.split(".")
        self.attempt = attempt
        if stage == WALK:
            return {0: self.leaves(c, arm, unit)}
        return dict(enumerate(self.shards(c, arm, unit)))

    def whole(self, unit: str) -> bool:
        stored = {
            body["shard"] for body in self.bodies("shard-stored", unit)
            if body["attempt"] == self.now_at(unit)
        }  # fmt: skip
        return stored >= (set(SHARDS) if unit.startswith(MAIN) else {0})

    def again(self, unit: str) -> list[int]:
        """Of each shard that an earlier attempt stored, and the one that counts too: what differs."""
        found = []
        for (name, attempt, shard), lines in self.kept.items():
            counts = self.kept.get((unit, self.now_at(unit), shard))
            if name != unit or attempt == self.now_at(unit) or counts is None:
                continue
            one, other = (
                {line.get("draw", line.get("leaf")): line | {"attempt": 1} for line in some}
                for some in (lines, counts)
            )
            found.append(sum(one.get(at) != other.get(at) for at in {*one, *other}))
        return found

    def third(self, unit_of: Callable[[str], str], row: Json) -> Json:
        """A decision with what edition 3 adds, from the ledger alone."""
        units = {arm: unit_of(arm) for arm in ARMS}
        row["attempts"] = {arm: self.now_at(unit) for arm, unit in units.items()}
        row["duplicates"] = {}
        for arm, unit in units.items():
            differing = [body["differing"] for body in self.bodies("duplicate", unit)]
            differing += self.again(unit)
            row["duplicates"][arm] = {"copies": len(differing), "differing": sum(differing)}
        lost = [unit for unit in units.values() if self.over(unit) or not self.whole(unit)]
        ceilings = ("request-ceiling", "unit-ceiling", "study-ceiling")
        if (
            row["verdict"] == "INVALID"
            and self.files["protocol.json"]["ceilings"]["on_ceiling"] == "INCONCLUSIVE"
            and all(self.over(u) and self.bodies("unit-invalid", u)[-1]["cause"] in ceilings for u in lost)
        ):
            row |= {"verdict": "INCONCLUSIVE", "reasons": ["ceiling"]}
        return row

    def decisions(self) -> Json:
        for known in (self.drawn, self.lines_of, self.counted, self.walked):
            for unit in [*known]:
                if self.over(unit) or not self.whole(unit):
                    del known[unit]
        value = super().decisions()
        for row in value["configurations"]:
            self.third(lambda arm, c=row["id"]: f"{MAIN}.{c}.{arm}", row)  # type: ignore[misc]
        for row in value.get("exact", {}).get("configurations", ()):
            self.third(lambda arm, c=row["id"]: f"{WALK}.{c}.{arm}", row)  # type: ignore[misc]
        return value


def start(**more: Any) -> Step:
    """A run starts."""

    def step(b: Third) -> None:
        body: Json = {"seal": b.digest, "attempt": 1, "workers": 1, "network": "cut", "network_reason": None}
        body["environments"] = dict.fromkeys(b.plan.builds, "e" * 64)
        b.entry("collection-started", COLLECTOR, body | more)

    return step


def end(complete: bool = True, **more: Any) -> Step:
    """A run ends."""

    def step(b: Third) -> None:
        units = [f"{s}.{c}.{arm}" for s, c, arm in b.plan.units]
        body: Json = {"seal": b.digest, "complete": complete, "stored": len(b.bodies("shard-stored"))}
        body["invalid"] = [unit for unit in units if b.over(unit)]
        b.entry("collection-ended", COLLECTOR, body | more)

    return step


def begin(unit: str, shard: int = 0, attempt: int | None = None, **more: Any) -> Step:
    """An ``attempt`` is entered, and nothing drawn."""

    def step(b: Third) -> None:
        body = {"unit": unit, "shard": shard, "attempt": b.now_at(unit) if attempt is None else attempt}
        b.entry("attempt", more.pop("actor", COLLECTOR), body | more)

    return step


def draw(
    unit: str, shards: Iterable[int] | None = None, attempt: int | None = None, begun: bool = True
) -> Step:
    """Shards of a unit (all of them) are begun, drawn and stored."""
    wanted = None if shards is None else list(shards)

    def step(b: Third) -> None:
        tried = b.now_at(unit) if attempt is None else attempt
        stage, c, arm = unit.split(".")
        sizes = (1, 4) if stage == WALK else b.plan.sizes(c, arm)
        for shard, lines in b.results(unit, tried).items():
            if wanted is None or shard in wanted:
                if begun:
                    begin(unit, shard, tried)(b)
                b.attempt = tried
                b.kept[unit, tried, shard] = json.loads(json.dumps(lines))
                b.store(unit, shard, lines, sizes, b.walked[unit]["meta"] if stage == WALK else None)

    return step


def fail(unit: str, cause: str | None = "engine", attempt: int | None = None) -> Step:
    """A unit fails."""

    def step(b: Third) -> None:
        body: Json = {"unit": unit, "attempt": b.now_at(unit) if attempt is None else attempt}
        body |= {"reason": "it stopped"} | ({} if cause is None else {"cause": cause})
        b.entry("unit-invalid", COLLECTOR, body)

    return step


Lines = Callable[[list[Json]], list[Json]]


def copy(
    unit: str,
    shard: int = 0,
    change: Lines = lambda lines: lines,
    attempt: int | None = None,
    file: bool | None = None,
    packed: Callable[[bytes], bytes] = pack,
    **more: Any,
) -> Step:
    """A second result for a shard, whose lines are ``change`` of the first one's.

    ``file`` says whether it is kept (where it differs, unless told otherwise); ``more`` is told otherwise.
    """

    def step(b: Third) -> None:
        tried = b.now_at(unit) if attempt is None else attempt
        known = dict(b.drawn), dict(b.lines_of), dict(b.counted), dict(b.walked)
        first = b.results(unit, tried)[shard]
        b.drawn, b.lines_of, b.counted, b.walked = known
        again = change(json.loads(json.dumps(first)))
        data = b"".join(map(machine, again))
        record = packed(data)
        pairs = [machine(one) for one in first], [machine(one) for one in again]
        differ = sum(one != other for one, other in zip(*pairs, strict=False))
        differ += abs(len(first) - len(again))
        key = {"unit": unit, "shard": shard, "attempt": tried}
        number = 1 + sum(
            {name: body[name] for name in key} == key for body in b.bodies("duplicate", unit)
        )  # fmt: skip
        body = key | {
            "records_sha256": sha(record), "records_size": len(record), "lines_sha256": sha(data),
            "lines_size": len(data), "lines": len(again), "differing": differ,
        }  # fmt: skip
        b.entry("duplicate", COLLECTOR, body | more)
        b.attempt = tried
        if differ > 0 if file is None else file:
            b.write(f"{b.home(unit)}/{shard:05d}.duplicate-{number}.jsonl.gz", record)

    return step


def rest(*but: str) -> tuple[Step, ...]:
    """Every unit of draws but these is drawn whole."""
    return tuple(draw(unit) for unit in UNITS if unit not in but)


def third(
    edit: Callable[[str, Any], Any] = lambda name, value: value,
    make: Callable[..., Plan] = Plan,
    attempts: int = 3,
    on_ceiling: str = "INVALID",
    protocol: Json | None = None,
    **options: Any,
) -> Plan:
    """A plan of edition 3, with the members of edition 2 that every study can have."""

    def apply(name: str, value: Any) -> Any:
        if name == "protocol.json":
            ceilings = value["ceilings"] | {"on_ceiling": on_ceiling}
            value = value | {"edition": 3, "attempts": attempts, "ceilings": ceilings} | (protocol or {})
        return edit(name, value)

    given: Json = {"second": Second(records={}, laws={}), "events": list(SECOND_EVENTS)}
    return make(edit=apply, **(given | options))


def third_exact(**options: Any) -> Plan:
    return third(make=exact_plan, **options)


def collected(edit: Callable[[str, Any], Any] = lambda name, value: value, **options: Any) -> Plan:
    return third(edit, upto="collected", **options)


def crash(*places: int) -> Lines:
    """Lines of which some have a crash for their outcome."""

    def lines(some: list[Json]) -> list[Json]:
        return [line | {"outcome": CRASH} if i in places else line for i, line in enumerate(some)]

    return lines


AGAIN = (start(), draw(ON, [0]), fail(ON), *rest(), end())
"""A unit that is tried again, a shard of whose first attempt was stored."""
WALKS = [f"{WALK}.{c}.{arm}" for c in ("deep", "probe", "control") for arm in ARMS]


def walks(*but: str) -> tuple[Step, ...]:
    """Every unit of the study with an exact stage, but these, is drawn or walked whole."""
    return (*rest(), *(draw(unit) for unit in WALKS if unit not in but))


def build(root: Path, keys: Path, plan: Plan, *steps: Step) -> Third:
    builder = Third(root / "r", keys, plan)
    builder.steps = steps
    builder.build()
    return builder
