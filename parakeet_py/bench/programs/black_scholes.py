"""European option prices: long elementwise arithmetic, exponentials and logarithms, a helper called twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, Tolerance, prange


def normal_cdf(x: Array) -> Array:
    """Abramowitz and Stegun 26.2.17, the polynomial every options desk has in a spreadsheet."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * poly
    return np.where(x > 0.0, 1.0 - tail, tail)


def black_scholes(price: Array, strike: Array, years: Array, rate: float, volatility: float) -> tuple[Array, Array]:
    spread = volatility * np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * np.exp(-rate * years)
    call = price * normal_cdf(d1) - discounted * normal_cdf(d2)
    put = discounted * (1.0 - normal_cdf(d2)) - price * (1.0 - normal_cdf(d1))
    return call, put


def scalar_cdf(x: float) -> Any:
    k = 1.0 / (1.0 + 0.2316419 * abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * poly
    return 1.0 - tail if x > 0.0 else tail


def black_scholes_loops(
    price: Array, strike: Array, years: Array, rate: float, volatility: float
) -> tuple[Array, Array]:
    call = np.empty_like(price)
    put = np.empty_like(price)
    for i in prange(len(price)):
        spread = volatility * np.sqrt(years[i])
        d1 = (np.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / spread
        discounted = strike[i] * np.exp(-rate * years[i])
        n1 = scalar_cdf(d1)
        n2 = scalar_cdf(d1 - spread)
        call[i] = price[i] * n1 - discounted * n2
        put[i] = discounted * (1.0 - n2) - price[i] * (1.0 - n1)
    return call, put


def inputs(rng: np.random.Generator, n: int) -> Arguments:
    return rng.uniform(5.0, 30.0, n), rng.uniform(1.0, 100.0, n), rng.uniform(0.25, 10.0, n), 0.02, 0.3


PROGRAM = Program(
    name="black_scholes",
    summary="prices of n European calls and puts",
    function=black_scholes,
    inputs=inputs,
    sizes={"XS": (64,), "S": (10_000,), "M": (1_000_000,), "L": (10_000_000,)},
    tolerance=Tolerance(rtol=1e-9, atol=1e-12),
    loops=black_scholes_loops,
    jax=True,
    c=True,
)
