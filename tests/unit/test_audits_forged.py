"""A study its own author made wrong: every signature holds, and the auditor still finds what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import change, drop, failed, look, make_keys, put
from audits_plan import Plan
from audits_tools import pack

Json = dict[str, Any]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def of_draw(unit: str, draw: int) -> Callable[[Any], bool]:
    return lambda record: bool(record["unit"] == unit and record["draw"] == draw)


FIFTH = of_draw("main.probe.on", 5)
OFF = of_draw("main.probe.off", 0)
ZERO = "0" * 64
NEVER = "2026-02-30T10:00:00+00:00"


def second_meta(meta: Json) -> bool:
    return bool(meta["unit"] == "main.probe.on" and meta["shard"] == 1)


def first_block(study: Json) -> Json:
    block: Json = study["blocks"][0]
    return block


RECORD = "records/main.probe.on/00000.jsonl.gz line 6"
META = "records/main.probe.on/00001.meta.json"
FORGED: dict[str, tuple[Plan, int, str]] = {
    # Study files.
    "an unknown property": (change("protocol.json", put("extra", to=1)), 5, "protocol.json#/extra"),
    "another study's seeds": (change("seeds.json", put("study", to="other")), 5, "seeds.json#/study"),
    "two reference arms": (change("protocol.json", put("arms", 1, "role", to="reference")), 5, "/arms"),
    "a model that is not there": (
        change("protocol.json", put("configurations", 0, "model", to="m")), 5, "/configurations/0/model",
    ),
    "a prompt that is not there": (
        change("protocol.json", put("configurations", 0, "prompt", to="q")), 5, "/configurations/0/prompt",
    ),
    "a predicate that is not there": (
        change("protocol.json", put("configurations", 1, "predicates", to=["no"])), 5, "/predicates",
    ),
    "a build without an environment": (
        change("protocol.json", put("configurations", 1, "build", to="b-2")), 5, "/configurations/1/build",
    ),
    "two configurations of one name": (
        change("protocol.json", put("configurations", 1, "id", to="control")), 5, "protocol.json",
    ),
    "a configuration in no stage": (
        change("protocol.json", put("stages", 0, "configurations", to=["control"])), 5, "/configurations/1",
    ),
    "draws that rows do not divide": (
        change("protocol.json", put("sampling", "on", "draws", to=41)), 5, "/sampling/on/draws",
    ),
    "an arm without sampling": (change("protocol.json", drop("sampling", "on")), 5, "/sampling"),
    "channel S without an allowance": (
        change("protocol.json", put("decision", "calibration_allowance", to=None)), 5, "/decision",
    ),
    "an event gap with an allowance": (
        change("protocol.json", put("decision", "rule", to="event-gap")), 5,
        "protocol.json#/decision/calibration_allowance",
    ),
    "a block of another role": (
        change("seeds.json", put("blocks", 2, "role", to="confirmation")), 5,
        "seeds.json#/blocks/2/role: is confirmation; the purpose of stage main is discovery",
    ),
    "channel S without a reference": (
        change("events.json", put("configurations", "probe", "reference", to=None)), 5, "events.json",
    ),
    "a reference that does not sum to 1": (
        change("events.json", put("configurations", "probe", "reference", 0, "p", to=0.6)), 5, "events.json",
    ),
    "a reference with an outcome twice": (
        change(
            "events.json",
            put("configurations", "probe", "reference", 1, "outcome", to={"tokens": [1, 2], "finish": None}),
        ),
        5, "events.json",
    ),
    "an event that is a crash": (
        change("events.json", put("configurations", "probe", "events", 0, "outcome", to={"crash": "x"})),
        5, "events.json#/configurations/probe/events/0",
    ),
    "a set with a crash in it": (
        change(
            "events.json",
            put("configurations", "probe", "events", 9, "outcomes", 1, to={"crash": "RuntimeError"}),
        ),
        5, "events.json#/configurations/probe/events/9",
    ),
    "no harness for an oracle": (change("events.json", put("harness_sha256", to=None)), 5, "/harness_sha256"),
    "a configuration without events": (
        change("events.json", drop("configurations", "probe")), 5, "events.json",
    ),
    "two events of one name": (
        change("events.json", put("configurations", "probe", "events", 1, "id", to="a")), 5, "events.json",
    ),
    "a prediction of nothing": (
        change("predictions.json", put("predictions", 0, "claim", "configuration", to="no")),
        5, "predictions.json#/predictions/0/claim",
    ),
    "no prediction at all": (change("predictions.json", put("predictions", to=[])), 12, "nothing to check"),
    "a unit without seeds": (change("seeds.json", drop("blocks", 0)), 5, "main.control.off has no block"),
    "a unit with two blocks": (
        change("seeds.json", put("blocks", 1, "unit", to="main.control.off")), 5, "seeds.json#/blocks/1",
    ),
    "a block of another length": (change("seeds.json", put("blocks", 3, "end", to="1041")), 5, "11 seeds"),
    "a seed of 65 bits": (
        change("seeds.json", put("blocks", 3, "end", to=str(2**64 + 10))), 5, "seeds.json#/blocks/3",
    ),
    "blocks that overlap": (
        change("seeds.json", lambda v: first_block(v).update(first="1005", end="1015")), 10,
        "block block-0 of tiny and block block-1 of tiny share [1010, 1015) at 64 bits",
    ),
    "blocks that overlap in their low bits": (
        change(
            "seeds.json", lambda v: first_block(v).update(first=str(2**33 + 1005), end=str(2**33 + 1015))
        ),
        10,
        "block block-0 of tiny and block block-1 of tiny share [1010, 1015) at their low 32 bits",
    ),
    # The manifest.
    "a path that climbs": (change("manifest", put("files", 0, "path", to="../x")), 2, "seal/manifest.json"),
    "an absolute path": (change("manifest", put("files", 0, "path", to="/etc/passwd")), 2, "/files/0/path"),
    "a path with a backslash": (change("manifest", put("files", 0, "path", to="a\\b")), 2, "/files/0/path"),
    "a path of the records": (change("manifest", put("files", 0, "path", to="records/x")), 2, "/files/0"),
    "a path twice but for case": (change("manifest", put("files", -1, "path", to="notes.md")), 2, "twice"),
    "files out of order": (change("manifest", lambda v: v["files"].reverse()), 2, "not sorted"),
    "another rules version": (change("manifest", put("rules", to=2)), 2, "seal/manifest.json#/rules"),
    "another author's key": (
        change("manifest", put("author", "key", to="SHA256:" + "A" * 43)), 4, "json#/author/key",
    ),
    "a moment that does not exist": (
        change("manifest", put("created", to=NEVER)), 2, "seal/manifest.json#/created",
    ),
    "another base commit": (change("manifest", put("commit", to="a" * 40)), 9, "seal/manifest.json#/commit"),
    "no base commit": (change("manifest", put("commit", to=None)), 9, "seal/manifest.json#/commit"),
    # The ledger.
    "a seal entry of another seal": (change("sealed body", put("seal", to=ZERO)), 6, "ledger.jsonl line 1"),
    "an entry by nobody": (
        change("collection-started", put("actor", to="who@example.org")), 6, "ledger.jsonl line 2#/actor",
    ),
    "an analysis by the collector": (
        change("analysis", put("actor", to="col@example.org")), 6, "line 16#/actor",
    ),
    "an audit by the author": (change("audit", put("actor", to="ann@example.org")), 6, "line 17#/actor"),
    "another environment": (
        change("collection-started body", put("environments", "b-1", to=ZERO)), 6, "line 2#/body/env",
    ),
    "a build of the seal that the collection does not name": (
        change("manifest", put("environments", "b-2", to=ZERO)), 6, "names no environment for b-2",
    ),
    "a count of shards": (change("collection-ended body", put("stored", to=11)), 6, "line 15#/body/stored"),
    "a unit that was not INVALID": (
        change("collection-ended body", put("invalid", to=["main.probe.on"])), 6, "line 15#/body/invalid",
    ),
    "an analysis of an incomplete collection": (
        change("collection-ended body", put("complete", to=False)), 6, "line 16#/type",
    ),
    "a body digest": (change("analysis", put("body_sha256", to=ZERO)), 6, "line 16#/body_sha256"),
    "a gap in the sequence": (change("analysis", put("seq", to=17)), 6, "line 16#/seq"),
    "a broken chain": (change("analysis", put("prev", to=ZERO)), 6, "line 16#/prev"),
    "a time that goes back": (
        change("analysis", put("time", to="2026-11-29T10:00:01+00:00")), 6, "line 16#/time",
    ),
    "a head of another study": (change("head", put("study", to="other")), 6, "ledger.head.json#/study"),
    "a head before its line": (
        change("head", put("time", to="2026-11-29T09:00:00+00:00")), 6, "ledger.head.json#/time",
    ),
    # Records.
    "a record's seed": (change("record", put("seed", to="7"), FIFTH), 7, f"{RECORD}#/seed"),
    "a record's draw": (change("record", put("draw", to=6), FIFTH), 7, f"{RECORD}#/draw"),
    "a record's row": (change("record", put("row", to=0), FIFTH), 7, f"{RECORD}#/row"),
    "a record's unit": (change("record", put("unit", to="main.probe.off"), FIFTH), 7, f"{RECORD}#/unit"),
    "a record's shard": (change("record", put("shard", to=1), FIFTH), 7, f"{RECORD}#/shard"),
    "a record's seal": (change("record", put("seal", to=ZERO), FIFTH), 7, f"{RECORD}#/seal"),
    "a second attempt": (change("record", put("attempt", to=2), FIFTH), 7, f"{RECORD}#/attempt"),
    "a record with more": (change("record", put("note", to="x"), FIFTH), 7, f"{RECORD}#/note"),
    "an outcome of no kind": (change("record", put("outcome", to={}), FIFTH), 7, f"{RECORD}#/outcome"),
    "an outcome of two kinds": (
        change("record", put("outcome", to={"crash": "x", "value": 1}), FIFTH), 7, f"{RECORD}#/outcome",
    ),
    "a negative counter": (
        change("record", put("counters", "accepted", to=-1), FIFTH), 7, f"{RECORD}#/counters/accepted",
    ),
    "proposals where nothing proposes": (
        change("record", put("counters", "proposals", to=1), OFF), 7, "00000.jsonl.gz line 1#/counters",
    ),
    "more accepted than proposed": (
        change("record", put("counters", "accepted", to=4), FIFTH), 7, f"{RECORD}#/counters/accepted",
    ),
    "more verifications than proposals": (
        change("record", put("counters", "verifications", to=4), FIFTH),
        7, f"{RECORD}#/counters/verifications",
    ),
    "a line not canonical": (
        change("lines", lambda d: d.replace(b'{"accepted":0,', b'{ "accepted":0,', 1)), 7, "jsonl.gz line 1",
    ),
    "a line too few": (change("lines", lambda d: d[d.index(b"\n") + 1 :]), 7, "has 15 records, not 16"),
    "a line twice": (change("lines", lambda d: d[: d.index(b"\n") + 1] + d), 7, "has 17 records, not 16"),
    "lines in another order": (
        change("lines", lambda d: b"".join(reversed(d.splitlines(keepends=True)))), 7, "jsonl.gz line 1#/row",
    ),
    "no final newline": (change("lines", lambda d: d[:-1]), 7, "jsonl.gz"),
    # Shards.
    "gzip with a time": (change("packed", lambda d: d[:4] + b"\x01" + d[5:]), 7, "mtime"),
    "gzip at another level": (change("packed", lambda d: d[:8] + b"\x02" + d[9:]), 7, "level 6"),
    "gzip with a name": (change("packed", lambda d: d[:3] + b"\x08" + d[4:]), 7, "no name"),
    "two gzip members": (change("packed", lambda d: d + pack(b"x")), 7, "after the gzip member"),
    "gzip cut short": (change("packed", lambda d: d[:-3]), 7, "cut short"),
    "a gzip checksum": (change("packed", lambda d: d[:-8] + b"\0\0\0\0" + d[-4:]), 7, "not a gzip member"),
    "a meta that claims less": (change("meta", put("lines_size", to=9), second_meta), 7, "beyond the 9"),
    "a meta that claims the moon": (
        change("meta", put("lines_size", to=2**50), second_meta), 7, "cannot hold",
    ),
    "a meta's lines": (change("meta", put("lines_sha256", to=ZERO), second_meta), 7, f"{META}#/lines_sha256"),
    "a meta's records": (
        change("meta", put("records_sha256", to=ZERO), second_meta), 7, f"{META}#/records_sha256",
    ),
    "a meta's size": (change("meta", put("records_size", to=3), second_meta), 7, f"{META}#/records_size"),
    "a meta's first seed": (change("meta", put("first_seed", to="1"), second_meta), 7, f"{META}#/first_seed"),
    "a meta's requests": (change("meta", put("requests", to=3), second_meta), 7, f"{META}#/requests"),
    "a meta's draws": (change("meta", put("draws", to=15), second_meta), 7, f"{META}#/draws"),
    "a meta's environment": (
        change("meta", put("environment", to=ZERO), second_meta), 7, f"{META}#/environment",
    ),
    "a meta's study": (change("meta", put("study", to="other"), second_meta), 7, f"{META}#/study"),
    "a meta's network": (
        change("meta", put("network", to="not-cut"), second_meta), 7, f"{META}#/network",
    ),
    "a shard from before the seal": (
        change("meta", put("started", to="2026-11-29T09:59:59+00:00"), second_meta), 7, f"{META}#/started",
    ),
    "a shard that started on a day that does not exist": (
        change("meta", put("started", to=NEVER), second_meta), 7, f"{META}#/started",
    ),
    "a shard that ended on a day that does not exist": (
        change("meta", put("ended", to=NEVER), second_meta), 7, f"{META}#/ended",
    ),
    "a head of a day that does not exist": (
        change("head", put("time", to=NEVER)), 6, "ledger.head.json#/time",
    ),
    "an entry of a day that does not exist": (
        change("analysis", put("time", to=NEVER)), 6, "#/time",
    ),
    "a shard that ended before it started": (
        change("meta", put("ended", to="2026-11-29T10:00:02+00:00"), second_meta), 7, f"{META}#/ended",
    ),
    "a shard the plan does not have": (
        change(
            "shard-stored body", put("shard", to=3),
            lambda body: bool(body["unit"] == "main.probe.on" and body["shard"] == 2),
        ),
        7, "records/main.probe.on/00003",
    ),
    # The audit's report.
    "a report of another head": (
        change("report", put("ledger_head", to=ZERO)), 8, "audit/report.json#/ledger_head",
    ),
    "a report of another result": (
        change("report", put("result", to="FAILED")), 8, "audit/report.json#/result",
    ),
    "a report of another seal": (change("report", put("seal", to=ZERO)), 8, "audit/report.json#/seal"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_what_the_author_made_wrong_is_named(tmp_path: Path, keys: Path, name: str) -> None:
    plan, step, says = FORGED[name]
    for upto in ("audited", "collected", "sealed"):
        # What is wrong may keep even the fixture from going on; it is found in the state before.
        plan.upto = upto
        try:
            study = Builder(tmp_path / upto, keys, plan).build()
            break
        except (KeyError, RuntimeError, TypeError):
            continue
    outcome = look(study)
    found = failed(outcome)
    assert outcome.result == "FAILED"
    assert step in found, found
    assert says in found[step], found
    assert all(number >= step or number == 1 for number in found), found


def event_gap(edit: Callable[[str, Any], Any]) -> Plan:
    """A study without an oracle, sealed."""
    return Plan(
        rule="event-gap", law=None, allowance=None, upto="sealed", edit=edit,
        events=[{"id": "one", "kind": "value", "equals": 1}], predictions=[],
    )  # fmt: skip


GAPS: dict[str, tuple[Plan, str]] = {
    "nothing wrong": (Plan(), ""),
    "a reference": (
        change("events.json", lambda v: v["configurations"]["probe"].update(
            reference=[{"outcome": {"value": 1}, "p": 1.0}]) or v.update(harness_sha256="a" * 64)),
        "events.json#/configurations/probe/reference",
    ),
    "a predicate that binds": (
        change("protocol.json", put("configurations", 1, "predicates", to=["horizon"])),
        "protocol.json#/configurations/1/predicates",
    ),
    "a harness": (change("events.json", put("harness_sha256", to="a" * 64)), "events.json#/harness_sha256"),
}  # fmt: skip


@pytest.mark.parametrize("name", GAPS)
def test_an_event_gap_has_no_oracle(tmp_path: Path, keys: Path, name: str) -> None:
    plan, says = GAPS[name]
    outcome = look(Builder(tmp_path / "r", keys, event_gap(plan.edit)).build())
    assert list(failed(outcome)) == ([5] if says else [])
    assert says in outcome.steps[5].detail()


def test_the_last_seed_there_is(tmp_path: Path, keys: Path) -> None:
    """`end` is no seed: it may be 2^64."""
    study = Builder(tmp_path / "r", keys, Plan(first_seed=2**64 - 40)).build()
    assert json.loads((study / "seeds.json").read_bytes())["blocks"][3]["end"] == str(2**64)
    assert look(study).result == "AGREES"


def test_a_shard_of_an_earlier_start_keeps_its_network(tmp_path: Path, keys: Path) -> None:
    """The network was cut when the shard was drawn; the collection was started again before it was stored."""

    class Twice(Builder):
        def entry(self, kind: str, actor: str, body: Json) -> None:
            super().entry(kind, actor, body)
            if kind == "collection-started" and body["network"] == "cut":
                body = body | {"network": "not-cut", "network_reason": "no namespaces"}
                super().entry(kind, actor, body)

    assert look(Twice(tmp_path / "r", keys, Plan()).build()).result == "AGREES"
    later = change("collection-started body", put("network", to="not-cut"))
    found = failed(look(Builder(tmp_path / "s", keys, later).build()))
    assert list(found) == [7]
    assert "records/main.control.off/00000.meta.json#/network" in found[7]
