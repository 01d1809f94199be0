"""The functions that pack, in use: compiled for this machine, one object for each size of elements.

    i64 pk_pack_8(ptr to, i64 place, i64 end, ptr values, ptr flags, i64 count)        what Imp's `Pack` says

As in the vector math library, an object is compiled when it is first needed (`codegen/pack` writes it), kept in the
disk cache, and stays loaded; if it is in the cache, LLVM is not needed.
"""

from __future__ import annotations

from functools import lru_cache

from parakeet_py.llvm.engine import compiler, disk_cache
from parakeet_py.llvm.engine.lasting_code import lasting_code


@lru_cache(maxsize=4)
def resolve(name: str) -> int:
    """The address of one of the functions, compiled or loaded on first use."""

    def make() -> tuple[bytes, list[str]]:
        from parakeet_py.llvm.codegen import pack

        text = pack.library_ir(int(name.removeprefix(pack.PREFIX)), compiler.host())
        return compiler.compile_ir(text, level=0, vectorize=False, codegen_level=2), [name]

    key = disk_cache.digest("pack", name)  # the machine and our sources are part of every key
    return lasting_code(key, name, make, [name])[name]
