"""A stopping criterion that depends on nothing but the last token of what it is shown."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class LastId:
    """Met where the last token is `token`. It keeps no state."""

    __slots__ = ("token",)

    def __init__(self, token: int) -> None:
        self.token = token

    def __call__(self, input_ids: npt.NDArray[np.intc], logits: npt.NDArray[np.single]) -> bool:
        """Whether generation shall end after these tokens."""
        return bool(input_ids[-1] == self.token)
