"""The typed IR as readable text.

    def smooth(a.1: float64[1C]):
        n.2: pyint = dim a.1, 0
        t.3: pyint = sub n.2, 2
        m.9: float64[1C] = map i.4 < t.3:
            e.5: float64 = a.1[i.4]
            ...
            yield t.8
        return m.9

A block is indented; its results follow `yield`. Nothing parses this text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parakeet_py.base import grammar
from parakeet_py.base.positions import Line
from parakeet_py.base.types import Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var


def format_function(function: Function) -> str:
    return "".join([f"{line.text}\n" for line in lines_of(function)])


def lines_of(function: Function) -> Iterator[Line]:
    """The text of a function, line by line."""
    params = ", ".join(_typed(param) for param in function.params)
    yield Line(f"def {function.name}({params}):" + ("" if function.disjoint else "  # parameters may overlap"))
    for line in _block(function.body, "return"):
        yield line.indented()
    library = [_declaration(one) for one in function.procedures if one.library]
    yield from map(Line, ["", *library] if library else [])
    for one in function.procedures:
        if not one.library:
            yield Line("")
            yield from lines_of(one)


def _declaration(procedure: Function) -> str:
    """A procedure of the library, without its body."""
    params = ", ".join(_typed(param) for param in procedure.params)
    results = ", ".join(str(result.type) for result in procedure.body.results)
    return f"library {procedure.name}({params}) -> {results or 'nothing'}"


def format_statement(let: Let) -> str:
    return "\n".join([line.text for line in _statement(let)])


def format_view(op: ir.View) -> str:
    axes = ", ".join(
        f"{format_operand(axis.extent)} of "
        + ("new" if axis.source is None else f"axis {axis.source} step {format_operand(axis.step)}")
        for axis in op.axes
    )
    return f"view {op.base!r} from [{_list(op.starts)}]: ({axes})"


def format_operand(operand: Operand) -> str:
    """`x.3`, or a literal with its type unless that is what Python reads it as."""
    if isinstance(operand, Var):
        return repr(operand)
    if operand.type.python or operand.type.dtype == "bool":
        return repr(operand.value)
    return f"{operand.value!r}:{operand.type!r}"


def _typed(var: Var) -> str:
    return f"{var!r}: {var.type!r}"


def _list(operands: Iterable[Operand]) -> str:
    return ", ".join(format_operand(operand) for operand in operands)


def _block(block: Block, ending: str) -> Iterator[Line]:
    for let in block.statements:
        yield from _statement(let)
    if block.results:
        yield Line(f"{ending} {_list(block.results)}")
    elif not block.statements:
        yield Line("pass")


def _statement(let: Let) -> Iterator[Line]:
    outs = ", ".join(_typed(out) for out in let.outs)
    head = f"{outs} = " if outs else ""
    for part in _op(let.op):
        if isinstance(part, Block):
            for line in _block(part, "yield"):
                yield line.indented()
        else:
            yield Line(head + part, let.pos)
        head = ""


def _space(indices: Iterable[Var], extents: Iterable[Operand]) -> str:
    return ", ".join(f"{index!r} < {format_operand(extent)}" for index, extent in zip(indices, extents, strict=False))


def _gates(params: Iterable[Var], inits: Iterable[Operand]) -> str:
    return ", ".join(f"{_typed(param)} = {format_operand(init)}" for param, init in zip(params, inits, strict=False))


def _combine(inits: tuple[Operand, ...], combine: ir.Lambda) -> Iterator[str | Block]:
    yield f"combine from {_list(inits)} with {', '.join(map(_typed, combine.params))}:"
    yield combine.body


def _op(op: Op) -> Iterator[str | Block]:
    """The lines of an operator, and its blocks, which are indented."""
    match op:
        case ir.Cast(arg):
            yield f"cast {format_operand(arg)}" + (f" from {arg.type!r}" if isinstance(arg.type, Scalar) else "")
        case ir.View():
            yield format_view(op)
        case ir.If(condition, then, orelse):
            yield f"if {format_operand(condition)}:"
            yield then
            yield "else, seldom:" if op.seldom else "else:"
            yield orelse
        case ir.For(index, start, stop, step, params, inits, body, stoppable):
            carried = f" with {_gates(params, inits)}" if params else ""
            loop = "stoppable for" if stoppable else "for"
            yield f"{loop} {index!r} in range({_list((start, stop, step))}){carried}:"
            yield body
        case ir.While(params, inits, condition, body, stoppable):
            carried = f" with {_gates(params, inits)}" if params else ""
            yield ("stoppable while" if stoppable else "while") + f"{carried}:"
            yield condition
            yield "do:"
            yield body
        case ir.Check(condition, failure, args):
            shown = f", {_list(args)}" if args else ""
            yield f"check {format_operand(condition)} else {failure.exception}({failure.message!r}{shown})"
        case ir.Map(extents, indices, body):
            yield f"map {_space(indices, extents)}:"
            yield body
        case ir.Reduce(extents, indices, reduced, reduced_indices, body, inits, combine, runs):
            kept = f"{_space(indices, extents)} over " if extents else ""
            order = f" in runs {_list(runs)}" if runs else ""
            yield f"reduce {kept}{_space(reduced_indices, reduced)}{order}:"
            yield body
            yield from _combine(inits, combine)
        case ir.Scan(extents, indices, axis, body, inits, combine, inclusive):
            yield f"scan {'' if inclusive else 'exclusive '}{_space(indices, extents)} along {axis}:"
            yield body
            yield from _combine(inits, combine)
        case ir.Compress(extents, indices, body):
            yield f"compress {_space(indices, extents)}:"
            yield body
        case ir.Scatter(target, extents, indices, body, combine, chunk):
            by = f" by {chunk}" if chunk else ""
            yield f"scatter into {target!r} {_space(indices, extents)}{by}:"
            yield body
            yield f"combine with {', '.join(map(_typed, combine.params))}:"
            yield combine.body
        case ir.Call(procedure, args, stores):
            into = f" storing into {', '.join(format_operand(args[position]) for position in stores)}" if stores else ""
            yield f"call {procedure}({_list(args)}){into}"
        case _:
            yield grammar.text(op, format_operand)


def show(operand: Operand | Const) -> str:
    """An operand with its type, for messages."""
    return f"{format_operand(operand)} ({operand.type!r})"
