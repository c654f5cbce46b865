"""A failing path of the exact channel, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def lines(path: Mapping[str, Any], vocabulary: Sequence[str]) -> list[str]:
    """What the engine did on a path, what sequential decoding does, and what its processors were shown."""

    def text(tokens: Sequence[int]) -> str:
        return " ".join(vocabulary[t] if t < len(vocabulary) else str(t) for t in tokens) or "(nothing)"

    outcome = path.get("outcome", {})
    found = []
    if "tokens" in outcome:
        found.append(f"returned               {text(outcome['tokens'])}")
    if "tokens" in path.get("plain", {}):
        found.append(f"without speculation    {text(path['plain']['tokens'])}")
    if "crash" in outcome:
        found.append(f"raised                 {outcome['crash']}")
        found.append(f"after the choices      {text(path.get('choices', []))}")
    if path.get("what") == "row":
        found.append(f"after the prefix       {text(path['prefix'])}")
        found.append(f"probabilities used     {[round(p, 4) for p in path['used']]}")
        found.append(f"sequential decoding's  {[round(p, 4) for p in path['expected']]}")
        if path.get("saw") is not None:
            found.append(f"the processor saw      {text(path['saw'])}")
        found.append(f"it should have seen    {text(path.get('should_have_seen', []))}")
    elif path.get("what") == "stop":
        found.append(f"{path['detail']} after  {text(path['prefix'])}")
    elif path.get("what") != "crash" and "plain" not in path:
        found.append(f"what went wrong        {path.get('what')}")
    # Of a row, what its processors were shown; of a stop, what the stopping criteria were.
    calls = [text(call["saw"]) for call in path.get("calls", [])]
    wanted = [text(call["saw"]) for call in path.get("sequential_calls", [])]
    if calls != wanted:
        found.append(f"its calls were         {'; '.join(calls)}")
        found.append(f"sequentially           {'; '.join(wanted)}")
    return found
