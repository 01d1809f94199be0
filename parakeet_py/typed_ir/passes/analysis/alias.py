"""Which arrays may share memory, and what an operator reads and writes.

Every array variable has a set of *atoms*: the places its memory may come from (a parameter, an `Alloc`, an operator's
out, the result of a call into Python). Views and reshapes have their base's atoms, merges the union of what flows in;
two variables may alias if their sets meet, unless one is memory that was new when the other was already bound (`u` and
`v` in a loop that ends with `u = v`), or both are parameters of a loop that begins with memory that is apart and keeps
it so (`u, v = v, u`). Parameters are different atoms where `Function.disjoint` says so (then they
overlap at most where both are only read, which orders nothing), else they are one atom.

Python code behind an `Opaque` may read and write every parameter, all that was ever handed to such code and all that
came from it (the *world*), and what it returns may be a view of any of that; one that leaves the function writes
nothing that would be read after it. A `Call` reads the arrays it is given,
writes those it says it stores into, and may give views of them if what it gives is not fresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.typed_ir.ir import (
    CHECKED,
    Alloc,
    AnyView,
    Block,
    Call,
    Cast,
    Check,
    Compress,
    Dim,
    For,
    Function,
    If,
    Interrupted,
    Load,
    Map,
    Matmul,
    Op,
    Opaque,
    Operand,
    Prim,
    Pure,
    Reduce,
    Routine,
    Scan,
    Store,
    Stride,
    Var,
    While,
    arrays_read,
    arrays_written,
    blocks_of,
)

Atoms = frozenset[Var]
_NONE: Atoms = frozenset()
_NO_ARRAYS = frozenset({Prim, Cast, Dim, Stride, Load, Store, Check, Matmul, Routine})  # among what they bind


@record(frozen=False)
class Effects:
    """What running an operator may do. `fails`: a `Check` or Python may raise; `overflows`: checked arithmetic may;
    `calls`: Python or a procedure runs."""

    reads: set[Var]
    writes: set[Var]
    fails: bool = False
    overflows: bool = False
    calls: bool = False

    @property
    def pure(self) -> bool:
        """Neither writes nor raises (but for overflow): may be dropped when its outs are not used."""
        return not self.writes and not self.fails


class Aliases:
    """The atoms of every array variable of a function."""

    def __init__(self, function: Function) -> None:
        self._atoms: dict[Var, Atoms] = {}
        self._flows: list[tuple[Var, Var]] = []
        self._handed_over: list[Var] = []
        self._settled = False
        self._from_python: list[Var] = []
        self._base: dict[Var, Var] = {}
        self._order: dict[Var, int] = {}  # of the statements that bind arrays
        self._made: set[Var] = set()
        self._loops: list[tuple[Sequence[Var], Sequence[Operand], Sequence[Operand], Sequence[Var]]] = []
        self._apart: set[frozenset[Var]] | None = None  # parameters and outs of loops that share no memory
        self._within: dict[int, tuple[Op, Effects]] = {}  # what operators do in their blocks, by `id`
        arrays = [param for param in function.params if isinstance(param.type, Array)]
        for param in arrays:
            self._atoms[param] = frozenset((param if function.disjoint else arrays[0],))
        self.world: Atoms = frozenset().union(*self._atoms.values())
        self._bound(arrays)
        self.add(function.body)
        self._settled = True  # the order of what is added from now on is not known

    def add(self, block: Block) -> None:
        """Take note of the statements of a block (also one made after the analysis)."""
        self._within.clear()
        self._apart = None
        self._collect(block)
        self._propagate()
        if self._from_python:
            world = set(self.world)
            for var in (*self._handed_over, *self._from_python):
                world |= self.atoms(var)
            self.world = frozenset(world)
            for var in self._from_python:
                self._atoms[var] = self.world
            self._propagate()
        elif self._handed_over:
            self.world = self.world.union(*map(self.atoms, self._handed_over))

    def atoms(self, var: Var) -> Atoms:
        return self._atoms.get(var, _NONE)

    def may_alias(self, left: Var, right: Var) -> bool:
        """Whether two variables may share memory where both are known."""
        if self.atoms(left).isdisjoint(self.atoms(right)):
            return False
        while left in self._base:
            left = self._base[left]
        while right in self._base:
            right = self._base[right]
        if self._new_beside(left, right) or self._new_beside(right, left):
            return False
        if self._apart is None:
            self._apart = self._kept_apart()
        return frozenset((left, right)) not in self._apart

    def _kept_apart(self) -> set[frozenset[Var]]:
        """Pairs of parameters, and of outs, of one loop that share no memory: their values before the loop do not, nor
        do those that an iteration hands on if those that it began with did not. All pairs are until one is found
        that is not."""
        known = self._apart = set[frozenset[Var]]()
        pairs = {
            (loop, left, right)
            for loop, (params, *_) in enumerate(self._loops)
            for left, right in combinations(range(len(params)), 2)
            if isinstance(params[left].type, Array) and isinstance(params[right].type, Array)
        }
        for loop, left, right in pairs:
            params, _, _, outs = self._loops[loop]
            known |= {frozenset((params[left], params[right])), frozenset((outs[left], outs[right]))}
        while True:
            wrong = [
                (loop, left, right)
                for loop, left, right in pairs
                if any(self._may_share(side[left], side[right]) for side in self._loops[loop][1:3])
            ]
            if not wrong:
                return known
            pairs.difference_update(wrong)
            for loop, left, right in wrong:
                params, _, _, outs = self._loops[loop]
                known -= {frozenset((params[left], params[right])), frozenset((outs[left], outs[right]))}

    def _may_share(self, left: Operand, right: Operand) -> bool:
        return not (isinstance(left, Var) and isinstance(right, Var)) or self.may_alias(left, right)

    def _new_beside(self, made: Var, other: Var) -> bool:
        """Whether an array was made when another was there already."""
        order = self._order.get(other)
        return made in self._made and order is not None and order < self._order[made]

    def shared(self) -> set[Var]:
        """The atoms that may be seen through another variable, or from Python."""
        shared = set(self.world)
        for var, atoms in self._atoms.items():
            shared.update(atom for atom in atoms if atom is not var)
        return shared

    # ---- building ----

    def _flow(self, source: Operand, target: Var) -> None:
        if isinstance(source, Var) and isinstance(target.type, Array) and isinstance(source.type, Array):
            self._flows.append((source, target))

    def _bound(self, variables: Sequence[Var]) -> None:
        if not self._settled:
            order = len(self._order)
            self._order.update((var, order) for var in variables if isinstance(var.type, Array))

    def _collect(self, block: Block) -> None:
        for let in block.statements:
            op, outs = let.op, let.outs
            if op.__class__ in _NO_ARRAYS:
                continue
            match op:
                case AnyView(base):
                    self._flow(base, outs[0])
                    self._base[outs[0]] = base
                case Alloc() | Map() | Reduce() | Scan() | Compress():
                    for out in outs:
                        if isinstance(out.type, Array):
                            self._atoms[out] = frozenset((out,))
                            if not self._settled:
                                self._made.add(out)
                case If(_, then, orelse):
                    for inner in (then, orelse):
                        for result, out in zip(inner.results, outs, strict=True):
                            self._flow(result, out)
                case For() | While():
                    self._bound(op.params)
                    skip = 1 if op.stoppable else 0
                    handed = op.params, op.inits, op.body.results[skip:], outs[skip:]
                    self._loops.append(handed)
                    for param, init, result, out in zip(*handed, strict=True):
                        self._flow(init, param)
                        self._flow(result, param)
                        self._flow(param, out)
                case Opaque(leaves=True):
                    pass  # nothing comes after it
                case Opaque(_, args):
                    self._handed_over += [arg for arg in args if isinstance(arg, Var) and isinstance(arg.type, Array)]
                    for out in outs:
                        if isinstance(out.type, Array):
                            self._atoms[out] = frozenset((out,))
                            self._from_python.append(out)
                case Call(_, args, fresh=fresh):
                    for out in outs:
                        if isinstance(out.type, Array):
                            self._atoms[out] = frozenset((out,))
                            if fresh and not self._settled:
                                self._made.add(out)
                        if not fresh:
                            for arg in args:
                                self._flow(arg, out)
            for inner in blocks_of(op):
                self._collect(inner)
            self._bound(outs)

    def _propagate(self) -> None:
        """Let atoms flow until nothing changes; flows are in program order, so one round settles all but loops."""
        changed = True
        while changed:
            changed = False
            for source, target in self._flows:
                had = self._atoms.get(target, _NONE)
                new = had | self._atoms.get(source, _NONE)
                if len(new) != len(had):
                    self._atoms[target] = new
                    changed = True

    # ---- effects -----------------------------------------------------------------------------------------------------

    def effects(self, op: Op) -> Effects:
        """What running `op` may read, write and raise, everything inside it included."""
        effects = Effects(set(), set())
        self._effects(op, effects)
        return effects

    def _effects(self, op: Op, effects: Effects) -> None:
        if isinstance(op, Prim):
            if op.name in CHECKED:
                effects.overflows = True
            return
        if isinstance(op, Pure):
            return
        for array in arrays_read(op):
            effects.reads |= self.atoms(array)
        for array in arrays_written(op):
            effects.writes |= self.atoms(array)
        match op:
            case Opaque(_, args, leaves):
                effects.reads |= self.world
                effects.writes |= _NONE if leaves else self.world
                for arg in args if leaves else ():
                    if isinstance(arg, Var) and isinstance(arg.type, Array):
                        effects.reads |= self.atoms(arg)
                effects.fails = effects.calls = True
            case Call(_, args, fails=fails):
                for arg in args:
                    if isinstance(arg, Var) and isinstance(arg.type, Array):
                        effects.reads |= self.atoms(arg)
                effects.calls = True
                effects.fails |= fails
            case Check():
                effects.fails = True
            case Interrupted():
                effects.calls = True
        blocks = blocks_of(op)
        if not blocks:
            return
        known = self._within.get(id(op))
        if known is None:  # passes ask of what is nested on each level
            known = self._within[id(op)] = op, Effects(set(), set())
            for block in blocks:
                for let in block.statements:
                    self._effects(let.op, known[1])
        within = known[1]
        effects.reads |= within.reads
        effects.writes |= within.writes
        effects.fails |= within.fails
        effects.overflows |= within.overflows
        effects.calls |= within.calls
