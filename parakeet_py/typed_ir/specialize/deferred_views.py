"""Deferred views: copies that stand for what NumPy makes a view of.

Some views cannot be expressed as a `View`: the real parts of a complex array, a diagonal, a reshape of strided memory
(a view or a copy, as the strides have it). They are computed as new arrays, which fuse with what reads them, and that
cannot be distinguished from a view as long as the memory is not stored to afterwards or seen elsewhere. When it
is, specialization starts again (`RealView`), and that one operation makes the real view (`strided`): a view or a copy
as the strides have it when the program runs. What cannot be said so is handed back to Python.

Real views whose elements share memory (np.broadcast_arrays) are the same for who reads them; a store through one, of
which NumPy warns, hands them back likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.frontend import ssa
from parakeet_py.signature.facts import Facts
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.restarts import HandBack, RealView, Site
from parakeet_py.typed_ir.specialize.values import ArrayV, Frame


class DeferredViews:
    """Those of one specialization. `wanted` are sites that make real views; `want` takes further ones."""

    def __init__(self, facts: Facts, want: Callable[[frozenset[Site]], None]) -> None:
        self.wanted = frozenset(one.site for one in facts.of(RealView))
        self.want = want
        self.site: Site = ()  # the statement of the user's that is being compiled
        self.made: dict[int, tuple[frozenset[int], Site]] = {}  # its memory: what it may share, and where it was made
        self.merged: dict[int, frozenset[int]] = {}  # memory of a loop's iterations: what was made there and leaves it
        self.guarded: dict[Site, int] = {}  # where views were made whose elements share memory, and their marks
        self.fresh: set[ir.Var] = set()  # arrays that were new when they were appended to a list
        self.written: frozenset[int] = frozenset()
        self.returned: frozenset[int] = frozenset()
        self.kept: frozenset[int] = frozenset()  # memory that Python may go on using,
        self.changed: frozenset[int] = frozenset()  # and that is stored to here
        self.both = False  # is there some that is both, in this order?

    def keep(self, roots: frozenset[int], looping: bool) -> None:
        """Python may go on using some memory after an operation."""
        self.kept |= roots
        self.both |= looping and not roots.isdisjoint(self.changed)

    def change(self, roots: frozenset[int]) -> None:
        """Compiled code stores to some memory."""
        self.changed |= roots
        self.both |= not roots.isdisjoint(self.kept)

    def add(
        self, base: ArrayV, made_here: bool, new_root: Callable[[], int], frames: Sequence[Frame]
    ) -> frozenset[int]:
        """The memory of a new deferred view of an array; what the iteration has `made_here`, no later one stores to."""
        if self.site in self.wanted:
            raise HandBack("a view that cannot be compiled, of memory that is stored to or seen elsewhere")
        if base.roots & self.written and not made_here and _loops(frames):
            self.want(frozenset({self.site}))
        root = new_root()
        self.made[root] = (base.roots, self.site)
        return frozenset({root})

    def guard(self) -> frozenset[int]:
        """A mark for a view through which only Python stores."""
        if self.site in self.wanted:
            raise HandBack("a view whose elements share memory, and that is stored to")
        # Older than anything made in a loop, so that it is kept apart there; one for each site, so that loops settle.
        return frozenset({self.guarded.setdefault(self.site, -1 - len(self.guarded))})

    def merge(self, inside: int, roots: frozenset[int]) -> None:
        """A loop hands on memory that its iterations have made, from now on known as `inside`."""
        self.merged[inside] = self.merged.get(inside, frozenset()) | (roots - {inside})
        if inside in self.written:  # by the next iteration
            self._refuse(frozenset({inside}))

    def _unmerged(self, roots: frozenset[int]) -> frozenset[int]:
        return _reached(roots, lambda root: self.merged.get(root, frozenset()))

    def behind(self, roots: frozenset[int]) -> frozenset[int]:
        """Some memory, with what the deferred views in it stand for."""
        return _reached(roots, lambda root: self.made[root][0] if root in self.made else frozenset())

    def store(self, roots: frozenset[int]) -> None:
        """Some memory is going to be stored to."""
        roots = self._unmerged(roots) if self.merged else roots
        guarded = frozenset(site for site, root in self.guarded.items() if root in roots)
        if guarded:
            self.want(guarded)
        self._refuse(roots)
        self.written |= roots

    def shown(self, roots: frozenset[int]) -> None:
        """Python gets objects that show this memory."""
        self._refuse(roots)

    def result(self, array: ArrayV, visible: frozenset[int]) -> None:
        """An array is returned; the caller also sees the memory in `visible`."""
        if not self.made:
            return
        roots = self._unmerged(array.roots)
        shared = frozenset(root for own in roots if own in self.made for root in self.made[own][0])
        if shared & (visible | self.returned) or (shared and array.readonly):
            self._refuse(roots)
        self.returned |= roots | shared
        for root, (base, site) in self.made.items():
            if root in self.returned and base & roots:
                self.want(frozenset({site}))

    def _refuse(self, roots: frozenset[int]) -> None:
        """Make the deferred views of some memory, and those that live in it, real views."""
        roots = self._unmerged(roots)
        sites = frozenset(site for root, (base, site) in self.made.items() if root in roots or base & roots)
        if sites:
            self.want(sites)


def _reached(roots: frozenset[int], following: Callable[[int], frozenset[int]]) -> frozenset[int]:
    found, todo = set(roots), list(roots)
    while todo:
        new = following(todo.pop()) - found
        found |= new
        todo += new
    return frozenset(found)


def _loops(frames: Sequence[Frame]) -> bool:
    return any(
        isinstance(let.op, ssa.For | ssa.While)
        for frame in frames
        if not frame.namespace.trusted
        for let in frame.function.statements()
    )
