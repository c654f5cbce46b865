"""Which entry may stand where, and the state that follows (docs/formats.md sections 5 and 19)."""

from __future__ import annotations

from typing import Any

import pytest

from prereg.model.places import deviations_of, place_fault, seals, state
from prereg.model.seal import EDITION_2, Entry
from prereg.seal.head import ROLES

END = "end"
"""A complete `collection-ended`; "part" is an incomplete one."""


def entries(*words: str) -> list[Entry]:
    """Entries of those types; `type@actor` names the actor, and a seal has its number as digest."""
    found: list[Entry] = []
    for seq, word in enumerate(words, 1):
        kind, _, actor = word.partition("@")
        body: dict[str, Any] = {"seal": str(seq)}
        if kind in (END, "part"):
            kind, body = "collection-ended", {"complete": kind == END}
        found.append(
            Entry(seq=seq, time="", type=kind, actor=actor or "ada", body=body, body_sha256="", prev="")  # type: ignore[arg-type]
        )
    return found


START = ("sealed", "collection-started")
ALLOWED = [
    ("sealed", "cosigned", "timestamped", "pushed", "collection-started"),
    ("sealed", "cosigned@ada", "cosigned@bob"),
    ("sealed", "cosigned", "timestamped", "amended", "cosigned", "timestamped", "amended"),
    ("sealed", "deviation", "amended", "pushed", "closed"),
    (*START, "shard-stored", "deviation", "shard-stored", "pushed", "relocation", "unit-invalid", END),
    (*START, "deviation", "part", "pushed", "collection-started", "relocation", "shard-stored"),
    (*START, END, "deviation", "pushed", "relocation", "analysis", "deviation", "audit", "pushed", "closed"),
    (*START, "closed"),
    (*START, "part", "pushed", "analysis", "analysis", "audit", "analysis"),
    (*START, END, "audit", "analysis"),
]
REFUSED = [
    ((), "deviation", "starts with deviation"),
    (("sealed",), "sealed", "a second entry 'sealed'"),
    (("amended",), "sealed", "a second entry 'sealed'"),
    (("sealed", "closed"), "deviation", "an entry 'deviation' after the study was closed"),
    (("sealed", "closed"), "closed", "a second entry 'closed'"),
    (("sealed", "closed"), "collection-started", "after the study was closed"),
    (("sealed", "closed"), "analysis", "after the study was closed"),
    (START, "amended", "an entry 'amended' after a collection was started"),
    (START, "cosigned", "an entry 'cosigned' after a collection"),
    ((*START, "part"), "timestamped", "an entry 'timestamped' after a collection"),
    (("sealed", "timestamped@ada"), "timestamped@bob", "a second entry 'timestamped'"),
    (("sealed", "cosigned@ada", "pushed"), "cosigned@ada", "a second entry 'cosigned' of one seal by ada"),
    (("sealed", "amended", "timestamped"), "timestamped", "a second entry 'timestamped'"),
    ((*START, END), "amended", "after the collection was complete"),
    ((*START, END, "deviation"), "collection-started", "after the collection was complete"),
    ((*START, "part", "analysis", "pushed"), "shard-stored", "an entry 'shard-stored' after an analysis"),
    (("sealed", "deviation"), "shard-stored", "outside a collection"),
    (("sealed", "amended"), "unit-invalid", "outside a collection"),
    ((*START, "part", "pushed"), END, "outside a collection"),
    (("sealed",), "analysis", "analysis before a collection has ended"),
    (("sealed", "amended", "pushed"), "analysis", "analysis before a collection has ended"),
    (START, "analysis", "analysis before a collection has ended"),
    ((*START, "shard-stored"), "analysis", "analysis before a collection has ended"),
    ((*START, "part", "collection-started"), "analysis", "analysis before a collection has ended"),
    (("sealed",), "audit", "audit before a collection was complete or an analysis"),
    ((*START, "part"), "audit", "audit before a collection was complete or an analysis"),
]
STATES = [
    (("sealed", "cosigned", "timestamped", "pushed", "deviation"), "sealed"),
    (("sealed", "amended"), "sealed"),
    ((*START, "relocation", "deviation"), "collecting"),
    ((*START, END, "pushed"), "collected"),
    ((*START, "part", "pushed"), "collecting"),
    ((*START, END, "analysis", "deviation"), "analysed"),
    ((*START, END, "analysis", "audit", "pushed"), "audited"),
    ((*START, END, "analysis", "closed"), "closed"),
]


@pytest.mark.parametrize("words", ALLOWED)
def test_an_entry_may_stand_where_the_page_says(words: tuple[str, ...]) -> None:
    found = entries(*words)
    assert [place_fault(found[:i], e) for i, e in enumerate(found)] == [None] * len(found)


@pytest.mark.parametrize(("before", "word", "what"), REFUSED)
def test_an_entry_may_not_stand_elsewhere(before: tuple[str, ...], word: str, what: str) -> None:
    *earlier, last = entries(*before, word)
    assert what in (place_fault(earlier, last) or "")


@pytest.mark.parametrize(("words", "expected"), STATES)
def test_entries_that_bear_no_state_leave_it(words: tuple[str, ...], expected: str) -> None:
    assert state(entries(*words)) == expected


def test_the_lineage_is_the_seal_and_its_amendments_in_order() -> None:
    assert seals(entries("sealed", "pushed", "amended", "deviation", "amended")) == ["1", "3", "5"]


def test_deviations_are_told_in_order() -> None:
    found = entries("sealed", "deviation", "collection-started", "deviation", "closed")
    assert [e.seq for e in deviations_of(found)] == [2, 4]


def test_every_entry_has_a_role_that_may_make_it() -> None:
    assert set(EDITION_2) < set(ROLES)
    assert all(ROLES.values())
