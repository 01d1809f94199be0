"""Find the edges in photographs with the Sobel operator, one array expression from colour to edge strength.

python examples/edges_photo.py [--threshold 0.08] [--output out]
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
def edges(photo: Array, threshold: float) -> Array:
    """Edge strength from 0 to 1 of `photo` (height, width, 3), zero below `threshold`; one pixel smaller all round."""
    grey = 0.2126 * photo[:, :, 0] + 0.7152 * photo[:, :, 1] + 0.0722 * photo[:, :, 2]
    horizontal = (
        grey[:-2, 2:] + 2.0 * grey[1:-1, 2:] + grey[2:, 2:] - grey[:-2, :-2] - 2.0 * grey[1:-1, :-2] - grey[2:, :-2]
    )
    vertical = (
        grey[2:, :-2] + 2.0 * grey[2:, 1:-1] + grey[2:, 2:] - grey[:-2, :-2] - 2.0 * grey[:-2, 1:-1] - grey[:-2, 2:]
    )
    strength = np.minimum(np.sqrt(horizontal * horizontal + vertical * vertical) / 4.0, 1.0)
    return np.where(strength >= threshold, strength, 0.0)


def main(output: Path = Path("out"), threshold: float = 0.08, every: int = 1) -> list[Path]:
    """Find the edges of every photo; write `*_edges.png` to `output` and return the paths."""
    written: list[Path] = []
    for name in PHOTOS:
        photo = load_photo(name, every)
        strength, speed = compare(edges, photo, threshold)
        path = output / f"{Path(name).stem}_edges.png"
        save_pair(path, photo, strength / max(float(np.max(strength)), 1e-9), "edges")
        print(f"{name}: {np.mean(strength > 0.0):.1%} of the pixels are edges; {speed}; wrote {path}")
        written.append(path)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threshold", type=float, default=0.08)
    parser.add_argument("--output", type=Path, default=Path("out"))
    options = parser.parse_args()
    main(options.output, options.threshold)
