"""The kernels of a function as one module, which assemblers and the emulator take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.ptx import emulator
from parakeet_py.ptx.join_modules import join
from tests.ptxas import PTXAS, assemble

MODULE = """
.version 7.0
.target sm_80
.address_size 64

.global .align 4 .b8 table[4] = {{{value}, 0, 0, 0}};
.func  (.param .b32 func_retval0) more(
	.param .b32 more_param_0
)
;
.func  (.param .b32 func_retval0) more(
	.param .b32 more_param_0
)
{{
	.reg .b32 	%r<4>;
	ld.param.b32 	%r1, [more_param_0];
	ld.global.b32 	%r2, [table];
	add.s32 	%r3, %r1, %r2;
	st.param.b32 	[func_retval0], %r3;
	ret;
}}
.visible .entry {name}(
	.param .u64 {name}_param_0
)
{{
	.reg .b32 	%r<3>;
	.reg .b64 	%rd<3>;
	ld.param.u64 	%rd1, [{name}_param_0];
	cvta.to.global.u64 	%rd2, %rd1;
	{{
	.param .b32 param0;
	.param .b32 retval0;
	st.param.b32 	[param0], 40;
	call.uni (retval0), more, (param0);
	ld.param.b32 	%r1, [retval0];
	}}
	st.global.b32 	[%rd2], %r1;
	ret;
}}
"""


def test_functions_and_variables(tmp_path: Path) -> None:
    """Those that are the same are there once; others of the same name get another one, and so does what calls them."""
    text = join([MODULE.format(name=name, value=value) for name, value in (("one", 1), ("two", 1), ("three", 2))])
    assert text.count(".version") == 1 and text.count(" table[4]") == 1 and text.count(" table_2[4]") == 1
    for name, value in (("one", 41), ("two", 41), ("three", 42)):
        out = np.zeros(1, np.int32)
        emulator.run(text, name, 1, 1, [out])
        assert out[0] == value
    if PTXAS:
        assemble([text], "sm_80", tmp_path)


@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_120"])
def test_functions_of_several_kernels(target: str, tmp_path: Path) -> None:
    text = accelerate(lambda x: (np.sin(x), np.tan(x).sum(), np.cumsum(x))).ptx(np.ones(5), target=target)
    assert text.count(".entry") > 3 and text.count(".version") == text.count(" pk_math_two_over_pi_64[") == 1
    assert len(emulator.Device().load(text).kernels) == text.count(".entry")
    if PTXAS:
        assemble([text], target, tmp_path)
