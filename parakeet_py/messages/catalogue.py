"""The kinds of refusals: see the head of the package. The first entry that matches a text is the one."""

from __future__ import annotations

from typing import Final

from parakeet_py.messages.entry import Entry

# Sources begin on the line behind the quotes.
CATALOGUE: Final = (
    Entry(
        "compiler-failed",
        "Errors of the compiler itself",
        (r".*: the compiler has failed .*",),
        "the result is Python's and right; please report the function, with PARAKEET_CHECK=1 for the whole traceback",
    ),
    Entry(
        "unknown-interpreter",
        "Interpreters whose objects compiled code cannot read",
        (
            r"Python .* is a free-threaded build, .*",
            r"Python .* runs on a machine of other words .*",
            r".* has .*, for which compiled code has to know their layout",
        ),
        "use a CPython with a global lock, of a version that the documents name, and a released NumPy",
    ),
    Entry(
        "other-packages",
        "Functions of Python and of other packages that are handed back as a whole",
        (r"\w+ is not compiled \(.*\)",),
        "leave it where it takes long by itself; else write in NumPy what it does, or register such a body for it "
        "(parakeet_py.register)",
    ),
    # ---- warnings that are about no function ----
    Entry(
        "device-missing",
        "GPUs that were asked for and are not there",
        (r".*; calls run on the CPU",),
        "results are the same; parakeet doctor says what is missing, and devices='cpu' asks for none",
    ),
    Entry(
        "device-lost",
        "Devices that fail during a call",
        (r".* has failed, its work is done by .*",),
        "results are right; leave the device out of devices, or give it smaller arrays if its memory was full",
    ),
    Entry(
        "device-by-host",
        "Functions of NumPy that arrays on devices are copied to the host for",
        (r"numpy\..* is not compiled for this call: it runs on copies of arrays on the host, .*",),
        "results are right and on the device; register a body for the function, or compute with numpy.asarray(x)",
    ),
    Entry(
        "roofline",
        "Kernels that cannot be timed",
        (r"kernels are timed by clock_gettime, which is not here", r"the call is not compiled: .*"),
        "f.explain(*args) says what the kernels are and why a call is not compiled; times are measured on Linux",
    ),
    Entry(
        "gathered",
        "Dask arrays that are put together in one place",
        (
            r"only Python can go on with .*",
            r".*: they are gathered in one place, where the call runs as on NumPy arrays",
            r"line .* cannot be cut along its chunks: .* bytes are gathered in one place",
            r"line .* needs .* bytes of an array in one place, more than gather_limit=.*",
        ),
        "results are right; rechunk such that the axis the line works along is in one chunk, or raise gather_limit",
    ),
    Entry(
        "unknown-chunks",
        "Dask arrays whose chunks have unknown sizes",
        (r"chunks of arrays of shape .* have unknown sizes, which .* asks for: they are computed",),
        "results are right; call x.compute_chunk_sizes() before, once for all calls with the array",
    ),
    Entry(
        "setting-name",
        "Environment variables that are no settings",
        (r"the environment variable \S+ is no setting of parakeet_py; .*",),
        "give it the name of a setting, or unset it",
    ),
    Entry(
        "changed-already",
        "Calls that cannot be completed, as they have changed something",
        (r".*, in the middle of a call that has changed something; such calls run in Python from now on: .*",),
        "call it again on what the arguments were before; let the value have one type on all paths, as float(x) has",
    ),
    # ---- arguments ----
    Entry(
        "unusual-array",
        "Arrays of dtypes, byte orders and classes that are not compiled",
        (
            r".*, which is not compiled as an array",
            r"an array of an unusual kind.*",
            r".*changes what kind of array this is",
        ),
        "give the function ordinary arrays of numbers: np.asarray, .astype or .view make one",
        """
def f(a):
    return (2 * a).sum()
""",
        "np.arange(3, dtype='>f8')",
        """
def f(a):
    return (2 * a).sum()
""",
        "np.arange(3, dtype='>f8').astype('f8')",
    ),
    Entry(
        "times",
        "Operations of datetime64 and timedelta64 that are not compiled",
        (
            r"(?!.*with strict=True)(?!.* on one path and ).*(datetime64|timedelta64)\[.*",
            r".*, and gives what may be a view",
        ),
        "do this outside, or on x.view('int64'), the same memory as numbers",
        """
def f(x):
    days = x.tolist()
    return days[0], x[-1] - x[0]
""",
        "np.arange('2020-01-01', '2020-03-01', dtype='M8[D]')",
        """
def f(x):
    days = x.view("int64")
    return days[0], x[-1] - x[0]
""",
    ),
    Entry(
        "known-value",
        "What has to be known when the function is compiled",
        (
            r".* has to be known when the function is compiled",
            r".* must be an integer, not .*",
            r".* depends on too many global values",
            r"a loop over a .*-item sequence is too long to unroll",
            r"a tuple whose length depends on data",
            r"unpacking .*, whose length is not known when it is compiled",
            r"a zip of a tuple with something of run-time length",
            r"\*\* of something that is not a dict of known keys",
            r"a format that is itself computed cannot be accelerated",
            r"the class of an exception that is not known when this is compiled",
        ),
        "go by index over an array, or pass the value as an argument",
        """
def f(n):
    s = 0
    for w in ("a", "b", "c") * 40:
        s += n
    return s
""",
        "3",
        """
def f(n):
    s = 0
    for i in range(120):
        s += n
    return s
""",
    ),
    # ---- loops ----
    Entry(
        "iteration",
        "Loops over objects",
        (
            r"iteration over .*",
            r"(permutations|combinations( with replacement)?|a product) of more than (two|three|four)",
            r"reversed\(\) of .*",
            r"zip of a generator",
            r"a loop over a generator.*",
            r"a loop over selected records that stores",
            r".*\biterators?\b.*",
            r"a generator (over|that) .*",
            r"next\(\) in a generator.*",
            r"this loop inside `try` cannot be accelerated",
        ),
        "pass an array, np.array(list(x)), or go over a list, tuple or range that the function makes itself",
        """
def f(numbers):
    s = 0
    for n in numbers:
        s += n
    return s
""",
        "{1, 2, 3}",
        """
def f(numbers):
    s = 0
    for n in numbers:
        s += n
    return s
""",
        "np.array(sorted({1, 2, 3}))",
    ),
    Entry(
        "python-in-loop",
        "Loops that do little but call Python",
        (
            r".* in a loop that does little else: it is faster in Python",
            r".* in a loop: it is faster in Python as a whole",
            r".* inside .* cannot be handed back to Python",
            r"Python called in a loop of a function inside `try`",
        ),
        "do it before or after the loop, on whole arrays, or register a body for the function (parakeet_py.register)",
        """
import fractions


def f(x):
    s = 0
    for v in x:
        s += fractions.Fraction(int(v)).numerator
    return s
""",
        "np.arange(4)",
        """
def f(x):
    s = 0
    for v in x:
        s += int(v)
    return s
""",
    ),
    Entry(
        "types-by-path",
        "Names that hold different types of things on different paths",
        (
            r"a name is .* on one path and .* on another",
            r"an array is read-only on one path and writeable on another",
            r"a name that is not bound",
            r"a call of a name that is not bound",
            r"the types of a loop's variables do not settle",
            r"the result types of a recursion do not settle",
            r"a comprehension with elements of several types.*",
            r"a list whose items are of different types",
            r"an item of a list whose items are of different types",
            r"the attribute .*, which (an object has on one path only|may not be there yet)",
        ),
        "give the name one type: begin with np.zeros(0) or 0.0, not with [] or 0, or use two names",
        """
def f(n):
    x = 0
    for i in range(n):
        x = np.ones(3) if i % 2 else {1: 2}
    return x
""",
        "3",
        """
def f(n):
    x = np.zeros(3)
    for i in range(n):
        x = np.ones(3) if i % 2 else np.zeros(1)
    return x
""",
    ),
    Entry(
        "keys",
        "Dicts and sets that grow with keys other than numbers of one type",
        (
            r"keys of different (kinds|lengths) in one dict",
            r"integers and floats as keys of one dict",
            r"dict keys and items of sets that are no numbers",
            r".* as a key of a dict or an item of a set",
        ),
        "let keys be ints, floats or tuples of these, all of one type, or build the dict outside",
        """
def f(n):
    found = {}
    for i in range(n):
        found[str(i)] = i * i
    return found
""",
        "3",
        """
def f(n):
    found = {}
    for i in range(n):
        found[i] = i * i
    return found
""",
    ),
    # ---- what Python's syntax has ----
    Entry(
        "class-definition",
        "Classes defined in functions",
        (r"a class cannot be defined in an accelerated function",),
        "define it at the top level of the module",
        """
def f(x):
    class Sum:
        value = x + 1

    return Sum.value
""",
        "1",
        """
def f(x):
    value = x + 1
    return value
""",
    ),
    Entry(
        "late-binding",
        "Functions made in loops, which see the last value of a variable",
        (
            r".*functions? (made here )?(that )?uses? `.*",
            r"`.*` carries a function that uses `.*",
            r".* of a function that uses names which may be bound again",
            r"this may call a function that uses .*",
            r"the free variable '.*",
            r"a name that functions share, after the function that made it",
            r".* that functions share.*in a recursion",
        ),
        "bind the value when the function is made: lambda x, i=i: x + i",
        """
def f(n):
    found = []
    for i in range(n):
        found.append(lambda x: x + i)
    return found[0](1)
""",
        "3",
        """
def f(n):
    s = 0
    for i in range(n):
        s = (lambda x, i=i: x + i)(1)
    return s
""",
    ),
    Entry(
        "frame",
        "locals(), eval and what else looks at its caller's frame",
        (r"`.*` cannot be accelerated: it looks at the frame of its caller",),
        "pass what is needed as arguments, to a function that is not accelerated",
        """
def f(x):
    return eval("x + 1")
""",
        "1",
        """
def f(x):
    return x + 1
""",
    ),
    Entry(
        "generator",
        "Generators, coroutines and what is sent to them",
        (
            r"a generator cannot be accelerated by itself",
            r"an async function cannot be accelerated",
            r"a `yield` cannot be accelerated here",
            r"`(await|async)` cannot be accelerated",
            r"an asynchronous comprehension cannot be accelerated",
            r"what is sent to a generator cannot be accelerated",
            r"what a generator returns cannot be accelerated",
            r"a yield inside .* cannot be accelerated",
        ),
        "accelerate the function that goes through the generator, or fill an array and return it",
        """
def f(n):
    for i in range(n):
        yield i
""",
        "3",
        """
def numbers(n):
    for i in range(n):
        yield i


def f(n):
    s = 0
    for i in numbers(n):
        s += i
    return s
""",
    ),
    Entry(
        "outer-names",
        "Names of modules and enclosing functions that are bound",
        (
            r"(the global `.*`|a global) cannot be bound in an accelerated function",
            r"`.*` of an enclosing function cannot be bound here",
            r"the globals of .* are of no module",
            r"name '.*' is not defined",
        ),
        "return the value, and bind the name outside",
        """
COUNT = 0


def f(x):
    global COUNT
    COUNT = COUNT + 1
    return x
""",
        "1",
        """
COUNT = 0


def f(x):
    return x, COUNT + 1
""",
    ),
    Entry(
        "with-statement",
        "with statements",
        (
            r".*`np\.errstate`.*",
            r"a `with` statement.*",
            r".*inside `with`.*",
            r".* in a `with` statement",
            r"a context manager.*",
        ),
        "enter it around the call, or accelerate a function of the numeric part alone, called inside",
        """
import warnings


def f(x):
    with warnings.catch_warnings():
        return x + 1
""",
        "1",
        """
def f(x):
    with np.errstate(all="ignore"):
        return x + 1
""",
    ),
    Entry(
        "exceptions",
        "What stands in try, and exceptions that are looked at",
        (
            r".*inside `try`.*",
            r"the classes of exceptions to catch must be names",
            r"`raise` without an exception cannot be accelerated",
            r"raise of .*",
            r".*exceptions? .*",
            r".*, which has an __init__ of its own, caught",
            r"the text of a .*",
            r".* in a message",
            r"a message made of .*",
            r"the key of a KeyError",
            r"exceptions after an assignment to an attribute",
        ),
        "put what raises into a function of its own, or test for the case instead of catching the exception",
        """
def f(x, i):
    try:
        s = x[i]
    except (IndexError, OSError)[:1]:
        s = 0.0
    return s
""",
        "np.arange(3.0), 5",
        """
def f(x, i):
    try:
        s = x[i]
    except IndexError:
        s = 0.0
    return s
""",
    ),
    Entry(
        "syntax",
        "Other statements and expressions",
        (
            r"`:=` .*",
            r"`\*` cannot be used here",
            r"`del` of an .* cannot be accelerated",
            r"`import \*` cannot be accelerated",
            r"cannot assign to .*",
            r"a pattern that looks into an object",
            r"alternative patterns that bind names",
            r"a statement that binds several things.*",
            r"a \S+ comprehension",
            r"\w+ (cannot be accelerated|is not compiled)",
            r"a starred item after a conditional one",
            r"an import of a submodule by another name",
        ),
        "write it as plain statements, one for each step",
        """
def f(x):
    match x:
        case (1, y) | (y, 1):
            return y
    return 0
""",
        "(1, 5)",
        """
def f(x):
    if x[0] == 1:
        return x[1]
    return x[0] if x[1] == 1 else 0
""",
    ),
    Entry(
        "source",
        "Functions whose source is not there",
        (
            r"the instruction .*",
            r"its bytecode is not understood",
            r"`.*` is read but never bound",
            r"control flow .*",
            r"the stack is not the same.*",
            r"this (generator expression|comprehension)",
            r".* used as a value",
            r"a function made of something else than its code",
            r"an attribute of something else than a function",
            r".*: no source for .*",
            r".*: the source at .* is not what it was compiled from",
        ),
        "keep the function in a file (or put its source into `linecache`): without, only its bytecode can be read",
    ),
    Entry(
        "nesting",
        "Functions that are too deeply nested",
        (r".* too deeply.*", r"a recursion that .*", r".* nested too deeply to be compiled"),
        "split it into smaller functions, or write the recursion as a loop",
        """
def f(n):
    return [f(n - 1)] if n else []
""",
        "3",
        """
def f(n):
    return 1 + f(n - 1) if n else 0
""",
    ),
    Entry(
        "many-signatures",
        "Functions that are called with ever new types",
        (r".* has met \d+ signatures; from now on, new ones run in Python",),
        "call it with arrays of few dtypes and ranks; long tuples and strings make a signature each",
    ),
    Entry(
        "compile-time",
        "Functions whose compilation takes longer than their calls in Python",
        (r"compiling .* takes over .* s; its calls take less",),
        "with @accelerate(when='now'), or f.compile(*args), it is compiled however long that takes",
    ),
    # ---- objects ----
    Entry(
        "views",
        "Arrays under several names",
        (
            r".*shape.* of (an array|a view).*",
            r".* of an array that is not the function's own.*",
            r".* in branches and loops, or after a call that is handed back",
            r".*views?.*",
            r"a comprehension of arrays that are not in C order",
            r"arrays that are seen elsewhere.*",
            r"min or max of arrays",
        ),
        "use reshape, which makes a new view, and keep one name for each array",
        """
def f(x):
    x.shape = (3, 2)
    return x
""",
        "np.arange(6)",
        """
def f(x):
    return x.reshape(3, 2)
""",
    ),
    Entry(
        "attributes",
        "Objects whose attributes are set or computed in ways of their own",
        (
            r".*attribute.*",
            r"the property .*",
            r"property '.*",
            r".*super.*",
            r"hasattr\(\) of an instance",
            r".*, which .* does in its own way",
            r".*, which may drop an object whose __del__ runs then",
            r".* of one of several objects that may be the same",
            r".*object has no (attribute|method).*",
        ),
        "read attributes into variables before, and set them after the numeric part",
        """
class Counter:
    def __init__(self):
        self.n = 0

    def __setattr__(self, name, value):
        object.__setattr__(self, name, int(value))


def f(c, x):
    c.n = x + 1
    return x
""",
        "Counter(), 2",
        """
def f(n, x):
    return x, x + 1
""",
        "0, 2",
    ),
    Entry(
        "instances",
        "Objects that are made, kept and changed",
        (
            r"an object.*",
            r"objects? .*",
            r".* of objects that change",
            r".*several objects that change",
            r"a list of such objects",
            r".*an object that the function has made",
            r".*in a recursion",
            r"assignment to .*",
            r"a __len__ that gives something else than an int",
            r"`is` between .*",
            r"an operator on .*",
        ),
        "keep numbers in arrays, one for each attribute, instead of objects in lists",
        """
def f(n):
    x = [0.0] * n
    return x is list(x)
""",
        "3",
        """
def f(n):
    x = [0.0] * n
    return len(x) == len(list(x))
""",
    ),
    # ---- lists, dicts, sets ----
    Entry(
        "not-handed-back",
        "What cannot be given to Python code in the middle of a function",
        (
            r".*, where Python could not take the call over",
            r".*, with a list or dict that is changed",
            r".*, among what is given to Python code",
            r".* needs the Python function itself",
            r".*, and .* may change a list, dict, global or the form of an array that is in use here",
            r".* in a function of NumPy's own",
            r".* of objects that are not compiled",
            r".*cannot be handed to Python code",
            r".* given to Python.*",
            r"a list that is changed, given to a function.*",
            r".* is not (callable|compiled)",
            r"a decorator that is not that of functools",
            r"a nested function cannot be handed to Python code",
            r"a function cannot return .*",
            r"almost all is handed back",
            r"functions made here may outlive what they use",
        ),
        "call it before or after the numeric part, in a function that is not accelerated",
        """
import operator


def f(n):
    x = []
    for i in range(n):
        x.append(i)
    operator.setitem(x, 0, 5)
    x.append(2)
    return x
""",
        "3",
        """
def f(n):
    x = []
    for i in range(n):
        x.append(i)
    x[0] = 5
    x.append(2)
    return x
""",
    ),
    Entry(
        "lists",
        "Lists that change while others see them",
        (
            r"(?!a comparison|an order).*\blists?\b.*",
            r"a change of .*",
            r".* that stands twice in what the caller is given",
            r".* as the bound of a slice",
            r"a dict or set of the function's own.*",
            r".*deque.*",
            r"a .* that is not collections\..*",
            r"item assignment to .*",
            r"a defaultdict of .*",
            r"a Counter of a dict",
            r"\.\w+\(\) of a (dict|set|list|tuple).*",
            r".*a set\b.*",
            r".*a dict\b.*",
        ),
        "use an array, or make a new list instead of changing one that has other names",
        """
def f(n):
    rows = [[0] * 3] * 3
    rows[0][n] = 1
    return rows
""",
        "1",
        """
def f(n):
    rows = [[0] * 3 for _ in range(3)]
    rows[0][n] = 1
    return rows
""",
    ),
    Entry(
        "element-stores",
        "Functions of elements, for parakeet_py.map and its like, that store",
        (r"a store in an element function",),
        "return the values instead: elements are computed in any order, and on several threads",
    ),
    Entry(
        "not-observed",
        "Functions that explain() is asked about before their first call",
        (r".*, and no call has shown yet what it gives",),
        "call it with such arguments first, under options(when='now'): what is handed back has to be seen once",
    ),
    Entry(
        "strict",
        "What would be handed back, under strict=True",
        (r".*: with strict=True nothing is handed back to Python",),
        "leave strict=True out, or call it outside; parakeet_py.register gives the compiler a body for a function",
    ),
    Entry(
        "python-raises",
        "What Python or NumPy raise themselves",
        (
            r"only integers, slices .*",
            r".*must (not )?be.*",
            r".*(takes|expected|missing|unexpected|not enough|too many|got multiple).*",
            r".*cannot (be interpreted|cast).*",
            r".*Cannot cast.*",
            r"bad operand.*",
            r"unsupported oper.*",
            r"'.*' not supported between .*",
            r"complex numbers have no order",
            r"complex\(complex, \.\.\.\)",
            r".*can only have.*",
            r"setting an array element.*",
            r"slice step cannot be zero",
            r".*argument is empty",
            r"(KeyError|ValueError|TypeError|IndexError)\b.*",
            r"multiple values for keyword argument '.*'",
            r"len\(\) of unsized object",
            r".*has no setter",
            r".*should return None",
            r"input operand has more dimensions.*",
            r"\w*Error: .*",
            r".*values to unpack.*",
            r".*doesn't define.*",
            r".*the number of arguments does not fit",
            r".* with these arguments",
            r"\w+: .*",
        ),
        "Python is likely to refuse this call, too: run it undecorated (f.__wrapped__) to see its exception",
    ),
    Entry(
        "operation",
        "Operators, functions and indices that are not compiled for what they are given",
        (
            r".* of .*",
            r".* searched in .*",
            r"`in` .*",
            r".* as an index of .*",
            r".* in a range",
            r".* where (a number or an array|an array) is needed",
            r"a scalar is needed here, not .*",
            r"(complex )?\S+ is not compiled",
            r".* is not compiled",
            r".*may raise, after another condition",
            r".*whose elements are not scalars",
        ),
        "turn it into numbers or arrays before: np.asarray(x), x.tolist(), float(x)",
        """
def f(n):
    return sorted([i for i in range(n)], key=str)
""",
        "3",
        """
def f(n):
    return sorted([i for i in range(n)], key=lambda i: -i)
""",
    ),
)
