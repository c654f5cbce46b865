"""Workers side by side that hold the same configuration: started once, used for whatever is asked of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from prereg.collect.worker import Launch, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a worker is asked to open."""

    configuration: Mapping[str, Any]
    model: Mapping[str, Any] | None
    prompt: Sequence[int] | None
    text: str | None = None
    """A prompt for the model's own tokenizer, in place of token ids."""

    cwd: str | None = None

    def on(self, worker: Worker) -> list[int] | None:
        """Open it; return the prompt's token ids. Raises WorkerRefused, WorkerLost."""
        prompt = None if self.prompt is None else list(self.prompt)
        model = None if self.model is None else dict(self.model)
        if self.text is not None:
            adapter = self.configuration["adapter"]
            prompt = list(worker.call("tokenize", adapter=adapter, model=model, text=self.text)["tokens"])
        worker.call("open", configuration=dict(self.configuration), model=model, prompt=prompt, cwd=self.cwd)
        return prompt


class Hands(Protocol):
    """Workers with one configuration open, however many and wherever they come from."""

    def every(self, call: Callable[[Worker], Any]) -> list[Any]:
        """Let every worker carry out `call`, all at once; raises the first failure of any."""
        ...


class Lanes:
    """A number of workers with one configuration open in each.

    They are started by the thread that enters the context, which must outlive them: a worker ends with it.
    """

    def __init__(self, launch: Callable[[str], Launch], count: int) -> None:
        self._launch = launch
        self._count = count
        self._stack = contextlib.ExitStack()
        self.workers: tuple[Worker, ...] = ()

    def __enter__(self) -> Lanes:
        with contextlib.ExitStack() as stack:
            self.workers = tuple(
                stack.enter_context(Worker(self._launch(f"lane-{number}"))) for number in range(self._count)
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        self._stack.close()

    def open(self, opening: Opening) -> list[int] | None:
        """Open a configuration in every lane; return the prompt's token ids.

        Raises WorkerRefused if the engine's adapter does not take it, WorkerLost if a worker fails.
        """
        prompts: list[list[int] | None] = self.every(opening.on)
        return prompts[0]

    def every(self, call: Callable[[Worker], Any]) -> list[Any]:
        """What `call` returns for each lane, all at once; the first failure ends all lanes."""
        with ThreadPoolExecutor(max_workers=self._count) as pool:
            futures = [pool.submit(call, worker) for worker in self.workers]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self.kill()
                raise

    def kill(self) -> None:
        """End every worker at once; safe from any thread."""
        for worker in self.workers:
            worker.kill()
