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

from parakeet_py.base import grammar
from parakeet_py.base.positions import Line
from parakeet_py.imp import ir
from parakeet_py.imp.ir import Block, Function, Let
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.ir import Operand
from parakeet_py.typed_ir.print import format_operand, format_view


def format_function(function: Function) -> str:
    return "".join([f"{line.text}\n" for line in lines_of(function)])


def lines_of(function: Function) -> Iterator[Line]:
    """The text of a function, line by line."""
    for one in (function, *function.procedures):
        params = ", ".join(f"{param!r}: {param.type!r}" for param in one.params)
        yield Line(f"def {one.name}({params}):")
        for line in _block(one.body):
            yield line.indented()
        if one.results:
            yield Line(f"    return {_list(one.results)}")
    for code, site in enumerate(function.failures):
        if code:
            failure = f"{site.failure.exception}({site.failure.message!r}) at line {site.pos.line}"
            yield Line(f"failure {code}: {failure}", site.pos)


def format_statement(statement: ir.Statement) -> str:
    return "\n".join([line.text for line in _lines(statement)])


def _list(operands: Iterable[Operand]) -> str:
    return ", ".join([format_operand(operand) for operand in operands])


def _block(block: Block) -> Iterator[Line]:
    if not block.statements:
        yield Line("pass")
    for statement in block.statements:
        yield from _lines(statement)


def _lines(statement: ir.Statement) -> Iterator[Line]:
    for part in _statement(statement):
        if isinstance(part, Block):
            for line in _block(part):
                yield line.indented()
        else:
            yield Line(part, getattr(statement, "pos", None))


def _statement(statement: ir.Statement) -> Iterator[str | Block]:
    """The lines of a statement, and its blocks, which are indented."""
    match statement:
        case Let(out, rhs, _, reassoc):
            yield f"{out!r}: {out.type!r} = {'~' if reassoc else ''}{_rhs(rhs)}"
        case ir.Declare(cell, init):
            yield f"cell {cell!r}: {cell.type!r}" + ("" if init is None else f" := {format_operand(init)}")
        case ir.If(condition, then, orelse, rare):
            yield f"if {'rarely ' * rare}{format_operand(condition)}:"
            yield then
            if orelse.statements:
                yield "else:"
                yield orelse
        case ir.For(index, start, stop, step, body, kind):
            by = "" if getattr(step, "value", None) == 1 else f" by {format_operand(step)}"
            name = "for" if kind == "serial" else kind
            yield f"{name} {index!r} in {format_operand(start)} .. {format_operand(stop)}{by}:"
            yield body
        case ir.While(head, condition, body):
            yield "while:"
            yield head
            yield f"    leave unless {format_operand(condition)}"
            yield body
        case ir.Parallel(lo, hi, extent, grain, work, body, name):
            numbers = f"grain {format_operand(grain)}, work {format_operand(work)}"
            yield f"parallel {name} [{lo!r}, {hi!r}) of {format_operand(extent)}, {numbers}:"
            yield body
        case ir.Routine(failed, name, outs, ins):
            bound = "" if failed is None else f"{failed!r}: {failed.type!r} = "
            yield f"{bound}{_list(outs)} := {name}({_list(ins)})"
        case ir.Grid(blocks, threads, body, name, contract):
            fused = ", products fused with sums" if contract else ""
            yield f"grid {name}, {format_operand(blocks)} blocks of {threads} threads{fused}:"
            yield body
        case ir.WarpProduct(sums, tile, left, right):
            factors = " times ".join(f"{factor.array!r}[{_list(factor.at)}...]" for factor in (left, right))
            yield f"warp adds {factors}, {tile.depth} deep, to {', '.join(map(repr, sums))}"
        case ir.BulkProduct(sums, left, right, slices):
            factors = " times ".join(f"{factor.array!r}[{_list(factor.at)}...]" for factor in (left, right))
            yield f"block adds {factors}, {format_operand(slices)} slices deep, to {', '.join(map(repr, sums))}"
        case ir.Opaque(outs, site, args):
            bound = ", ".join(f"{out!r}: {out.type!r}" for out in outs)
            yield (f"{bound} = " if outs else "") + f"opaque {site}({_list(args)})"
        case ir.Call(outs, procedure, args, _, _, failure):
            bound = ", ".join(f"{out!r}: {out.type!r}" for out in outs)
            yield (f"{bound} = " if outs else "") + f"call {procedure}({_list(args)}) else failure {failure}"
        case _:
            yield grammar.text(statement, _shown)


def _shown(part: Operand | ir.Cell) -> str:
    return repr(part) if isinstance(part, ir.Cell) else format_operand(part)


def _rhs(rhs: ir.Rhs) -> str:
    match rhs:
        case typed.Cast(arg):
            return f"cast {format_operand(arg)}"
        case typed.View():
            return format_view(rhs)
    return grammar.text(rhs, _shown)
