"""The C source of a library: tables of signatures, failures and targets, around `glue.c`, and a function for each
signature that makes words of its arguments and results of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from parakeet_py.base.types import itemsize
from parakeet_py.export.c_types import prototype, string
from parakeet_py.export.interface import Argument, ExportedSignature, Out, for_other_extents
from parakeet_py.export.objects import Names
from parakeet_py.export.runtime import Threads
from parakeet_py.export.targets import Target
from parakeet_py.signature.results import result_offsets
from parakeet_py.signature.specs import ArraySpec, ScalarSpec, argument_slots

RECURSION_LIMIT = 1000
_HERE = "/* ==== the tables of the library stand here ==== */\n"
_INCLUDES = ("pthread", "stdarg", "stddef", "stdio", "stdlib", "string")
NEEDS_PYTHON = 4
_GENERAL_CODES = (
    (0, "OK", "no error"),
    (1, "NO_MEMORY", "out of memory"),
    (2, "NO_CPU", "the processor lacks instructions of all targets"),
    (3, "BAD_ARGUMENT", "an argument is not as the signature says"),
    (NEEDS_PYTHON, "NEEDS_PYTHON", "the call goes on in Python only"),
)


def source(
    names: Names,
    signatures: Sequence[ExportedSignature],
    targets: Sequence[Target],
    threads: Threads,
    codes: Mapping[str, int],
) -> str:
    """The text of the C file. `codes` are those of exceptions."""
    library = names.library
    types, functions = files("parakeet_py.export").joinpath("glue.c").read_text(encoding="utf-8").split(_HERE)
    lines = [
        f"/* What is behind {library}.h; made by parakeet_py. */",
        "#define _GNU_SOURCE",
        f'#include "{library}.h"',
        *(f"#include <{name}.h>" for name in _INCLUDES),
        *(["#include <sched.h>", "#define PK_THREADS"] if threads != "serial" else []),
        *(["#include <omp.h>", "#define PK_OPENMP"] if threads == "openmp" else []),
        f"#define PK(name) {library}_##name",
        '#define PK_API __attribute__((visibility("default")))',
        '#define PK_HIDDEN __attribute__((visibility("hidden")))',
        f"enum {{ SIGNATURES = {len(signatures)}, TARGETS = {len(targets)}, RECURSION_LIMIT = {RECURSION_LIMIT} }};",
        "",
    ]
    tables = [*_targets(names, targets), *_codes(codes)]
    for one in signatures:
        tables += _signature(names, one, targets, codes)
    rows = ",\n    ".join(_row(one) for one in signatures)
    tables += [f"static const struct signature signatures[SIGNATURES] = {{\n    {rows}}};", ""]
    public = [
        f"PK_API const parakeet_signature {library}_signatures[] = {{",
        *(
            f"    {{{string(f'{library}_{one.number}')}, {string(one.made.text)}, "
            f"{argument_slots(one.made.signature)}, {result_offsets(one.made.result)[-1]}}},"
            for one in signatures
        ),
        "};",
        f"PK_API const int {library}_signature_count = SIGNATURES;",
    ]
    wrappers = [line for one in signatures for line in _wrapper(library, one, for_other_extents(one, signatures))]
    return "\n".join([*lines, types, *tables]) + functions + "\n" + "\n".join([*public, *wrappers]) + "\n"


def _targets(names: Names, targets: Sequence[Target]) -> Iterator[str]:
    rows = []
    for target in targets:
        start, after, floor = (names.start(name, target) for name in ("pk_start", "pk_after_fork", "pk_stack_floor"))
        yield f"PK_HIDDEN void {start}(void), {after}(void), *{floor}(void);"
        rows.append(f"    {{{target.level}, {string(target.name)}, {start}, {after}, {floor}}}")
    yield "static const struct target targets[TARGETS] = {\n" + ",\n".join(rows) + "};\n"


def _codes(codes: Mapping[str, int]) -> Iterator[str]:
    yield "static const struct named_code codes[] = {"
    for code, name, text in _GENERAL_CODES:
        yield f"    {{{code}, {string(name)}, {string(text)}}},"
    for exception, code in codes.items():
        kind = exception.rpartition(":")[2].rpartition(".")[2]
        text = f"the exception {exception.replace(':', '.')}"
        yield f"    {{{code}, {string(kind)}, {string(text)}}},"
    yield "    {0, NULL, NULL}};\n"


def _signature(
    names: Names, one: ExportedSignature, targets: Sequence[Target], codes: Mapping[str, int]
) -> Iterator[str]:
    n = one.number
    for position, argument in enumerate(one.arguments):
        yield from _argument(f"{n}_{position}", argument)
    rows = [_argument_row(f"{n}_{position}", argument) for position, argument in enumerate(one.arguments)]
    yield from _table("struct argument", f"arguments_{n}", rows)
    yield from _table("struct result", f"results_{n}", [f"{{{_rank_of(out)}, {out.slot}}}" for out in one.outs])
    yield from _table("int", f"pairs_{n}", [f"{{{i}, {j}}}" for i, j in one.made.signature.pairs], "[2]")
    yield from _table("struct failure", f"failures_{n}", [*_failures(one, codes)])
    entries = [names.entry(n, target) for target in targets]
    yield f"PK_HIDDEN entry {', '.join(entries)};"
    yield from _table("entry *", f"code_{n}", entries)


def _table(kind: str, name: str, rows: Sequence[str], behind: str = "") -> Iterator[str]:
    """A table that is not there if it is empty, which ISO C does not know."""
    if rows:
        space = "" if kind.endswith("*") else " "
        yield f"static {kind}{space}const {name}[]{behind} = {{\n    " + ",\n    ".join(rows) + "};"


def _row(one: ExportedSignature) -> str:
    n, made = one.number, one.made

    def table(name: str, rows: Sequence[object]) -> str:
        return f"{name}_{n}" if rows else "NULL"

    recursive = any(not procedure.library for procedure in made.function.procedures)
    counts = (one.arguments, one.outs, made.signature.pairs, made.failures)
    numbers = [*map(len, counts), int(recursive), int(made.signature.disjoint)]
    named = [
        table(name, rows) for name, rows in zip(("arguments", "results", "pairs", "failures"), counts, strict=True)
    ]
    return f"{{{', '.join([*map(str, numbers), *named, f'code_{n}'])}}}"


def _failures(one: ExportedSignature, codes: Mapping[str, int]) -> Iterator[str]:
    for failure in one.made.failures:
        code = NEEDS_PYTHON if failure.for_python else codes.get(failure.exception, 0)
        message = failure.message
        if failure.for_python and failure.exception != "OverflowError":
            message = f"such a call goes on in Python only: {message or 'extents that are not usual'}"
        yield f"{{{code}, {string(message)}, {string(failure.formats)}}}"


def _rank_of(out: Out) -> int:
    if out.leaf.kind == "array":
        return out.leaf.rank
    return -2 if out.leaf.dtype == "complex128" else -1


# ---- arguments -------------------------------------------------------------------------------------------------------


def _argument(name: str, argument: Argument) -> Iterator[str]:
    """What an argument's row refers to."""
    spec = argument.spec
    if argument.baked is not None:
        yield from _baked(name, spec, argument.baked)
    if not isinstance(spec, ArraySpec):
        return
    order = spec.order or range(spec.rank)
    if spec.rank:
        yield f"static const int8_t unit_{name}[] = {{{', '.join(map(str, _kinds_of_axes(spec)))}}};"
        yield f"static const int8_t order_{name}[] = {{{', '.join(map(str, order))}}};"
    size, alignment = itemsize(spec.dtype), np.dtype(spec.dtype).alignment
    tables = f"unit_{name}, order_{name}" if spec.rank else "NULL, NULL"
    numbers = f"{size}, {alignment}, '{spec.layout}', {spec.inner}, {int(spec.writeable)}, {int(bool(spec.order))}"
    yield f"static const struct array_kind kind_{name} = {{{numbers}, {tables}}};"


def _kinds_of_axes(spec: ArraySpec) -> list[int]:
    """1: of one element, 2: with a stride of 0."""
    return [int(one) or 2 * (axis in spec.still) for axis, one in enumerate(spec.unit)]


def _argument_row(name: str, argument: Argument) -> str:
    spec = argument.spec
    rank = spec.rank if isinstance(spec, ArraySpec) else -2 if spec.dtype == "complex128" else -1
    kind = f"&kind_{name}" if isinstance(spec, ArraySpec) else "NULL"
    baked = "NULL" if argument.baked is None else f"baked_{name}"
    return f"{{{string(argument.name)}, {rank}, {argument.slot}, {kind}, {baked}}}"


def _baked(name: str, spec: ArraySpec | ScalarSpec, value: object) -> Iterator[str]:
    """The words of a value that the library holds. An array keeps its strides, with the gaps between elements."""
    if isinstance(spec, ScalarSpec):
        data = np.asarray(value, spec.dtype).tobytes()
        words = ", ".join(_words(data))
        yield f"static const int64_t baked_{name}[] = {{{words}}};"
        return
    assert isinstance(value, np.ndarray)
    low, memory = memory_of(value)
    words = ",\n    ".join(", ".join(some) for some in _by_eight([*_words(memory)]))
    yield f"static int64_t data_{name}[] __attribute__((aligned(64))) = {{\n    {words or '0'}}};"
    place = f"(int64_t)(intptr_t)((char *)data_{name} + {low})"
    numbers = ", ".join([place, *map(str, value.shape), *map(str, value.strides)])
    yield f"static const int64_t baked_{name}[] = {{0, {numbers}}};"


def memory_of(array: np.ndarray[Any, Any]) -> tuple[int, bytes]:
    """The bytes that an array's elements span, and where among them the first element is."""
    if array.size == 0:
        return 0, b""
    spans = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)]
    low, high = -sum(one for one in spans if one < 0), sum(one for one in spans if one > 0)
    buffer = np.zeros(low + high + array.itemsize, np.uint8)
    np.ndarray(array.shape, array.dtype, buffer, low, array.strides)[...] = array
    return low, buffer.tobytes()


def _words(data: bytes) -> Iterator[str]:
    for start in range(0, len(data), 8):
        word = int.from_bytes(data[start : start + 8].ljust(8, b"\0"), "little", signed=True)
        yield "INT64_MIN" if word == -(2**63) else str(word)


def _by_eight(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(words), 8):
        yield words[start : start + 8]


# ---- functions -------------------------------------------------------------------------------------------------------


def _wrapper(library: str, one: ExportedSignature, otherwise: ExportedSignature | None) -> Iterator[str]:
    """The function of a signature; `otherwise` is that of calls with other last axes than it is for."""
    yield ""
    yield f"PK_API {prototype(library, one)}"
    yield "{"
    slots, outs = argument_slots(one.made.signature), result_offsets(one.made.result)[-1]
    yield f"    int64_t pk_words[{max(slots, 1)}] = {{0}}, pk_left[{max(outs, 1)}];"
    pointers = [argument.name for argument in one.given if argument.number] + [out.name for out in one.outs]
    if pointers:
        missing = " || ".join(f"!{name}" for name in pointers)
        yield f"    if ({missing})"
        yield f'        return pk_failed({one.number}, PARAKEET_BAD_ARGUMENT, "a pointer is NULL");'
    for argument in one.given:
        name, slot = argument.name, argument.slot
        if not argument.number:
            yield f"    memcpy(pk_words + {slot}, &{name}, sizeof {name});"
            continue
        assert isinstance(argument.spec, ArraySpec)
        yield f"    pk_words[{slot + 1}] = (int64_t)(intptr_t){name}->data;"
        if argument.spec.rank:
            yield f"    memcpy(pk_words + {slot + 2}, {name}->extents, sizeof {name}->extents);"
            yield f"    memcpy(pk_words + {slot + 2 + argument.spec.rank}, {name}->strides, sizeof {name}->strides);"
    yield f"    int pk_code = {library}_call({_chosen(one, otherwise)}, pk_words, pk_left);"
    yield "    if (pk_code) return pk_code;"
    for out in one.outs:
        yield from _taken(out)
    yield "    return PARAKEET_OK;"
    yield "}"


def _chosen(one: ExportedSignature, otherwise: ExportedSignature | None) -> str:
    """The number of the signature whose code is to run."""
    if otherwise is None:
        return str(one.number)
    short = [(argument.name, argument.spec) for argument in one.given if isinstance(argument.spec, ArraySpec)]
    fits = (f"{name}->extents[{spec.rank - 1}] == {spec.inner}" for name, spec in short if spec.inner)
    return f"{' && '.join(fits)} ? {one.number} : {otherwise.number}"


def _taken(out: Out) -> Iterator[str]:
    """A result from its words."""
    leaf, slot = out.leaf, out.slot
    if leaf.kind != "array":
        yield f"    memcpy({out.name}, pk_left + {slot}, sizeof *{out.name});"
        return
    same = f"pk_left[{slot + 1}]" if leaf.view else f"pk_left[{slot}] ? -pk_left[{slot}] : pk_left[{slot + 1}]"
    yield f"    {out.name}->data = (void *)(intptr_t)pk_left[{slot + 3}];"
    if leaf.rank:
        yield f"    memcpy({out.name}->extents, pk_left + {slot + 4}, sizeof {out.name}->extents);"
        yield f"    memcpy({out.name}->strides, pk_left + {slot + 4 + leaf.rank}, sizeof {out.name}->strides);"
    yield f"    {out.name}->owner = (void *)(intptr_t)pk_left[{slot + 2}];"
    yield f"    {out.name}->source = {same};"
