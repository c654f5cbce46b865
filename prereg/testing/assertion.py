"""`assert_no_departure`: the exact channel as an assertion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from prereg.errors import PreregError, UsageError

if TYPE_CHECKING:
    from prereg.collect.choices import Walk, Walked
    from prereg.model.law import Mass
    from prereg.model.tree import ExactResult, ExactVerdict, Tree
    from prereg.testing.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found: the verdict, both laws, and the shortest failing path."""

    exact: ExactResult
    configuration: Mapping[str, Any]
    """What was walked, as a protocol would hold it; own classes with the digest of their file."""
    vocabulary: tuple[str, ...]
    admission: Mapping[str, Mapping[str, Any]]
    """The engine side's checks, by arm (`off` and `on`)."""
    path: Mapping[str, Any] | None
    """The shortest failing path, if there is one."""
    activity: Mapping[str, float]
    """How far plain sampling moves (total variation) with what the assertion is about: `processor` and
    `stopping`, or each feature where no own class was given. Only of laws that were found equal; what the
    engine does not run without has no entry."""

    @property
    def verdict(self) -> ExactVerdict:
        """`DEPARTS`, `EQUAL_WITHIN_TOLERANCE`, `INCONCLUSIVE` or `VOID`."""
        return self.exact.verdict

    @property
    def tv(self) -> float:
        """Total variation between both laws; its upper bound if the trees were not walked to the end."""
        return self.exact.tv_upper

    @property
    def off(self) -> tuple[Mass, ...]:
        """The law without speculation, heaviest outcome first."""
        return self.exact.off

    @property
    def on(self) -> tuple[Mass, ...]:
        """The law with speculation."""
        return self.exact.on


class Departure(AssertionError):
    """No equality was shown; `finding` holds what was."""

    def __init__(self, message: str, finding: Finding) -> None:
        super().__init__(message)
        self.finding = finding


def assert_no_departure(
    *,
    processor: type[Any] | str | None = None,
    arguments: Mapping[str, Any] | None = None,
    stopping: type[Any] | str | None = None,
    stopping_arguments: Mapping[str, Any] | None = None,
    features: Mapping[str, Any] | None = None,
    build: str | None = None,
    engine: str | None = None,
    drafter: str | Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    prompt: str | Sequence[int] | None = None,
    horizon: int | None = None,
    tolerance: float = 1e-5,
    seconds: float | None = None,
    allow_inconclusive: bool = False,
) -> Finding:
    """Assert that an engine returns the same output law with speculation as without it.

    The engine is run once for each path through its own random choices, on a tiny model; nothing is sampled.

    `processor` and `stopping` are your own classes (or `path/to/file.py:Class`), made with `arguments` and
    `stopping_arguments`, anew for every request; `features` are the engine's own parameters. `build` names a
    build of prereg's; None means the environment that runs the tests. `engine` (`hf` or `llamacpp`) is needed
    where that has both. `drafter` is `prompt-lookup` (the default) or `assistant`; `model`, `prompt` (token
    ids, or letters of the model's vocabulary) and `horizon` (new tokens) replace the template's. `seconds`
    bounds each arm.

    Raises Departure (an AssertionError) unless the laws are equal within `tolerance` of total variation: if
    they differ, if a tree cannot be believed, and, without `allow_inconclusive`, if equality means nothing:
    nothing was proposed or no proposed token accepted, or your class (without one, one of the features)
    moves the law of plain sampling by no more than 1e-3.
    Raises another PreregError if the configuration is none or the engine fails.
    """
    __tracebackhide__ = True  # the test's line is the one to show
    from prereg.testing.case import Given, case_of
    from prereg.testing.locate import entry
    from prereg.testing.message import message

    if not 0 < tolerance < 1:
        raise UsageError(f"{tolerance} is no tolerance: between 0 and 1", next_step="1e-5")
    if (processor is None and arguments) or (stopping is None and stopping_arguments):
        raise UsageError("there are arguments and no class to make with them", next_step="processor=…")
    try:
        given = Given(
            build=build,
            engine=engine,
            features=features or {},
            processors=[] if processor is None else [entry(processor, arguments, "processor")],
            stopping=[] if stopping is None else [entry(stopping, stopping_arguments, "stopping")],
            drafter=drafter,
            model=model,
            prompt=prompt,
            horizon=horizon,
        )
        finding = _find(case_of(given), tolerance, seconds)
    except PreregError as error:
        raise _in_words(error) from None
    fine = ["EQUAL_WITHIN_TOLERANCE", *(["INCONCLUSIVE"] if allow_inconclusive else [])]
    if finding.verdict not in fine:
        raise Departure(message(finding), finding)
    return finding


def _in_words(error: PreregError) -> PreregError:
    """The same error with its remedy in its text, which is all that a test's report shows."""
    what = error.what if error.next_step is None else f"{error.what} (next: {error.next_step})"
    # The option of a command that was not given here.
    where = None if error.where == "--set" else error.where
    return type(error)(what, where=where, next_step=error.next_step)


def _find(case: Case, tolerance: float, seconds: float | None) -> Finding:
    from prereg.analyse.exact import decide_exactly, law_of
    from prereg.collect.activity import lacking
    from prereg.draft.family import events_of
    from prereg.draft.rules import documented_rules

    walked = _walk(case, seconds)
    configuration = case.configuration
    result = decide_exactly(
        walked.off,
        walked.on,
        events=events_of(law_of(walked.off), law_of(walked.on), configuration["horizon"]),
        predicates=documented_rules(
            configuration["features"], configuration["horizon"], case.prompt, case.model
        ),
        tolerance=tolerance,
    )
    activity: dict[str, float] = {}
    if result.verdict == "EQUAL_WITHIN_TOLERANCE":
        activity = _activity(case, walked.off, seconds)
        if lacks := lacking(case.without, activity, result.accepted):
            reason = f"equal, but {' and '.join(lacks)}"
            result = replace(result, verdict="INCONCLUSIVE", reason=reason)
    return Finding(
        exact=result,
        configuration=configuration,
        vocabulary=tuple(case.model["vocab"]),
        admission={"off": walked.off.admission, "on": walked.on.admission},
        path=walked.explanation,
        activity=activity,
    )


def _activity(case: Case, off: Tree, seconds: float | None) -> dict[str, float]:
    """How far the off arm's law is from that without each of what the assertion is about."""
    from prereg.analyse.exact import law_of
    from prereg.collect.activity import distance
    from prereg.collect.plain import laws_without

    if not case.without:
        return {}
    law = law_of(off)
    others = laws_without(_walk_of(case, seconds), case.where, case.without, law_of)
    return {name: distance(law, other) for name, other in others.items()}


def _walk(case: Case, seconds: float | None) -> Walked:
    from prereg.analyse.exact import departing_paths
    from prereg.collect.choices import walk_arms

    return walk_arms(
        _walk_of(case, seconds),
        case.where,
        advance=lambda arm, leaves: None,
        failing=departing_paths,
    )


def _walk_of(case: Case, seconds: float | None) -> Walk:
    from prereg.collect.choices import Walk

    return Walk(configuration=case.configuration, model=case.model, prompt=case.prompt, seconds=seconds)
