"""Imp as readable text.

    def smooth(a.1: float64[1C]):
        n.2: pyint = dim a.1, 0
        m.9: float64[1C] = new heap (n.2)
        parallel map [lo.10, hi.11) of n.2, grain 64, work 5:
            vector i.12 in lo.10 .. hi.11:
                e.5: float64 = a.1[i.12]
                m.9[i.12] := e.5
        return m.9

Cells begin with a dollar sign, `:=` writes, `~` marks operations that may be regrouped. Nothing parses this text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parakeet_py.imp import ir
from parakeet_py.imp.ir import Block, Function, Let
from parakeet_py.typed_ir.ir import AnyView, Cast, Dim, Load, Operand, Prim, Stride
from parakeet_py.typed_ir.print import format_op, format_operand

_INDENT = "    "


def format_function(function: Function) -> str:
    lines: list[str] = []
    for one in (function, *function.procedures):
        params = ", ".join(f"{param!r}: {param.type!r}" for param in one.params)
        lines.append(f"def {one.name}({params}):")
        lines += [_INDENT + line for line in _block(one.body)]
        if one.results:
            lines.append(f"{_INDENT}return {_list(one.results)}")
    for code, site in enumerate(function.failures):
        if code:
            failure = site.failure
            lines.append(f"failure {code}: {failure.exception}({failure.message!r}) at line {site.pos.line}")
    return "\n".join(lines) + "\n"


def format_statement(statement: ir.Statement) -> str:
    return "\n".join(_statement(statement))


def _list(operands: Iterable[Operand]) -> str:
    return ", ".join([format_operand(operand) for operand in operands])


def _block(block: Block) -> Iterator[str]:
    if not block.statements:
        yield "pass"
    for statement in block.statements:
        yield from _statement(statement)


def _indented(block: Block) -> Iterator[str]:
    for line in _block(block):
        yield _INDENT + line


def _statement(statement: ir.Statement) -> Iterator[str]:
    match statement:
        case Let(out, rhs, _, reassoc):
            yield f"{out!r}: {out.type!r} = {'~' if reassoc else ''}{_rhs(rhs)}"
        case ir.Declare(cell, init):
            yield f"cell {cell!r}: {cell.type!r}" + ("" if init is None else f" := {format_operand(init)}")
        case ir.Write(cell, value):
            yield f"{cell!r} := {format_operand(value)}"
        case ir.Store(array, indices, value):
            yield f"{array!r}[{_list(indices)}] := {format_operand(value)}"
        case ir.If(condition, then, orelse):
            yield f"if {format_operand(condition)}:"
            yield from _indented(then)
            if orelse.statements:
                yield "else:"
                yield from _indented(orelse)
        case ir.For(index, start, stop, step, body, kind):
            by = "" if getattr(step, "value", None) == 1 else f" by {format_operand(step)}"
            name = "for" if kind == "serial" else kind
            yield f"{name} {index!r} in {format_operand(start)} .. {format_operand(stop)}{by}:"
            yield from _indented(body)
        case ir.While(head, condition, body):
            yield "while:"
            yield from _indented(head)
            yield f"{_INDENT}leave unless {format_operand(condition)}"
            yield from _indented(body)
        case ir.Break():
            yield "break"
        case ir.Parallel(lo, hi, extent, grain, work, body, name):
            numbers = f"grain {format_operand(grain)}, work {format_operand(work)}"
            yield f"parallel {name} [{lo!r}, {hi!r}) of {format_operand(extent)}, {numbers}:"
            yield from _indented(body)
        case ir.Check(condition, failure, args, order):
            shown = f" ({_list(args)})" if args else ""
            at = "" if order is None else f" in iteration {format_operand(order)}"
            yield f"check {format_operand(condition)} else failure {failure}{shown}{at}"
        case ir.Retain(array):
            yield f"retain {array!r}"
        case ir.Release(array):
            yield f"release {array!r}"
        case ir.Matmul(out, left, right):
            yield f"{out!r} := matmul {left!r}, {right!r}"
        case ir.Routine(failed, name, outs, ins):
            bound = "" if failed is None else f"{failed!r}: {failed.type!r} = "
            yield f"{bound}{_list(outs)} := {name}({_list(ins)})"
        case ir.Grid(blocks, threads, body, name, contract):
            fused = ", products fused with sums" if contract else ""
            yield f"grid {name}, {format_operand(blocks)} blocks of {threads} threads{fused}:"
            yield from _indented(body)
        case ir.Barrier(scope):
            yield f"barrier {scope}"
        case ir.WarpProduct(sums, tile, left, right):
            factors = " times ".join(f"{factor.array!r}[{_list(factor.at)}...]" for factor in (left, right))
            yield f"warp adds {factors}, {tile.depth} deep, to {', '.join(map(repr, sums))}"
        case ir.Launch(kernel, blocks, args):
            yield f"launch kernel {kernel}, {format_operand(blocks)} blocks ({_list(args)})"
        case ir.Opaque(outs, site, args):
            bound = ", ".join(f"{out!r}: {out.type!r}" for out in outs)
            yield (f"{bound} = " if outs else "") + f"opaque {site}({_list(args)})"
        case ir.Call(outs, procedure, args, _, _, failure):
            bound = ", ".join(f"{out!r}: {out.type!r}" for out in outs)
            yield (f"{bound} = " if outs else "") + f"call {procedure}({_list(args)}) else failure {failure}"


def _rhs(rhs: ir.Rhs) -> str:
    match rhs:
        case Cast(arg):
            return f"cast {format_operand(arg)}"
        case ir.Read(cell):
            return repr(cell)
        case ir.NewArray(extents, space):
            return f"new {space} ({_list(extents)})"
        case ir.Lane(name):
            return f"this {name}"
        case ir.Shuffle(mode, value, amount):
            return f"shuffle {mode} {format_operand(value)} by {format_operand(amount)}"
        case ir.Ballot(mode, condition):
            return f"{mode} thread {format_operand(condition)}"
        case ir.Peers(value):
            return f"lanes with {format_operand(value)}"
        case ir.Offered(left, right, out):
            return f"offered {out!r} = {left!r} @ {right!r}"
        case ir.Pack(array, place, end, values, flags, count):
            at, stop, length = format_operand(place), format_operand(end), format_operand(count)
            return f"pack {values!r} where {flags!r}, {length} of them, into {array!r} from {at} to {stop}"
        case ir.Atomic(name, array, indices, value, expected):
            where = "" if expected is None else f" where {format_operand(expected)}"
            return f"atomic {name} {array!r}[{_list(indices)}], {format_operand(value)}{where}"
        case Prim() | Load() | Dim() | Stride() | AnyView():
            return format_op(rhs)
