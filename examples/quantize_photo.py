"""Paint photographs with few colours: k-means over the pixels, written as plain NumPy and decorated.

    python examples/quantize_photo.py [--colours 16] [--rounds 10] [--output out]

The (pixels x colours x 3) differences that the broadcast source speaks of are never stored.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from common import PHOTOS, compare, load_photo, save_pair
from numpy.typing import NDArray

from parakeet_py import accelerate

Array = NDArray[Any]


@accelerate
def quantize(pixels: Array, palette: Array, rounds: int) -> tuple[Array, Array]:
    """The palette after `rounds` of k-means, and the number of the nearest colour for each pixel."""
    palette = palette.copy()
    for _ in range(rounds):
        labels = np.argmin(np.sum((pixels[:, None, :] - palette[None, :, :]) ** 2, axis=2), axis=1)
        for colour in range(len(palette)):
            members = labels == colour
            count = np.sum(members)
            if count > 0:
                palette[colour] = np.sum(pixels * members[:, None], axis=0) / count
    labels = np.argmin(np.sum((pixels[:, None, :] - palette[None, :, :]) ** 2, axis=2), axis=1)
    return palette, labels


def main(output: Path = Path("out"), colours: int = 16, rounds: int = 10, every: int = 1) -> list[Path]:
    """Quantize every photo; write `*_quantized.png` to `output` and return the paths."""
    written: list[Path] = []
    for name in PHOTOS:
        photo = load_photo(name, every)
        pixels = photo.reshape(-1, 3)
        start = pixels[np.random.default_rng(7).choice(len(pixels), colours, replace=False)]
        (palette, labels), speed = compare(quantize, pixels, start, rounds, repeats=1)
        painted = palette[labels].reshape(photo.shape)
        path = output / f"{Path(name).stem}_quantized.png"
        save_pair(path, photo, painted, f"{colours} colours")
        before = len(np.unique(pixels, axis=0))
        error = float(np.sqrt(np.mean((painted - photo) ** 2)))
        print(f"{name}: {before} colours to {colours}, root mean square error {error:.3f}; {speed}; wrote {path}")
        written.append(path)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--colours", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("out"))
    options = parser.parse_args()
    main(options.output, options.colours, options.rounds)
