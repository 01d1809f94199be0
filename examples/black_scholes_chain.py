"""Price a chain of options from a CSV and look for quotes that the model calls wrong.

    python examples/black_scholes_chain.py [CHAIN.csv] [--scenarios 500]

`options.csv` beside this file is invented: four symbols, seven expiries, a volatility smile and noisy quotes. Every
option is priced at today's spot, and then under many scenarios of spot and volatility to find the value at risk.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from common import compare
from numpy.typing import NDArray

from parakeet_py import accelerate

Array = NDArray[Any]
CHAIN = Path(__file__).with_name("options.csv")


def normal_cdf(x: Array) -> Array:
    """Abramowitz and Stegun 26.2.17; the error is below 7.5e-8."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * poly
    return np.where(x > 0.0, 1.0 - tail, tail)


@accelerate
def price(spot: Array, strike: Array, years: Array, rate: Array, volatility: Array, is_call: Array) -> Array:
    """Black-Scholes values of European options; all arguments broadcast."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    discounted = strike * np.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d1 - spread)
    value: Array = np.where(is_call, call, call - spot + discounted)
    return value


def read_chain(path: Path) -> tuple[list[dict[str, str]], dict[str, Array]]:
    """The rows of a chain, and its columns as arrays for `price`."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {
        name: np.array([float(row[name]) for row in rows])
        for name in ("spot", "strike", "days", "rate", "volatility", "bid", "ask")
    }
    columns["years"] = columns["days"] / 365.0
    columns["is_call"] = np.array([row["kind"] == "call" for row in rows])
    return rows, columns


def main(path: Path = CHAIN, scenarios: int = 500) -> float:
    """Print the oddest quotes and the value at risk of one of each option; return the value at risk."""
    rows, chain = read_chain(path)
    arguments = [chain[name] for name in ("spot", "strike", "years", "rate", "volatility", "is_call")]
    fair = price(*arguments)
    off = np.maximum(chain["bid"] - fair, fair - chain["ask"])
    print(f"{len(rows)} options; {np.count_nonzero(off > 0.0)} quotes do not span the model's value; the oddest:")
    for i in np.argsort(off)[::-1][:3]:
        row = rows[i]
        name = f"{row['symbol']} {row['kind']} {row['strike']} {row['expiry']}"
        print(f"  {name:32} {row['bid']:>7} bid, {row['ask']:>7} ask, model {fair[i]:.2f}")

    rng = np.random.default_rng(11)
    moves = 1.0 + 0.02 * rng.standard_normal((scenarios, 1))
    shifts = np.maximum(1.0 + 0.10 * rng.standard_normal((scenarios, 1)), 0.2)
    spot, strike, years, rate, volatility, is_call = arguments
    values, speed = compare(price, spot * moves, strike, years, rate, volatility * shifts, is_call)
    losses = np.sum(fair) - np.sum(values, axis=1)
    at_risk = float(np.quantile(losses, 0.95))
    print(f"{values.size} prices in {scenarios} scenarios: {speed}")
    print(f"one of each option is worth {np.sum(fair):.2f}; in 95 % of the scenarios it loses at most {at_risk:.2f}")
    return at_risk


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("chain", type=Path, nargs="?", default=CHAIN)
    parser.add_argument("--scenarios", type=int, default=500)
    options = parser.parse_args()
    main(options.chain, options.scenarios)
