"""The worker: reads requests, runs one engine, writes replies. See `main` for the operations.

Launched by the collector as `python -I -c "... from harness.worker import main; raise SystemExit(main())"`.
"""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from harness import fingerprint, wire
from harness.adapters.base import Adapter, Arm, load, offered
from harness.collectors import draws
from harness.oracle import enumerate, naive, replay
from harness.wire import BAD_REQUEST, ENGINE, Channel, JobError, is_seed


class Worker:
    """Carries out requests one at a time; holds at most one open configuration."""

    __slots__ = ("_adapter", "_channel", "_engines", "closed")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._adapter: Adapter | None = None
        self._engines: dict[str, Adapter] = {}
        self.closed = False

    def answer(self, line: wire.Line) -> None:
        """Answer one line of input: zero or more results, then one `ok` or one `error`."""
        if line.request is None:
            self._fail(None, JobError(BAD_REQUEST, line.fault))
            return
        number = line.request.get("id")
        if not isinstance(number, int) or isinstance(number, bool):
            self._fail(None, JobError(BAD_REQUEST, "id is not an integer"))
            return
        operations: Mapping[str, Callable[[int, Mapping[str, Any]], Any]] = {
            "hello": self._hello,
            "fingerprint": self._fingerprint,
            "open": self._open,
            "draws": self._draws,
            "law": self._law,
            "choices": self._choices,
            "explain": self._explain,
            "mechanism": self._mechanism,
            "replay": self._replay,
            "trace": self._trace,
            "admit": self._admit,
            "tokenize": self._tokenize,
            "vocabulary": self._vocabulary,
            "repeatability": self._repeatability,
            "features": self._features,
            "close": self._close,
        }
        name = line.request.get("op")
        operation = operations.get(name) if isinstance(name, str) else None
        try:
            if operation is None:
                raise JobError(BAD_REQUEST, f"no operation {name!r}; there are: {', '.join(operations)}")
            result = operation(number, line.request)
        except MemoryError:
            raise
        except JobError as error:
            self._fail(number, error)
        except Exception as error:
            # Past this point the state of the engine is its own affair, but the collector decides about
            # that.
            traceback.print_exc()
            self._fail(number, JobError(ENGINE, f"{type(error).__name__}: {error}"))
        else:
            self._channel.send({"id": number, "ok": result})

    def _fail(self, number: int | None, error: JobError) -> None:
        self._channel.send({"id": number, "error": {"code": error.code, "message": error.message}})

    def _hello(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"wire": wire.VERSION, "python": platform.python_version(), "pid": os.getpid()}

    def _fingerprint(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        detail = fingerprint.describe()
        return {"digest": fingerprint.digest(detail), "detail": detail}

    def _open(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        configuration = _field(request, "configuration", dict)
        model = _optional(request, "model", dict)
        prompt = _optional(request, "prompt", list)
        if prompt is not None and not all(_is_integer(token) for token in prompt):
            raise JobError(BAD_REQUEST, "prompt is not a list of integers")
        cwd = _optional(request, "cwd", str)
        name = _field(configuration, "adapter", str)
        # Nothing stays open if this fails: draws of the wrong configuration would be worse than none.
        self._adapter = None
        adapter = self._engines.get(name)
        if adapter is None:
            adapter = self._engines[name] = load(name)
        digest = adapter.open(configuration, model, prompt, cwd)
        self._adapter = adapter
        return {"model_sha256": digest}

    def _draws(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        adapter = self._opened()
        arm = _arm(request)
        seeds = _seeds(request)
        rows = _field(request, "rows", int)
        if isinstance(rows, bool) or rows < 1:
            raise JobError(BAD_REQUEST, "rows is not a positive integer")
        for result in draws.collect(adapter, arm, seeds, rows):
            self._channel.send({"id": number, "request": result})
        return {"requests": len(seeds)}

    def _law(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        adapter = self._opened()
        if request.get("first") is not None:
            from harness.choices.window import windowed
            from harness.collectors.choices_wire import first_of

            adapter = windowed(adapter, first_of(request["first"]))
        kernel = adapter.kernel()
        law = naive.law if request.get("naive") is True else enumerate.law
        return {"law": [{"outcome": outcome, "p": p} for outcome, p in law(kernel)]}

    def _choices(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        from harness.collectors import choices_wire

        done: dict[str, Any] = {}
        for name, message in choices_wire.walk(self._opened(), _arm(request), request):
            if name == "ok":
                done = message
            else:
                self._channel.send({"id": number, name: message})
        return done

    def _explain(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        from harness.collectors import choices_wire

        return choices_wire.explained(self._opened(), _arm(request), request)

    def _admit(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        from harness.collectors import choices_wire

        return choices_wire.admitted(self._opened(), _arm(request), request)

    def _tokenize(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        name, model, text = (
            _field(request, "adapter", str),
            _field(request, "model", dict),
            _field(request, "text", str),
        )
        adapter = self._engines.get(name)
        if adapter is None:
            adapter = self._engines[name] = load(name)
        return {"tokens": offered(adapter, "tokenize")(model, text)}

    def _vocabulary(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        tokens = _field(request, "tokens", list)
        if not all(_is_integer(token) for token in tokens):
            raise JobError(BAD_REQUEST, "tokens is not a list of integers")
        adapter = self._opened()
        found: dict[str, Any] = offered(adapter, "vocabulary")()
        return {**found, "texts": offered(adapter, "spell")(tokens)}

    def _repeatability(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = offered(self._opened(), "repeatability")()
        return found

    def _mechanism(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        from harness import mechanisms

        hypothesis = mechanisms.load(_field(request, "hypothesis", str))
        law = hypothesis.law(self._opened(), request.get("logical") is True)
        return {
            "statement": hypothesis.statement,
            "law": [{"outcome": outcome, "p": p} for outcome, p in law],
        }

    def _replay(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        found = replay.references(self._opened().kernel())
        return {"records": [{"prefix": list(prefix), "entry": entry} for prefix, entry in found]}

    def _trace(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        trace = offered(self._opened(), "trace")
        arm, observed = _arm(request), _field(request, "observed", bool)
        return {"traces": [asdict(trace(arm, seed, observed)) for seed in _seeds(request)]}

    def _features(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        from harness import sweep

        return sweep.features(_field(request, "adapter", str))

    def _close(self, number: int, request: Mapping[str, Any]) -> dict[str, Any]:
        self.closed = True
        return {}

    def _opened(self) -> Adapter:
        if self._adapter is None:
            raise JobError(BAD_REQUEST, "no configuration is open")
        return self._adapter


def _arm(request: Mapping[str, Any]) -> Arm:
    given = _field(request, "arm", dict)
    return Arm(
        id=_field(given, "id", str),
        role=_field(given, "role", str),
        speculation=_field(given, "speculation", bool),
    )


def _seeds(request: Mapping[str, Any]) -> list[str]:
    seeds: list[str] = _field(request, "seeds", list)
    for seed in seeds:
        if not isinstance(seed, str) or not is_seed(seed):
            raise JobError(BAD_REQUEST, f"not a seed: {seed!r}")
    return seeds


def _field(mapping: Mapping[str, Any], name: str, kind: type) -> Any:
    value = mapping.get(name)
    if not isinstance(value, kind):
        raise JobError(BAD_REQUEST, f"{name} is missing or not of type {kind.__name__}")
    return value


def _optional(mapping: Mapping[str, Any], name: str, kind: type) -> Any:
    return None if mapping.get(name) is None else _field(mapping, name, kind)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def main() -> int:
    """Serve requests from stdin until `close` or the end of input; the exit status is 0.

    Operations, each `{"op", "id", ...}`: `hello`; `fingerprint`; `open` (`configuration`, `model`,
    `prompt`, `cwd`); `draws` (`arm`, `seeds`, `rows`), which sends one `{"id", "request"}` a seed before
    its `ok`; `law` (`naive`, `first`); `choices`, `explain` and `admit` (see
    `harness.collectors.choices_wire`); `mechanism` (`hypothesis`, `logical`), the law under a hypothesis
    (`harness.mechanisms`); `replay`, which gives `{"records": [{"prefix", "entry"}]}`
    (`harness.oracle.replay`); `trace` (`arm`, `seeds`, `observed`), which gives `{"traces"}`, one for each
    request of one row, with the adapter's observers or without (`harness.adapters.base.Trace`); `features`
    (`adapter`), what the installed engine offers (`harness.sweep`); `tokenize` (`adapter`, `model`, `text`),
    which gives `{"tokens"}`; `vocabulary` (`tokens`), which gives `{"size", "ends", "texts"}` of the open
    model, the texts being those of the given tokens; `repeatability`, which gives `{"prompt", "later"}` (see
    `harness.adapters.base.offered`); `close`.
    Errors: `bad-request`, `unsupported`, `engine`. KeyboardInterrupt, SystemExit and MemoryError end the
    process.
    """
    channel = wire.take_over()
    worker = Worker(channel)
    for line in channel.lines():
        worker.answer(line)
        if worker.closed:
            break
    return 0
