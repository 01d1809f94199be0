"""Smooth photographs: a binomial filter down the columns and along the rows, repeated, in slices.

python examples/smooth_photo.py [--passes 8] [--output out]
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
def smooth(photo: Array, passes: int) -> Array:
    """`photo` (height, width, channels) after `passes` of the filter 1 4 6 4 1; two border pixels stay."""
    picture = photo.copy()
    for _ in range(passes):
        down = picture.copy()
        down[2:-2] = (
            picture[:-4] + 4.0 * picture[1:-3] + 6.0 * picture[2:-2] + 4.0 * picture[3:-1] + picture[4:]
        ) / 16.0
        picture[:, 2:-2] = (
            down[:, :-4] + 4.0 * down[:, 1:-3] + 6.0 * down[:, 2:-2] + 4.0 * down[:, 3:-1] + down[:, 4:]
        ) / 16.0
    return picture


def main(output: Path = Path("out"), passes: int = 8, every: int = 1) -> list[Path]:
    """Smooth every photo; write `*_smooth.png` to `output` and return the paths."""
    written: list[Path] = []
    for name in PHOTOS:
        photo = load_photo(name, every)
        result, speed = compare(smooth, photo, passes)
        roughness = [float(np.mean(np.abs(np.diff(picture, axis=1)))) for picture in (photo, result)]
        path = output / f"{Path(name).stem}_smooth.png"
        save_pair(path, photo, result, f"{passes} passes")
        print(f"{name}: mean step between neighbours {roughness[0]:.4f} to {roughness[1]:.4f}; {speed}; wrote {path}")
        written.append(path)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--output", type=Path, default=Path("out"))
    options = parser.parse_args()
    main(options.output, options.passes)
