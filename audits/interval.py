"""Clopper-Pearson endpoints from the standard library alone.

With X ~ Binomial(n, p), P(X >= k) = I_p(k, n-k+1), the regularized incomplete beta function; it is the
product of the binomial probability of k and a continued fraction. The probability is taken through
deviances and Stirling remainders, which keeps its relative precision where differences of ``lgamma``
lose it. The endpoint is found by Newton steps on the logarithm of the tail, which is concave, inside a
bracket that falls back to bisection.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_TINY = 1e-300


def _stirling(n: float) -> float:
    """log(n!) minus Stirling's formula for it."""
    if n <= 15:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - _HALF_LOG_2PI
    nn = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / nn) / nn) / nn) / nn) / n


def _deviance(x: float, mean: float) -> float:
    """x log(x/mean) + mean - x, without cancellation near x = mean."""
    gap = x - mean
    if abs(gap) < 0.1 * (x + mean):
        v = gap / (x + mean)
        total, term, j = gap * v, 2.0 * x * v, 1
        v *= v
        while True:
            term *= v
            after = total + term / (2 * j + 1)
            if after == total:
                return total
            total, j = after, j + 1
    return x * math.log(x / mean) + mean - x


def _log_pmf(k: int, n: int, p: float) -> float:
    """The log of the binomial probability of k in n, for 0 < k < n and 0 < p < 1."""
    rest = n - k
    scale = _stirling(n) - _stirling(k) - _stirling(rest)
    spread = _deviance(k, n * p) + _deviance(rest, n * (1.0 - p))
    return scale - spread + 0.5 * math.log(n / k / rest) - _HALF_LOG_2PI


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of I_x(a, b), by Lentz's method."""
    total = a + b
    c, d = 1.0, 1.0 - total * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    h = d
    for m in range(1, 1_000_000):
        twice = a + 2 * m
        even = m * (b - m) * x / ((twice - 1.0) * twice)
        d = 1.0 + even * d
        c = 1.0 + even / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        h *= d * c
        odd = -(a + m) * (total + m) * x / (twice * (twice + 1.0))
        d = 1.0 + odd * d
        c = 1.0 + odd / c
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = c if abs(c) > _TINY else _TINY
        step = d * c
        h *= step
        if abs(step - 1.0) < 1e-15:
            return h
    raise ArithmeticError(f"the continued fraction of I_{x}({a}, {b}) did not converge")


def _log_tail(k: int, n: int, p: float) -> tuple[float, float]:
    """log P(X >= k), and its derivative by p; for 0 < k < n and 0 < p < 1."""
    log_pmf = _log_pmf(k, n, p)
    a, b = float(k), float(n - k + 1)
    if p < (a + 1.0) / (a + b + 2.0):
        log_tail = log_pmf + math.log((1.0 - p) * _fraction(a, b, p))
    else:
        below = math.exp(log_pmf) * k / b * (1.0 - p) * _fraction(b, a, 1.0 - p)
        log_tail = math.log1p(-min(below, 1.0 - 1e-16))
    return log_tail, math.exp(log_pmf - log_tail) * k / p


def _start(k: int, n: int, level: float) -> float:
    """A first guess: Wilson's bound, kept inside (0, 1)."""
    z = -NormalDist().inv_cdf(level)
    z2 = z * z
    centre = k + z2 / 2
    width = z * math.sqrt(k * (n - k) / n + z2 / 4)
    return min(max((centre - width) / (n + z2), 1e-12 * k / n), 1.0 - 1e-12)


@cache
def lower(k: int, n: int, level: float) -> float:
    """The lower endpoint for k of n: 0 if k = 0, else the ``level`` quantile of Beta(k, n-k+1)."""
    if not (0 <= k <= n and n >= 1 and 0.0 < level < 1.0):
        raise ValueError(f"no endpoint for k={k}, n={n}, level={level}")
    if k == 0:
        return 0.0
    if k == n:
        return math.exp(math.log(level) / n)
    if k == 1:
        return -math.expm1(math.log1p(-level) / n)
    target = math.log(level)
    low, high, p = 0.0, 1.0, _start(k, n, level)
    for _ in range(200):
        value, slope = _log_tail(k, n, p)
        gap = value - target
        if gap > 0.0:
            high = p
        else:
            low = p
        after = p - gap / slope if slope > 0.0 and math.isfinite(slope) else -1.0
        if not low < after < high:
            if abs(after - p) <= 4e-16 * p or high - low <= 4e-16 * high:
                return p
            after = 0.5 * (low + high)
        if abs(after - p) <= 4e-16 * p:
            return after
        p = after
    return p


def upper(k: int, n: int, level: float) -> float:
    """The upper endpoint for k of n: 1 if k = n, else the ``1 - level`` quantile of Beta(k+1, n-k)."""
    return 1.0 - lower(n - k, n, level)


def of_both(k_off: int, n_off: int, k_on: int, n_on: int, level: float) -> dict[str, int | float]:
    """The counts of both arms and the four endpoints, by the names that ``decisions.json`` gives them."""
    return {
        "k_off": k_off,
        "k_on": k_on,
        "L_off": lower(k_off, n_off, level),
        "U_off": upper(k_off, n_off, level),
        "L_on": lower(k_on, n_on, level),
        "U_on": upper(k_on, n_on, level),
    }
