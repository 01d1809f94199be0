"""The C header of a library."""

from __future__ import annotations

from collections.abc import Mapping

from parakeet_py.export.c_types import COMPLEX, array_types, comment, declaration, fill, prototype
from parakeet_py.export.interface import EXCEPTIONS, ExportedSignature, identifier

_CODES = """\
#ifndef PARAKEET_CODES
#define PARAKEET_CODES
/* What calls give: 0, or the code of what went wrong. From 16 on it is the Python exception of that name. */
enum {
    PARAKEET_OK = 0,
    PARAKEET_NO_MEMORY = 1,
    PARAKEET_NO_CPU = 2,       /* the processor lacks instructions of all targets */
    PARAKEET_BAD_ARGUMENT = 3, /* an array is not as the signature says; nothing has been done */
    PARAKEET_NEEDS_PYTHON = 4, /* the call goes on in Python only, as where an integer leaves 64 bits; arrays that are
                                  stored to may have been changed */
@codes@
};

typedef struct {
    const char *function; /* the name of the C function */
    const char *arguments; /* the types of the arguments */
    int32_t argument_words, result_words;
} parakeet_signature;
#endif
"""

_TEXT = """\
/* @name@: @title@

   Made by parakeet_py @version@. Link with lib@name@.so (or the objects and @name@.c beside this file).

   Arrays of arguments are read, and changed where the function stores into them. Extents count elements, strides are in
   bytes. A function fills in its results only if it gives PARAKEET_OK. Arrays among them are memory of their own, which
   @name@_free(result.owner) gives back (once for each result), or show memory of an argument: then `owner` is 0 and
   `source` says of which array argument, counted from 1 on; it is negative if the result is the very argument. `source`
   is 0 for memory of its own, and beyond the arguments for arrays that the library holds, which are not to be changed.
   All functions may be called by several threads at once. */

#ifndef @guard@
#define @guard@

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

@codes@
@complex@
@arrays@
@other_codes@
@functions@

/* Give the memory of a result back; 0 is allowed. */
void @name@_free(void *owner);

/* What went wrong in this thread's last call that did not give PARAKEET_OK, as Python says it. */
const char *@name@_last_message(void);

/* The name of a code (of exceptions: of the Python class), and what it means in general. */
const char *@name@_error_name(int code);
const char *@name@_error_text(int code);

/* The target whose code runs on this processor; empty if there is none. */
const char *@name@_target(void);
@threads@
/* All signatures: number k (from 1 on) is @name@_signatures[k - 1]. */
extern const parakeet_signature @name@_signatures[];
extern const int @name@_signature_count;

/* The same calls for other languages, in words of 8 bytes. Of arguments an array is [0, data, extents, strides], of
   results [number of the very argument or 0, number of the argument whose memory it is or 0, owner, data, extents,
   strides]; a scalar is a word, a complex128 two. `arguments` has room for what the library fills in. */
int @name@_call(int signature, int64_t *arguments, int64_t *results);

/* The status of the last failure, and the six words that its message is made from. */
int @name@_last_failure(int64_t *words);

#ifdef __cplusplus
}
#endif
#endif
"""

_THREADS = """
/* How many threads a call may use from now on (all processors at first; 0 changes nothing); gives the number before. */
int @name@_set_threads(int threads);
"""


def header(
    name: str,
    title: str,
    version: str,
    signatures: tuple[ExportedSignature, ...],
    codes: Mapping[str, int],
    *,
    has_threads: bool,
) -> str:
    """The text of the header. `codes` are those of exceptions, by the names that compiled code has for them."""
    fixed = "\n".join(f"    {code_name(one)} = {code}," for one, code in EXCEPTIONS.items()).rstrip(",")
    other = [f"#define {code_name(one, name)} {code}" for one, code in codes.items() if one not in EXCEPTIONS]
    functions = [f"/* {_about(name, one)} */\n{prototype(name, one)};\n" for one in signatures]
    return fill(
        _TEXT,
        codes=fill(_CODES, codes=fixed),
        complex=COMPLEX,
        arrays="\n".join(declaration(dtype, rank) for dtype, rank in array_types(signatures)),
        other_codes="\n".join(other),
        functions="\n".join(functions),
        threads=_THREADS if has_threads else "",
        guard=f"{identifier(name).upper()}_H",
        title=comment(title),
        version=version,
        name=name,
    )


def _about(name: str, one: ExportedSignature) -> str:
    stored = ", ".join(argument.name for argument in one.given if argument.stored)
    return f"{name}({comment(one.made.text)}){f'; stores into {stored}' if stored else ''}"


def code_name(exception: str, library: str = "") -> str:
    """The name of an exception's code in C."""
    kind = exception.rpartition(":")[2].rpartition(".")[2]
    return f"PARAKEET_{kind}" if not library else f"{identifier(library).upper()}_{identifier(kind)}"
