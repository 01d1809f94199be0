"""Weak scaling on modelled devices: what is measured, and its table."""

from __future__ import annotations

from parakeet_py.bench.chosen import into
from parakeet_py.bench.scaling import BEGIN, END, rows, table


def test_rows_and_table() -> None:
    (row,) = rows(counts=(1, 2), shape=(1 << 14, 256), only="row")
    assert row.name == "row_sums" and all(0 < row.host[count] <= row.seconds[count] for count in (1, 2))
    text = table([row])
    assert text.splitlines()[0] == "| work | 1 | 2 | efficiency on 2 | host, on 2 |"
    assert f"| {row.seconds[1] / row.seconds[2]:.2f} |" in text
    assert into(f"a\n{BEGIN}\nold\n{END}\nb", text, BEGIN, END) == f"a\n{BEGIN}\n\n{text}\n\n{END}\nb"
