"""What a function returns, behind the merges that only carry its result to its end."""

from __future__ import annotations

from collections.abc import Iterator

from parakeet_py.frontend import ssa


def results_only(function: ssa.Function) -> set[ssa.Var]:
    """The merges of a function whose values are used for nothing but to be its result, on whatever way."""
    feeds: dict[ssa.Var, set[ssa.Var]] = {}  # what a merge gives its value to
    used: set[ssa.Var] = set()
    merges: set[ssa.Var] = set()

    def merge(out: ssa.Var, *sources: ssa.Operand) -> None:
        merges.add(out)
        for source in sources:
            if isinstance(source, ssa.Var):
                feeds.setdefault(source, set()).add(out)

    for let in function.statements():
        op = let.op
        match op:
            case ssa.If(condition, then, orelse):
                used |= {condition} if isinstance(condition, ssa.Var) else set()
                for out, *results in zip(let.outs, then.results, orelse.results, strict=True):
                    merge(out, *results)
            case ssa.For() | ssa.While():
                skip = int(op.stoppable)
                if isinstance(op, ssa.For) and isinstance(op.iterable, ssa.Var):
                    used.add(op.iterable)
                if isinstance(op, ssa.While):
                    used |= {one for one in op.condition.results if isinstance(one, ssa.Var)}
                used |= {one for one in op.body.results[:skip] if isinstance(one, ssa.Var)}
                rows = zip(op.params, op.inits, op.body.results[skip:], let.outs[skip:], strict=True)
                for param, init, following, out in rows:
                    merge(param, init, following)
                    merge(out, param)
            case _:
                used |= {one for one in ssa.operands_of(op) if isinstance(one, ssa.Var)}
                used |= {one for block in ssa.blocks_of(op) for one in block.results if isinstance(one, ssa.Var)}
    found = merges - used
    while True:
        lost = {one for one in found if not feeds.get(one, set()) <= found}
        if not lost:
            return found
        found -= lost


def returned(function: ssa.Function, results: set[ssa.Var]) -> list[ssa.Operand]:
    """What a function may return, behind the merges that only carry its result."""
    sources: dict[ssa.Var, list[ssa.Operand]] = {}
    for let in function.statements():
        match let.op:
            case ssa.If(_, then, orelse):
                for out, *given in zip(let.outs, then.results, orelse.results, strict=True):
                    sources[out] = given
            case (ssa.For() | ssa.While()) as op:
                skip = int(op.stoppable)
                rows = zip(op.params, op.inits, op.body.results[skip:], let.outs[skip:], strict=True)
                for param, init, following, out in rows:
                    sources[param], sources[out] = [init, following], [param]
    found: list[ssa.Operand] = []
    pending, seen = list(function.body.results), set[ssa.Operand]()
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in results and isinstance(one, ssa.Var) and one in sources:
            pending += sources[one]
        else:
            found.append(one)
    return found


def functions_in(function: ssa.Function) -> Iterator[ssa.Function]:
    """A function and those inside it, each once."""
    seen: set[int] = set()
    pending = [function]
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            pending += [let.op.function for let in one.statements() if isinstance(let.op, ssa.MakeClosure)]
