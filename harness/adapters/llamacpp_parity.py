"""A logits processor that depends on nothing but the length of what it is shown."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class PrefixParity:
    """After an even number of tokens (the prompt counts) only even tokens are possible, after an odd, odd.

    It keeps no state and does what the interface asks for; whoever shows it more than the prefix of the token
    to be chosen gets the wrong half.
    """

    def __call__(
        self, input_ids: npt.NDArray[np.intc], scores: npt.NDArray[np.single]
    ) -> npt.NDArray[np.single]:
        """`scores` of (V,), minus infinity where the token's parity is not that of `len(input_ids)`."""
        scores[1 - len(input_ids) % 2 :: 2] = -np.inf
        return scores
