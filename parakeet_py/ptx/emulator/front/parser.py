"""Modules and declarations: from tokens to `ir.ModuleText`.

PTX is a list of directives and functions; `statements.py` reads what is inside a body. Debug sections are skipped.
A directive that would change what a program does and is not known is refused by name, one that only advises (`.pragma`,
`.minnctapersm`) is kept or skipped.
"""

from __future__ import annotations

from parakeet_py.ptx.emulator.front.declarations import read_parameters, read_variables
from parakeet_py.ptx.emulator.front.ir import Function, ModuleText, Variable
from parakeet_py.ptx.emulator.front.lexer import tokenize
from parakeet_py.ptx.emulator.front.statements import BodyReader
from parakeet_py.ptx.emulator.front.tokens import TokenStream, integer_of

_LINKAGE = {".extern", ".visible", ".weak", ".common"}
_SPACES = {".global", ".const", ".shared", ".local", ".param", ".reg"}
_LAUNCH_DIRECTIVES = {
    ".maxntid",
    ".reqntid",
    ".minnctapersm",
    ".maxnctapersm",
    ".maxnreg",
    ".maxclusterrank",
    ".reqnctapercluster",
}
_SILENT_DIRECTIVES = {".noreturn", ".explicitcluster", ".blocksareclusters"}


def parse(text: str) -> ModuleText:
    """Read a PTX module.

    Raises
    ------
    PtxSyntaxError
        Where the text is not PTX.
    UnsupportedPtx
        At a directive the emulator has no meaning for.
    """
    lines = text.split("\n")
    module = ModuleText(text, lines)
    stream = TokenStream(tokenize(text), lines)
    while stream.kind != "end":
        if stream.kind == "header":
            _header(module, stream)
        elif stream.text == ".section":
            _skip_section(stream)
        elif stream.text == ".pragma":
            stream.skip_past(";")
        elif stream.text == ";":
            stream.take()
        elif stream.text == ".alias":
            _alias(module, stream)
        else:
            _definition(module, stream)
    return module


def _header(module: ModuleText, stream: TokenStream) -> None:
    directive, _, rest = stream.take().text.partition(" ")
    if directive == "version":
        module.version = rest
    elif directive == "target":
        module.target = rest


def _skip_section(stream: TokenStream) -> None:
    while stream.text != "{":
        stream.take()
    depth = 0
    while True:
        depth += {"{": 1, "}": -1}.get(stream.take().text, 0)
        if depth == 0:
            return


def _alias(module: ModuleText, stream: TokenStream) -> None:
    stream.take()
    name = stream.name()
    stream.expect(",")
    target = stream.name()
    stream.expect(";")
    if target not in module.functions:
        raise stream.error(f"alias of unknown function {target}")
    module.functions[name] = module.functions[target]


def _definition(module: ModuleText, stream: TokenStream) -> None:
    linkage = set()
    while stream.text in _LINKAGE:
        linkage.add(stream.take().text)
    if stream.text in (".entry", ".func"):
        _function(module, stream)
    elif stream.text in _SPACES:
        for variable in read_variables(stream, external=".extern" in linkage):
            known = module.variables.get(variable.name)
            if known is None or known.external or not variable.external:
                module.variables[variable.name] = variable
    else:
        raise stream.unsupported(f"directive {stream.text}")


def _function(module: ModuleText, stream: TokenStream) -> None:
    entry = stream.take().text == ".entry"
    line = stream.line
    results: list[Variable] = []
    if stream.text == "(":
        results = read_parameters(stream)
    _skip_attributes(stream)
    name = stream.name()
    parameters = read_parameters(stream) if stream.text == "(" else []
    function = Function(name, entry, line, tuple(results), tuple(parameters))
    while stream.text not in ("{", ";"):
        directive = stream.text
        if directive == ".pragma":
            stream.skip_past(";")
        elif directive in _SILENT_DIRECTIVES:
            stream.take()
        elif directive in _LAUNCH_DIRECTIVES:
            stream.take()
            values = [integer_of(stream.take())]
            while stream.accept(","):
                values.append(integer_of(stream.take()))
            function.directives[directive[1:]] = tuple(values)
        else:
            raise stream.unsupported(f"directive {directive}")
    if stream.accept(";"):
        module.functions.setdefault(name, function)
        return
    function.defined = True
    BodyReader(module, function, stream).read()
    module.functions[name] = function


def _skip_attributes(stream: TokenStream) -> None:
    while stream.text == ".attribute":
        stream.skip_past(")")
