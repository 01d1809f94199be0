"""Elementary functions without a C library, as GPUs have them: accuracy and special values on the CPU, and that every
primitive and every conversion becomes PTX that ptxas accepts."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from parakeet_py.base import types
from parakeet_py.base.types import COMPLEX, DTYPES, FLOATS, is_complex, is_float, itemsize, real_dtype
from parakeet_py.llvm.codegen import cast, scalar
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, MEMORY_TYPE, FunctionText, ModuleText, Value
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.math import inline
from parakeet_py.ptx import emulator, target
from parakeet_py.typed_ir import ir
from tests.helpers.native_functions import Native, elementwise
from tests.ptxas import PTXAS
from tests.unit.llvm.test_codegen_scalars import pairs, values
from tests.unit.llvm.test_vector_math import EXACT, error, specials

PARTS = ("float64", "float32")
BINARY = ("pow", "atan2", "hypot", "fmod")
LIMIT = 2.0  # units in the last place

# ranges where results are ordinary numbers, of float64 and float32
RANGES: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "exp": ((-745, 709), (-103, 88)),
    "exp2": ((-1074, 1023), (-149, 127)),
    "expm1": ((-40, 709), (-20, 88)),
    "sinh": ((-710, 710), (-89, 89)),
    "cosh": ((-710, 710), (-89, 89)),
    "erfc": ((-7, 27), (-5, 10)),
    "gamma": ((-175, 171), (-38, 35)),
    "lgamma": ((-170, 200), (-40, 40)),
}


@cache
def compiled(name: str, dtype: str) -> Callable[..., Any]:
    """The function over arrays, compiled for this machine."""
    module = ModuleText(compiler.host()._replace(features=""))  # no instruction that a GPU has not
    f, kind = FunctionText(module), LLVM_TYPE[dtype]
    f.branch("head")
    f.begin("head")
    f.effect("%i = phi i64 [ 0, %entry ], [ %next, %head ]")

    def place(array: str) -> str:
        return f.value(f"getelementptr {kind}, ptr %{array}, i64 %i")

    arguments = [f.value(f"load {kind}, ptr {place(array)}") for array in "xy"[: inline.FUNCTIONS[name][1]]]
    f.effect(f"store {kind} {inline.call(f, name, dtype, arguments)}, ptr {place('out')}")
    f.effect("%next = add i64 %i, 1")
    f.branch_if(f.value("icmp ult i64 %next, %n"), "head", "end")
    f.begin("end")
    f.effect("ret void")
    module.functions.append(f.text("define void @run(ptr %x, ptr %y, ptr %out, i64 %n)"))
    assert not module.symbols, "nothing may be left to a library"
    code = compiler.load(compiler.compile_ir(module.text(), vectorize=False), {}, ["run"])
    code.keep_for_ever()
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(code.addresses["run"])

    def run(*args: Any) -> Any:
        given = [np.ascontiguousarray(arg, dtype) for arg in args]
        out = np.empty_like(given[0])
        native(given[0].ctypes.data, given[-1].ctypes.data, out.ctypes.data, out.size)
        return out

    return run


def reference(name: str) -> Callable[..., Any]:
    if name in EXACT:
        return EXACT[name][0]
    return {
        "gamma": mp.gamma,
        "lgamma": lambda x: mp.re(mp.loggamma(x)),
        "pow": mp.power,
        "atan2": mp.atan2,
        "hypot": mp.hypot,
    }[name]


def worst(name: str, dtype: str, *args: Any) -> float:
    """The largest error, in units in the last place."""
    found = compiled(name, dtype)(*args)
    exact = reference(name)
    with mp.workprec(200):
        errors = []
        for values in zip(found, *args, strict=True):
            result, *given = (mp.mpf(float(value)) for value in values)
            errors.append((error(result, exact(*given), dtype), given))
        return max(errors)[0]


def points(name: str, dtype: str, count: int) -> Any:
    rng = np.random.default_rng(len(name))
    if name in RANGES:
        low, high = RANGES[name][PARTS.index(dtype)]
    else:
        _, low, high = EXACT[name]
    if dtype == "float32":
        low, high = max(low, 1e-37 if low > 0 else -1e37), min(high, 1e37)
    small = max(low, -3.0), min(high, 3.0)
    tiny = 10.0 ** rng.uniform(-9, 0, count) * (rng.choice([-1, 1], count) if low < 0 else 1)
    some = [rng.uniform(low, high, count), rng.uniform(*small, count) if small[0] < small[1] else tiny, tiny, 1 + tiny]
    if low > 0 or high > 1e6:
        some.append(10.0 ** rng.uniform(math.log10(max(low, 1e-36)), math.log10(high), count))
    values = np.concatenate(some).astype(dtype)
    return values[(values >= low) & (values <= high)]


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", sorted(set(inline.FUNCTIONS) - set(BINARY) - {"lgamma"}))
def test_accuracy(name: str, dtype: str) -> None:
    x = points(name, dtype, 100)
    if name == "gamma":
        x = x[x != np.floor(x)]
    assert worst(name, dtype, x) < LIMIT


@pytest.mark.parametrize("dtype", PARTS)
def test_accuracy_of_lgamma(dtype: str) -> None:
    """2 units for positive numbers; for negative ones, among which zeros are, of at least 1/4."""
    x = points("lgamma", dtype, 200)
    assert worst("lgamma", dtype, x[x > 0]) < LIMIT
    below = x[(x < 0) & (x != np.floor(x))]
    found = compiled("lgamma", dtype)(below)
    with mp.workprec(200):
        for argument, result in zip(below, found, strict=True):
            exact = mp.re(mp.loggamma(mp.mpf(float(argument))))
            unit = np.spacing(max(abs(result), np.dtype(dtype).type(0.25)))
            assert abs(mp.mpf(float(result)) - exact) < LIMIT * unit, argument


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles(name: str, dtype: str) -> None:
    """Of every size, and as close to a multiple of a quarter turn as numbers get."""
    rng = np.random.default_rng(1)
    largest = 308 if dtype == "float64" else 38
    x = 10.0 ** rng.uniform(3, largest, 300) * rng.choice([-1, 1], 300)
    with mp.workprec(1200):
        near = [float(n * mp.pi / 2) for n in (1, 2, 29, 12345, 10**6, 10**9, 10**15, 10**22)]
    hard = [6381956970095103 * 2.0**797, 5.319372648326541e255, 1.6367e12, 16367173 * 2.0**72]
    x = np.concatenate([x, near, [h for h in hard if h < 10.0**largest], [np.finfo(dtype).max]]).astype(dtype)
    found, exact = compiled(name, dtype)(x), reference(name)
    with mp.workprec(1400):
        assert max(error(r, exact(mp.mpf(float(v))), dtype) for r, v in zip(found, x, strict=True)) < LIMIT


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
def test_accuracy_of_two(name: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = 10.0 ** rng.uniform(-4, 4, 400) * (1 if name == "pow" else rng.choice([-1, 1], 400))
    y = rng.uniform(-60, 60, 400)
    log = math.log(np.finfo(dtype).max)
    base = np.exp(10.0 ** rng.uniform(-5, 1, 400)).astype(dtype).astype("float64")
    full = rng.uniform(-1, 1, 400) * log / np.log(base)
    x, y = np.concatenate([x, base]).astype(dtype), np.concatenate([y, full]).astype(dtype)
    with np.errstate(all="ignore"):
        usual = np.isfinite(np.power(np.abs(x), y))
    assert worst(name, dtype, x[usual], y[usual]) < LIMIT


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "fmod"])
def test_special_values_of_two(name: str, dtype: str) -> None:
    """All pairs of special values, against NumPy: NaN, infinity and signed zero agree, and the rest nearly."""
    some = np.concatenate([specials(dtype), np.array([3, -3, 0.25, 7, -7, 1e-3], dtype)])
    x, y = (a.ravel() for a in np.meshgrid(some, some))
    with np.errstate(all="ignore"):
        wanted = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod}[name](x, y)
        found = compiled(name, dtype)(x, y)
    check(found, wanted)


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", sorted(set(inline.FUNCTIONS) - set(BINARY)))
def test_special_values(name: str, dtype: str) -> None:
    kind = ctypes.c_double if dtype == "float64" else ctypes.c_float
    library = ctypes.CDLL("libm.so.6")[{"gamma": "tgamma"}.get(name, name) + ("f" if dtype == "float32" else "")]
    library.restype, library.argtypes = kind, [kind]
    x = specials(dtype)
    with np.errstate(all="ignore"):
        wanted = np.array([library(float(value)) for value in x], dtype)
        # its errors are larger than ours, as far as the last exponent
        check(compiled(name, dtype)(x), wanted, ulps=12)


def check(found: Any, wanted: Any, ulps: int = 4) -> None:
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    real = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(wanted[real]))
    finite = np.isfinite(wanted)
    left, right = found[finite], wanted[finite]
    assert np.all(np.abs(left - right) <= ulps * np.abs(np.spacing(right / 2)) * 2)


@pytest.mark.parametrize("dtype", PARTS)
def test_whole_results_are_exact(dtype: str) -> None:
    n = np.arange(-30, 31).astype(dtype)
    x, y = (a.ravel() for a in np.meshgrid(n, np.arange(0, 5).astype(dtype)))
    np.testing.assert_array_equal(compiled("pow", dtype)(x, y), x**y)
    np.testing.assert_array_equal(compiled("cbrt", dtype)(n * n * n), n)
    np.testing.assert_array_equal(compiled("hypot", dtype)(3 * n, 4 * n), np.abs(5 * n))
    np.testing.assert_array_equal(compiled("exp2", dtype)(n), 2.0**n)
    np.testing.assert_array_equal(compiled("log2", dtype)((2.0**n).astype(dtype)), n)
    some = np.arange(1, 12)
    np.testing.assert_array_equal(compiled("gamma", dtype)(some), [math.factorial(m - 1) for m in some])


@pytest.mark.parametrize("dtype", PARTS)
def test_remainders_of_any_size(dtype: str) -> None:
    rng = np.random.default_rng(3)
    word = {"float64": np.uint64, "float32": np.uint32}[dtype]
    bits = rng.integers(0, np.iinfo(word).max, (2, 20_000), word)
    x, y = bits.view(dtype)
    with np.errstate(all="ignore"):
        found, wanted = compiled("fmod", dtype)(x, y), np.fmod(x, y)
    np.testing.assert_array_equal(found, wanted)
    real = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


@pytest.mark.parametrize("dtype", PARTS)
def test_any_bits(dtype: str) -> None:
    """Numbers of every size: overflow, underflow and no result where NumPy has them."""
    rng = np.random.default_rng(4)
    word = {"float64": np.uint64, "float32": np.uint32}[dtype]
    x, y = rng.integers(0, np.iinfo(word).max, (2, 20_000), word).view(dtype)
    unary = ("exp", "exp2", "expm1", "log", "sinh", "tanh", "arccosh", "arcsinh", "arctanh", "cbrt")
    with np.errstate(all="ignore"):
        for name in unary:
            check(compiled(name.replace("arc", "a"), dtype)(x), getattr(np, name)(x), ulps=5)
        for left, right in ((x, y), (np.abs(x), y), (x, np.trunc(y % 100))):
            check(compiled("pow", dtype)(left, right), np.power(left, right))
            check(compiled("hypot", dtype)(left, right), np.hypot(left, right))
            check(compiled("atan2", dtype)(left, right), np.arctan2(left, right), ulps=5)


# ---- PTX -------------------------------------------------------------------------------------------------------------

TWO = ir.FLOAT_BINARY | ir.COMPARE | ir.EXTREMA | ir.BOUNDED | ir.DIVISION
TWO |= {"add", "sub", "mul", "and", "or", "xor", "shl", "shr"}
TWO |= {ir.MUL_HIGH, "complex", "add_checked", "sub_checked", "mul_checked"}
OF_COMPLEX = ir.ARITHMETIC | ir.COMPLEX_PARTS | {"div", "eq", "ne", "isnan", "isinf", "isfinite", "select"}
OF_COMPLEX -= {"complex"}


def applies(name: str, dtype: str) -> bool:
    """Whether a primitive is defined for a dtype, and for GPUs (`on_device` is answered before there is code)."""
    if name == "on_device":
        return False
    if name == ir.MUL_HIGH:
        return dtype == "uint64"
    if is_complex(dtype):
        return name in OF_COMPLEX
    if name == "complex" or name in ir.BOUNDED:
        return dtype in PARTS
    if name in ir.CHECKED:
        return dtype == "int64"
    if name in ir.REINTERPRET:
        return dtype in (FLOATS if name == "bits" else map(types.same_bits, FLOATS))
    if name in ir.FLOAT_UNARY | ir.FLOAT_BINARY | {"div"}:
        return is_float(dtype)
    if name in ir.BITS:
        return not is_float(dtype) and (dtype != "bool" or name not in ("shl", "shr"))
    return dtype != "bool" or name not in ir.DIVISION


def load(f: FunctionText, dtype: str, array: str) -> Value:
    if is_complex(dtype):
        part = real_dtype(dtype)
        second = f.value(f"getelementptr i8, ptr %{array}, i64 {itemsize(part)}")
        return tuple(f.value(f"load {LLVM_TYPE[part]}, ptr {place}") for place in (f"%{array}", second))  # type: ignore[return-value]
    value = f.value(f"load {MEMORY_TYPE[dtype]}, ptr %{array}")
    return f.value(f"icmp ne i8 {value}, 0") if dtype == "bool" else value


def store(f: FunctionText, value: Value, dtype: str) -> None:
    if isinstance(value, tuple):
        part = real_dtype(dtype)
        second = f.value(f"getelementptr i8, ptr %out, i64 {itemsize(part)}")
        for item, place in zip(value, ("%out", second), strict=True):
            f.effect(f"store {LLVM_TYPE[part]} {item}, ptr {place}")
        return
    if dtype == "bool":
        value = f.value(f"zext i1 {value} to i8")
    f.effect(f"store {MEMORY_TYPE[dtype]} {value}, ptr %out")


def result_dtype(name: str, dtype: str) -> str:
    if name in ir.COMPARE | ir.FLOAT_TESTS:
        return "bool"
    if name in ir.REINTERPRET:
        return types.same_bits(dtype)
    if name == "complex":
        return "complex64" if dtype == "float32" else "complex128"
    return real_dtype(dtype) if is_complex(dtype) and name in ("real", "imag", "abs") else dtype


def write_primitive(f: FunctionText, name: str, dtype: str, reassoc: bool) -> None:
    def overflow(condition: str) -> None:
        fits, fails = f.label("fits"), f.label("fails")
        f.branch_if(condition, fails, fits)
        f.cold(fails, ["ret void"])
        f.begin(fits)

    given = ["bool", dtype, dtype] if name == "select" else [dtype] * (2 if name in TWO else 1)
    arguments = tuple(load(f, kind, array) for kind, array in zip(given, "xyz", strict=False))
    value = scalar.primitive(f, name, dtype, arguments, reassoc=reassoc, overflow=overflow)
    store(f, value, result_dtype(name, dtype))


def kernels() -> Iterator[Callable[[FunctionText], None]]:
    """Writers of a kernel for every primitive of every dtype, and every conversion."""
    for dtype in DTYPES:
        for name in sorted(ir.PRIMS):
            if applies(name, dtype):
                yield lambda f, n=name, d=dtype: write_primitive(f, n, d, False)
                if dtype in FLOATS + COMPLEX and name in ir.EXTREMA | {"add", "mul"} and applies(name, dtype):
                    yield lambda f, n=name, d=dtype: write_primitive(f, n, d, True)
        for wanted in DTYPES:
            yield lambda f, d=dtype, w=wanted: store(f, cast.cast(f, load(f, d, "x"), d, w), w)


@pytest.mark.parametrize(
    ("architecture", "flags"),
    [
        *((name, "") for name in ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")),
        ("sm_80", "contract "),
        ("sm_80", "fast "),
    ],
)
def test_everything_becomes_ptx(architecture: str, flags: str, tmp_path: Path) -> None:
    module = ModuleText(target.gpu(architecture), flags)
    for number, write in enumerate(kernels()):
        f = FunctionText(module)
        write(f)
        f.effect("ret void")
        module.functions.append(f.text(f"define ptx_kernel void @k{number}(ptr %x, ptr %y, ptr %z, ptr %out)"))
    assert not module.symbols
    text = target.compile_ptx(module.text(), architecture)
    assert text.count(".entry") > 600
    assert flags == "fast " or ".approx" not in text
    assert ".extern .func" not in text and ".ftz" not in text
    if PTXAS is None:
        pytest.skip("no ptxas here")
    source = tmp_path / "all.ptx"
    source.write_text(text)
    made = subprocess.run(
        [PTXAS, f"-arch={architecture}", source, "-o", tmp_path / "out"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr[:2000]


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", sorted(inline.FUNCTIONS))
def test_a_gpu_computes_the_same_bits(name: str, dtype: str) -> None:
    """The PTX, emulated, on special values and on any bits."""
    rng = np.random.default_rng(5)
    word = {"float64": np.uint64, "float32": np.uint32}[dtype]
    some = rng.integers(0, np.iinfo(word).max, 2000, word).view(dtype)
    x = np.concatenate([some, specials(dtype), rng.uniform(-20, 20, 2000).astype(dtype)])
    y = rng.permutation(x)
    kind = LLVM_TYPE[dtype]

    def write(f: FunctionText) -> None:
        arity = inline.FUNCTIONS[name][1]
        arguments = [f.value(f"load {kind}, ptr %{array}") for array in "xy"[:arity]]
        f.effect(f"store {kind} {inline.call(f, name, dtype, arguments)}, ptr %out")

    found = np.zeros_like(x)
    emulator.run(
        emulated([write], [dtype, dtype, dtype, dtype]), "k0", -(-x.size // 256), 256, [x, y, x, found, x.size]
    )
    same_bits(found, compiled(name, dtype)(x, y))


def emulated(writers: list[Callable[[FunctionText], None]], dtypes: list[str]) -> str:
    """The PTX of kernels k0, k1... in which each thread runs a writer on its elements of the arrays x, y, z and out."""
    module = ModuleText(target.gpu())
    for number, write in enumerate(writers):
        f = FunctionText(module)
        block, thread = (
            f.value(f"call i32 {module.declare('i32', f'llvm.nvvm.read.ptx.sreg.{name}', '', '')}()")
            for name in ("ctaid.x", "tid.x")
        )
        place = f.value(f"add i32 {f.value(f'mul i32 {block}, 256')}, {thread}")
        place = f.value(f"zext i32 {place} to i64")
        f.branch_if(f.value(f"icmp ult i64 {place}, %n"), "inside", "outside")
        f.begin("outside")
        f.effect("ret void")
        f.begin("inside")
        for array, dtype in zip(("x", "y", "z", "out"), dtypes, strict=True):
            offset = f.value(f"mul i64 {place}, {itemsize(dtype)}")
            f.effect(f"%{array} = getelementptr i8, ptr %{array}.base, i64 {offset}")
        write(f)
        f.effect("ret void")
        parameters = "ptr %x.base, ptr %y.base, ptr %z.base, ptr %out.base, i64 %n"
        module.functions.append(f.text(f"define ptx_kernel void @k{number}({parameters})"))
    return target.compile_ptx(module.text())


def same_bits(found: Any, wanted: Any) -> None:
    """Equal but for the bits of NaN."""
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


EXACTLY = ir.ARITHMETIC | ir.DIVISION | ir.BITS | ir.COMPARE | ir.EXTREMA | ir.FLOAT_TESTS | ir.COMPLEX_PARTS
EXACTLY |= ir.BOUNDED
EXACTLY |= {"sqrt", "floor", "ceil", "trunc", "rint", "copysign", "nextafter"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_primitives_and_casts_on_a_gpu(dtype: str) -> None:
    """The PTX, emulated, and the CPU's code give the same bits."""
    names = [
        name for name in sorted(EXACTLY) if applies(name, dtype) and not (is_complex(dtype) and name in ("abs", "div"))
    ]
    x, y = pairs(dtype)
    for name in names:
        given = [dtype] * (2 if name in TWO else 1)
        out = result_dtype(name, dtype)
        expected, found = np.zeros(x.size, out), np.zeros(x.size, out)
        Native(elementwise(name, given, out))(*(x, y)[: len(given)], expected)
        text = emulated([lambda f, n=name: write_primitive(f, n, dtype, False)], [dtype, dtype, dtype, out])  # type: ignore[misc]
        emulator.run(text, "k0", -(-x.size // 256), 256, [x, y, y, found, x.size])
        same_bits(found, expected)
    some = values(dtype)
    for wanted in DTYPES:
        found = np.zeros(some.size, wanted)

        def write(f: FunctionText, wanted: str = wanted) -> None:
            store(f, cast.cast(f, load(f, dtype, "x"), dtype, wanted), wanted)

        expected = np.zeros(some.size, wanted)
        Native(elementwise("cast", [dtype], wanted))(some, expected)
        text = emulated([write], [dtype, dtype, dtype, wanted])
        emulator.run(text, "k0", -(-some.size // 256), 256, [some, some, some, found, some.size])
        same_bits(found, expected)


def test_text_is_the_same_every_time() -> None:
    texts = []
    for _ in range(2):
        module = ModuleText(target.gpu())
        f = FunctionText(module)
        x = inline.call(f, "pow", "float32", ["%x", "%y"])
        f.effect(f"ret float {inline.call(f, 'sin', 'float32', [x])}")
        module.functions.append(f.text("define float @f(float %x, float %y)"))
        texts.append(module.text())
    assert texts[0] == texts[1]
    assert texts[0].count("define internal") == 2
