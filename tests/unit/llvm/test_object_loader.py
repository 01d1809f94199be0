"""The static linker: what LLVM emits runs, what is broken or unknown is refused, nothing is writable and executable."""

from __future__ import annotations

import ctypes
import gc
import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from parakeet_py.llvm.engine import compiler, object_loader
from parakeet_py.llvm.engine.object_loader import LoadedCode, LoadError, UnsupportedObject, load_elf
from parakeet_py.llvm.runtime.symbols import resolve

pytestmark = pytest.mark.skipif(not object_loader.supported(), reason="needs x86-64 Linux")

PROGRAM = """
@counter = internal global i64 40, align 8
@zeroed = internal global [4096 x i64] zeroinitializer, align 64
@table = internal constant [3 x double] [double 1.5, double 2.5, double 3.5]
@visible = global i64 7
@functions = internal constant [2 x ptr] [ptr @twice, ptr @thrice]
@foreign = external global i64
@shared = common global i64 0, align 8
@absent = extern_weak global i64

declare double @exp(double)
declare double @pow(double, double)
declare ptr @memset(ptr, i32, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @twice(i64 %x) noinline { %r = mul i64 %x, 2  ret i64 %r }
define i64 @thrice(i64 %x) noinline { %r = mul i64 %x, 3  ret i64 %r }

define i64 @count() {
  %v = load i64, ptr @counter
  %w = add i64 %v, 1
  store i64 %w, ptr @counter
  %z = load i64, ptr getelementptr ([4096 x i64], ptr @zeroed, i64 0, i64 4095)
  %z1 = add i64 %z, 100
  store i64 %z1, ptr getelementptr ([4096 x i64], ptr @zeroed, i64 0, i64 4095)
  %r = add i64 %w, %z
  ret i64 %r
}
define double @constants(i64 %i, double %x) {
  %p = getelementptr [3 x double], ptr @table, i64 0, i64 %i
  %v = load double, ptr %p
  %y = fmul double %x, 0x400921FB54442D18
  %r = fadd double %v, %y
  ret double %r
}
define double @math(double %x) {
  %e = call double @exp(double %x)
  %p = call double @pow(double %e, double 2.0)
  ret double %p
}
define i64 @pointers(i64 %which, i64 %x) {
  %p = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %which
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
define i64 @outside() {
  %v = load i64, ptr @foreign
  %u = load i64, ptr @visible
  %s = load i64, ptr @shared
  %a = add i64 %v, %u
  %b = add i64 %a, %s
  %none = icmp eq ptr @absent, null
  %c = select i1 %none, i64 %b, i64 -1
  ret i64 %c
}
define void @fill(ptr %to, ptr %from, i64 %n) {
  %r = call ptr @memset(ptr %to, i32 1, i64 %n)
  %half = lshr i64 %n, 1
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %half, i1 false)
  ret void
}
define i64 @choose(i64 %x, i64 %y) {
  switch i64 %x, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c
                                i64 3, label %d  i64 4, label %e  i64 5, label %f ]
a: 
  %ra = call i64 @twice(i64 %y)
  ret i64 %ra
b:
  %rb = udiv i64 %y, 7
  ret i64 %rb
c:
  %rc = call i64 @thrice(i64 %y)
  ret i64 %rc
d:
  %rd = xor i64 %y, 12345
  ret i64 %rd
e:
  %re = call i64 @count()
  ret i64 %re
f:
  %rf = sub i64 0, %y
  ret i64 %rf
other:
  ret i64 -1
}
"""
NAMES = ("count", "constants", "math", "pointers", "outside", "fill", "choose", "visible")


def resolver(foreign: int) -> Callable[[str], int | None]:
    return lambda name: foreign if name == "foreign" else resolve(name)


def exercise(code: LoadedCode) -> None:
    i64, f64, ptr = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
    count = ctypes.CFUNCTYPE(i64)(code["count"])
    assert [count(), count(), count()] == [41, 142, 243]
    constants = ctypes.CFUNCTYPE(f64, i64, f64)(code["constants"])
    assert [constants(i, 1.0) for i in range(3)] == [v + 3.141592653589793 for v in (1.5, 2.5, 3.5)]
    assert abs(ctypes.CFUNCTYPE(f64, f64)(code["math"])(1.0) - 7.38905609893065) < 1e-12
    pointers = ctypes.CFUNCTYPE(i64, i64, i64)(code["pointers"])
    assert [pointers(0, 5), pointers(1, 5)] == [10, 15]
    assert ctypes.CFUNCTYPE(i64)(code["outside"])() == 1234 + 7
    assert i64.from_address(code["visible"]).value == 7
    to, origin = (ctypes.c_char * 1000)(), (ctypes.c_char * 1000)(*([b"x"] * 1000))
    ctypes.CFUNCTYPE(None, ptr, ptr, i64)(code["fill"])(to, origin, 1000)
    assert bytes(to) == b"x" * 500 + b"\1" * 500
    choose = ctypes.CFUNCTYPE(i64, i64, i64)(code["choose"])
    assert [choose(k, 70) for k in (0, 1, 2, 3, 5, 6, -1)] == [140, 10, 210, 70 ^ 12345, -70, -1, -1]


def compile_for(reloc: str, codemodel: str, level: int) -> bytes:
    llvm = compiler.binding()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=level, reloc=reloc, codemodel=codemodel)
    module = llvm.parse_assembly(PROGRAM)
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    module.verify()
    return bytes(machine.emit_object(module))


FOREIGN = ctypes.c_int64(1234)


@pytest.mark.parametrize("level", [0, 2, 3])
def test_a_whole_object(level: int) -> None:
    data = compiler.compile_ir(PROGRAM, level=level)
    exercise(load_elf(data, resolver(ctypes.addressof(FOREIGN)), NAMES))


@pytest.mark.parametrize(
    ("reloc", "codemodel"), [("pic", "small"), ("pic", "medium"), ("pic", "large"), ("static", "large")]
)
@pytest.mark.parametrize("level", [0, 2])
def test_every_code_model_that_reaches(reloc: str, codemodel: str, level: int) -> None:
    exercise(load_elf(compile_for(reloc, codemodel, level), resolver(ctypes.addressof(FOREIGN)), NAMES))


def test_the_code_model_that_does_not_reach_is_refused() -> None:
    with pytest.raises(UnsupportedObject, match="does not reach"):
        load_elf(compile_for("static", "small", 2), resolver(ctypes.addressof(FOREIGN)), NAMES)


def test_llvm_s_own_linker_agrees() -> None:
    data = compiler.compile_ir(
        PROGRAM.replace("@absent = extern_weak global i64", "@absent = internal global i64 0").replace(
            "icmp eq ptr @absent, null", "icmp ne ptr @absent, null"
        )
    )
    code = compiler._load_with_llvm(data, {}, resolver(ctypes.addressof(FOREIGN)), NAMES)
    exercise(code)
    code.close()


def test_vector_constants_and_vector_math() -> None:
    if resolve("_ZGVdN4v_exp") is None:
        pytest.skip("no libmvec")
    text = """
    declare <4 x double> @_ZGVdN4v_exp(<4 x double>)
    define void @f(ptr %p) "target-features"="+avx2" {
      %v = load <4 x double>, ptr %p, align 8
      %w = fmul <4 x double> %v, <double 1.0, double 2.0, double 3.0, double 4.0>
      %e = call <4 x double> @_ZGVdN4v_exp(<4 x double> %w)
      store <4 x double> %e, ptr %p, align 8
      ret void
    }
    """
    code = compiler.load(compiler.compile_ir(text), {}, ["f"])
    data = (ctypes.c_double * 4)(0.0, 0.5, 1.0, 0.25)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code["f"])(data)
    assert list(data) == pytest.approx([1.0, 2.718281828459045, 20.085536923187668, 2.718281828459045])


def test_two_copies_have_their_own_data() -> None:
    data = compiler.compile_ir(PROGRAM)
    first, second = (load_elf(data, resolver(ctypes.addressof(FOREIGN)), NAMES) for _ in range(2))
    exercise(first)
    exercise(second)


def test_a_missing_symbol_is_named() -> None:
    data = compiler.compile_ir(
        "declare void @nowhere_at_all()\ndefine void @f() { call void @nowhere_at_all() ret void }"
    )
    with pytest.raises(LoadError, match="undefined symbol 'nowhere_at_all'"):
        compiler.load(data, {}, ["f"])
    with pytest.raises(LoadError, match="does not define 'g'"):
        compiler.load(compiler.compile_ir("define void @f() { ret void }"), {}, ["g"])


@pytest.mark.parametrize(
    "text",
    ["@t = thread_local global i64 0\ndefine ptr @f() { ret ptr @t }",
     "@llvm.global_ctors = appending global [1 x {i32, ptr, ptr}] [{i32, ptr, ptr} {i32 1, ptr @f, ptr null}]\n"
     "declare void @abort()\ndefine void @f() { call void @abort() ret void }"],
)  # fmt: skip
def test_what_is_not_taken_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedObject):
        load_elf(compiler.compile_ir(text), resolve, ["f"])


def mapping_of(address: int) -> str | None:
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, protection, *_ = line.split()
            low, high = (int(part, 16) for part in span.split("-"))
            if low <= address < high:
                return protection
    return None


def test_no_page_is_writable_and_executable() -> None:
    code = load_elf(compiler.compile_ir(PROGRAM), resolver(ctypes.addressof(FOREIGN)), NAMES)
    assert mapping_of(code["count"]) == "r-xp"
    assert mapping_of(code["visible"]) == "rw-p"


def test_code_is_unmapped_with_its_last_reference() -> None:
    code = load_elf(compiler.compile_ir("define i64 @f() { ret i64 3 }"), resolve, ["f"])
    address = code["f"]
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == 3
    before = mapping_of(address)
    code.close()
    code.close()
    del code
    gc.collect()
    assert before == "r-xp"
    assert mapping_of(address) != "r-xp"


def test_truncated_objects_are_refused() -> None:
    data = compiler.compile_ir(PROGRAM)
    for length in range(0, len(data), 61):
        with pytest.raises(LoadError):
            load_elf(data[:length], resolve, ["count"])


def test_damaged_objects_never_crash_the_linker() -> None:
    data = compiler.compile_ir(PROGRAM)
    chance = random.Random(1)
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        with suppress(LoadError):
            load_elf(bytes(damaged), resolver(ctypes.addressof(FOREIGN)), NAMES).close()
