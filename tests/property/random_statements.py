"""The statements of random programs that have no blocks: stores, names, views, library calls, lists, dicts, calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.property.random_expressions import (
    BINARY,
    REDUCE,
    SHAPED,
    VIEWS,
    Expressions,
    indented,
    is_int,
)
from tests.property.recipes import Body

AUGMENTED = ["+=", "-=", "*=", "//=", "%=", "/=", "&=", "|=", "^=", "<<=", ">>="]
UPDATES = ["np.add({0}, {1}, out={0})", "np.subtract({0}, {1}, {0})", "np.maximum({0}, {1}, out={0}, where={0} > 0)"]
UPDATES += ["np.add({0}, {1}, out={0}, casting='unsafe')", "np.copyto({0}, {1})", "np.copyto({0}, {1}, where={0} > 0)"]
UPDATES += ["{0}.sort()", "{0}.fill({1})", "np.put({0}, [0, -1], {1})", "np.putmask({0}, {0} > 0, {1})"]
UPDATES += ["np.add.at({0}, [0, 0], {1})", "np.subtract.at({0}, {0} > 0, {1})", "np.negative({0}, out={0})"]
UPDATES += ["np.fill_diagonal({0}, {1})", "np.place({0}, {0} > 0, [1, 2])", "np.clip({0}, 0, {1}, out={0})"]
UPDATES += ["np.multiply({0}, 2, out={0}, casting='unsafe')", "{0}.ndim and np.cumsum({0} % 3, axis=0, out={0})"]
UPDATES += [
    "np.divmod({0}, 3, out=({0}, {0}))",
    "np.modf({0}, out=({0}[::-1], {0}))",
    "{0}.ndim and np.cumprod({0} % 2, 0, out={0})",
]
UPDATES += ["np.maximum.accumulate({0}, axis=0, out={0}[::-1])", "{0}.flat[::2] = {0}.flat[1::2]", "{0}.flat = {1}"]
UPDATES += ["np.nan_to_num({0}, copy=False)", "np.take({0}, [0, -1], 0, out={0}[:2], mode='clip')"]


class Statements(Expressions):
    """Each makes the lines of one statement; no lines if there is nothing to make it of."""

    # ---- arrays ----

    def assign(self, scope: dict[str, Any]) -> list[str]:
        return [f"{self.name()} = {self.expression(scope, 2)}"]

    def again(self, scope: dict[str, Any]) -> list[str]:
        """A name gets a new value of the same kind: carried by loops, merged by branches."""
        name = self.pick([*self.arrays(scope), *self.numbers(scope)])
        return [f"{name} = {self.pick([*BINARY, '{0} * 1 + {1}', '{1}', '{0}']).format(name, self.leaf(scope))}"]

    def store(self, scope: dict[str, Any]) -> list[str]:
        name = self.target(scope)
        if name is None:
            return []
        place = self.place(scope, name)
        operator = self.pick(["=", "+=", "-=", "=", "*="])
        if ":" not in place and "..." not in place:
            return [f"{place} {operator} {self.pick([*self.numbers(scope), '7', '-1.5'])}"]
        # A plain copy between windows of one buffer may go wrong in NumPy itself if their steps differ.
        copied = ["{} + 0"] if operator == "=" else ["{}"]
        if operator == "*=":
            return [f"{place} *= {self.pick(['2', '-1', '0.5', *self.numbers(scope)])}"]
        if self.chance(40):  # of itself: what is stored overlaps what is read
            source = self.pick([self.place(scope, name), place, f"{place}[::-1]", f"{name}[::-1]", f"{name}.T"])
            return [f"{place} {operator} {self.pick(['{} + 1', '{} * 2', *copied]).format(source)}"]
        return [f"{place} {operator} {self.pick(copied).format(self.expression(scope, 1))}"]

    def view_store(self, scope: dict[str, Any]) -> list[str]:
        """Through a view that is not named: `a.T[0] = ...`, `a.real[...] += ...`."""
        name = self.target(scope)
        if name is None:
            return []
        view = self.pick(VIEWS).format(name)
        place = f"{view}[{self.pick(['...', '0', '::-1', '1:', ':, 0', '-1', 'k % 2'])}]"
        return [f"{place} {self.pick(['=', '+=', '-='])} {self.pick(['3', '{} + 1', '{} * 2']).format(place)}"]

    def augment(self, scope: dict[str, Any]) -> list[str]:
        name = self.target(scope)
        if name is None:
            return []
        operand = self.pick(["3", "2", "1.5", f"{name}[::-1]", f"{name}.T", f"{name}[:1]", self.leaf(scope)])
        if self.chance(35):
            # NumPy 2.4 itself crashes: np.cumsum(np.ones(()), axis=0, out=np.ones(()))
            return [self.pick(UPDATES).format(name, operand)]
        operator = self.pick(["+=", "-=", "//=", "%=", *AUGMENTED])
        if operator in ("//=", "%=", "<<=", ">>=", "/="):
            operand = self.pick(["3", "2", "1", "np.int8(2)"]) if operator != "/=" else self.pick(["2", "4.0"])
        if operator == "*=":
            operand = self.pick(["2", "-1", "0.5"])
        return [f"{name} {operator} {operand}"]

    def view(self, scope: dict[str, Any]) -> list[str]:
        names = self.arrays(scope)
        if not names:
            return []
        name = self.pick(names)
        text = self.pick(VIEWS).format(name) if self.chance(50) else self.place(scope, name)
        return [f"{self.name()} = {text}"]

    def library(self, scope: dict[str, Any]) -> list[str]:
        operand = self.leaf(scope) if self.chance(60) else self.expression(scope, 1)
        return [f"{self.name()} = {self.pick(SHAPED).format(operand)}"]

    def reduce(self, scope: dict[str, Any]) -> list[str]:
        operand = self.leaf(scope) if self.chance(60) else self.expression(scope, 1)
        axis = self.pick(["", "", ", axis=0", ", axis=-1", ", axis=0, keepdims=True", ", axis=None", ", axis=(0, 1)"])
        return [f"{self.name()} = {self.pick(REDUCE).format(operand, axis)}"]

    def product(self, scope: dict[str, Any]) -> list[str]:
        left, right = (f"np.clip({self.leaf(scope)}, -9, 9)" for _ in range(2))
        forms = ["{} @ {}", "np.dot({}, {})", "np.outer({}, {})", "np.inner({}, {})", "np.tensordot({}, {}, 1)"]
        forms += ["np.einsum('i,i', {}, {})", "np.einsum('ij,j->i', {}, {})", "np.kron({}, {})", "np.vdot({}, {})"]
        return [f"{self.name()} = {self.pick(forms).format(left, right)}"]

    def element(self, scope: dict[str, Any]) -> list[str]:
        """Scalars: elements read and written."""
        names = self.arrays(scope, lambda a: a.ndim > 0 and a.size > 0)
        if not names:
            return []
        name = self.pick(names)
        where = ", ".join(self.index(scope, extent) for extent in scope[name].shape)
        if self.chance(50) and scope[name].flags.writeable:
            return [f"{name}[{where}] {self.pick(['=', '+='])} {self.pick([*self.numbers(scope), '7'])}"]
        text = f"{name}[{where}]"
        forms = ["{}", "{} + 1", "{} * 2", "{}.item()", "int({})", "float({})", "abs({})", "round({}, 1)", "{} / 2"]
        return [f"{self.name()} = {self.pick([*forms, '{0} // 2 if {0} > 0 else 1']).format(text)}"]

    def gather(self, scope: dict[str, Any]) -> list[str]:
        names = self.arrays(scope, lambda a: a.ndim > 0)
        if not names:
            return []
        name = self.pick(names)
        index = self.fancy(scope, name)
        if self.chance(50) and scope[name].flags.writeable:
            value = self.pick([f"{name}[{index}] + 1", "3", f"{name}[{index}][::-1]", self.leaf(scope)])
            return [f"{name}[{index}] {self.pick(['=', '+=', '-=', '='])} {value}"]
        return [f"{self.name()} = {name}[{index}]"]

    def swap(self, scope: dict[str, Any]) -> list[str]:
        names = self.arrays(scope)
        if len(names) < 2:
            return []
        one, two = self.pick(names), self.pick(names)
        forms = ["{0}, {1} = {1}, {0}", "{2} = {0}", "{2} = {0} if k > 1 else {1}", "{0} = {1}", "{2} = ({0}, {1})"]
        forms += ["{2}, {0} = {0}, {1} + 1", "{2} = [{0}, {1}]", "{2} = ({0}, {1})[k % 2]"]
        form = self.pick(forms)
        self.refusable |= form.endswith("]") or "k" in form
        return [form.format(one, two, self.name())]

    # ---- lists, dicts, None ----

    def lists(self, scope: dict[str, Any]) -> list[str]:
        """A list of numbers is made, changed or used."""
        self.refusable = True
        names = [name for name, value in scope.items() if isinstance(value, list)]
        number = self.pick([*self.numbers(scope), "2", "k", "0.5"])
        vectors = self.arrays(scope, lambda a: a.ndim == 1)
        vector = self.pick(vectors) if vectors else "range(k)"
        if not names or self.chance(30):
            forms = [
                "[]",
                "[{0}]",
                "[x * 2 for x in {1}]",
                "list({1})",
                "[0] * k",
                "[k, {0}]",
                "np.array({1}).tolist()",
            ]
            forms += [
                "[x for x in {1} if x > 0]",
                "sorted({1})",
                "[(x, y) for x in range(2) for y in {1}]",
                "list(range(k))",
            ]
            forms += ["[max(x, {0}) for x in {1}]", "[i * x for i, x in enumerate({1})]", "list(reversed({1}))"]
            return [f"{self.name()} = {self.pick(forms).format(number, vector)}"]
        one = self.pick(names)
        if self.chance(60):
            forms = [
                "{0}.append({1})",
                "{0}.extend({2})",
                "{0}.pop()",
                "{0}.insert(0, {1})",
                "{0} += [{1}]",
                "del {0}[0]",
            ]
            forms += ["{0}.reverse()", "{0}.sort()", "{0}[0] = {1}", "{0}[-1] += {1}", "{0}.clear()", "{0}.pop(0)"]
            forms += ["{0} = {0} + [{1}]", "{0} = {0}[1:]", "{3} = {0}", "{3} = {0}.pop()"]
        else:
            forms = ["{3} = np.array({0})", "{3} = len({0})", "{3} = sum({0})", "{3} = max({0})", "{3} = sorted({0})"]
            forms += ["{3} = {0}[-1]", "{3} = [y + 1 for y in {0} if y > 0]", "{3} = any(y > 1 for y in {0})"]
            forms += ["{3} = {1} in {0}", "{3} = min({0}, default=5)", "{3} = {2} + np.array({0})", "{3} = tuple({0})"]
            forms += [
                "{3} = {0}.index({0}[0])",
                "{3} = {0}.count({1})",
                "{3} = np.sum({0})",
                "{3} = list(zip({0}, {2}))",
            ]
        return [self.pick(forms).format(one, number, vector, self.name())]

    def dicts(self, scope: dict[str, Any]) -> list[str]:
        self.refusable = True
        names = [name for name, value in scope.items() if isinstance(value, dict | set)]
        numbers = self.numbers(scope)
        number, value = self.pick([*numbers, "k"]), self.pick([*numbers, "2.5", *self.arrays(scope)])
        if not names or self.chance(30):
            forms = ["{{}}", "{{0: {0}, 1: 2}}", "{{'x': {1}, 'y': k}}", "{{i: i * i for i in range(k)}}", "set()"]
            forms += ["dict(x={1})", "{{1, k}}"]
            return [f"{self.name()} = {self.pick(forms).format(number, value)}"]
        one = self.pick(names)
        key = self.pick(["k", "k % 2", "0", "'x'", f"int({number}) % 3"])
        forms = ["{0}[{1}] = {2}", "{0}[{1}] = {0}.get({1}, 0) + 1", "{0}.pop({1}, None)", "{3} = {0}.get({1}, {2})"]
        forms += ["{3} = {1} in {0}", "{3} = len({0})", "{3} = sum({0}.values())", "{3} = {0}[{1}]", "{0}[{1}] += 1"]
        forms += ["{3} = list({0}.items())", "{3} = sorted({0})", "{0}.add({1})", "{0}.discard({1})", "del {0}[{1}]"]
        forms += ["{3} = {0}.setdefault({1}, {2})", "{0}.update({{5: {2}}})", "{3} = list({0}.keys())"]
        return [self.pick(forms).format(one, key, value, self.name())]

    def array_lists(self, scope: dict[str, Any]) -> list[str]:
        """A list of arrays is made, changed or used."""
        self.refusable = True
        arrays = self.arrays(scope)
        if not arrays:
            return []
        named = [name for name, value in scope.items() if isinstance(value, list)]
        names = [name for name in named if scope[name] and isinstance(scope[name][0], np.ndarray)]
        array, other, new = self.pick(arrays), self.pick(arrays), self.name()
        if not names or self.chance(30):
            forms = ["{2} = [{0}, {1}]", "{2} = [{0} * x for x in range(3)]", "{2} = list({0})", "{2} = [{0}] * 2"]
            forms += ["{2} = []\nfor x in range(k):\n    {2}.append({0} + x)", "{2} = [x * 2 for x in {0}]"]
            forms += ["{2} = np.split({0}, 1)"]
            forms += ["{2} = [{0}.copy() for x in range(k)]", "{2} = [{0}[x:] for x in (0, 1)]"]
            return str(self.pick(forms).format(array, other, new)).splitlines()
        forms = ["{2} = np.stack({3})", "{2} = np.concatenate({3})", "{2} = sum({3})", "{2} = {3}[0]", "{2} = len({3})"]
        forms += ["{3}.append({0})", "{3}[-1][...] = 3", "{3}[0] += 1", "{3}[0] = {0}", "{2} = np.array({3})"]
        forms += ["{2} = {3}.pop()", "for x in {3}:\n    x += 1", "{2} = [x + 1 for x in {3}]", "{2} = {3}[1:]"]
        forms += ["{2} = {3}[k % len({3})]", "{2} = np.vstack({3})"]
        forms += ["{2} = tuple({3})", "{2} = {3}[::-1]", "{3}.reverse()"]
        forms += ["{2}, *{3} = {3}"]
        forms += ["for x, y in zip({3}, {3}[1:]):\n    {0} += np.sum(x) - np.sum(y)", "{3} = {3} + [{0}]"]
        forms += ["{2} = max(len(x) for x in {3})", "{2} = [x.shape for x in {3}]", "{2} = {3}[0] @ {3}[-1]"]
        return str(self.pick(forms).format(array, other, new, self.pick(names))).splitlines()

    def attributes(self, scope: dict[str, Any]) -> list[str]:
        """Of an argument that has some."""
        names = [name for name, value in scope.items() if isinstance(value, Body)]
        if not names:
            return []
        self.refusable = True
        number, array = self.pick([*self.numbers(scope), "2", "k"]), self.leaf(scope)
        forms = ["{0}.t += {1}", "{0}.t = {0}.t * 2", "{0}.n += 1"]
        forms += ["{0}.x[...] += 1", "{0}.x = {0}.x + 1", "{0}.x = {2}"]
        forms += ["{3} = {0}.x", "{3} = {0}.t"]
        forms += ["{3} = {0}.x * {0}.t", "{3} = {0}.x[{0}.n % len({0}.x)]", "{0}.x[0] = {1}"]
        forms += ["{3} = getattr({0}, 't') + {0}.n", "{3} = hasattr({0}, 'y')"]
        forms += ["{0}.n = int({1})", "{0}.x, {0}.t = {0}.x[1:], k"]
        forms += ["for x in {0}.x:\n    {0}.t += x", "if {0}.t > 1:\n    {0}.t = {1}"]
        forms += ["{3} = {0}", "{0}.x[::-1] -= {0}.x"]
        return str(self.pick(forms).format(self.pick(names), number, array, self.name())).splitlines()

    def text(self, scope: dict[str, Any]) -> list[str]:
        """Strings that say what to do."""
        number, array = self.pick([*self.numbers(scope), "k"]), self.leaf(scope)
        names = [name for name, value in scope.items() if isinstance(value, str)]
        one = self.pick(names) if names else "('up' if k > 1 else 'down')"
        forms = ["{3} = 'up' if {1} > 1 else 'down'", "{3} = 1 if {0} == 'up' else {1}"]
        forms += ["{3} = len({0})", "{3} = {0} + 'x'"]
        forms += ["{3} = {{'up': {1}, 'down': 2}}[{0}]", "{3} = {0} in ('up', 'left')"]
        forms += ["{3} = {0}.upper()", "{3} = {0}[0]"]
        forms += ["{3} = '%d %s' % (k, {1})", "{3} = repr({1})", "{3} = '{{}}'.format({1})", "{3} = f'{{k}}' + {0}"]
        forms += ["if {0} == 'down':\n    {3} = {2}\nelse:\n    {3} = {2}"]
        self.refusable = True
        return str(self.pick(forms).format(one, number, array, self.name())).splitlines()

    def maybe(self, scope: dict[str, Any]) -> list[str]:
        """A name that may be None."""
        self.refusable = True
        names = [name for name, value in scope.items() if value is None]
        if not names or self.chance(30):
            return [f"{self.name()} = None"]
        one, leaf = self.pick(names), self.leaf(scope)
        forms = ["if {0} is None:\n    {0} = {1}", "{2} = {1} if {0} is None else {0}", "if {3}:\n    {0} = {1}"]
        forms += ["{2} = {0} is None or {0}", "if {0} is not None:\n    {2} = {0} + 1\nelse:\n    {2} = 0"]
        return self.pick(forms).format(one, leaf, self.name(), self.condition(scope)).splitlines()

    # ---- functions ----

    def call(self, scope: dict[str, Any]) -> list[str]:
        """A function of its own, called twice."""
        self.refusable = True  # what is not reached may be wrong
        names = [*self.arrays(scope), *self.numbers(scope)]
        inner = {name: scope[self.pick(names)] for name in "xy"}
        name, first, second = self.name(), self.pick(names), self.pick(names)
        head = f"def {name}(x, y):"
        match self.draw_below(10):
            case 6 | 7:
                return self.recursion(scope, name, first)
            case 8:
                form = self.pick(["x, *y", "x, y=k, *, z=1", "x, **y", "*x", "x, /, y=(1, 2)"])
                call = {
                    "x, *y": "{0}, {1}, 2",
                    "x, y=k, *, z=1": "{0}, z={1}",
                    "x, **y": "{0}, z={1}",
                    "*x": "{0}, {1}",
                }
                body = {"x, *y": "x + y[0] * len(y)", "x, **y": "x + y['z']", "*x": "x[0] + x[-1]"}
                lines = [f"def {name}({form}):", f"    return {body.get(form, 'x + np.sum(y)')}"]
                return [*lines, f"{self.name()} = {name}({call.get(form, '{0}').format(first, second)})"]
            case 9:  # made by a function, around what that was given
                made, more = self.name(), self.expression({**inner, first: scope[first]}, 1)
                lines = [f"def {name}(x):", "    def inner(y):", f"        return {more}", "    return inner"]
                return [*lines, f"{made} = {name}({first})", f"{self.name()} = {made}({second})"]
            case 0 | 1:
                more = self.store(inner) or ["pass"]
                return [head, *indented([*more, "return x"]), f"{self.name()} = {name}({first}, {second})"]
            case 2:  # it reads a name of its surroundings, and has a default
                line = f"    return {self.expression({**inner, first: scope[first]}, 1)}"
                return [f"def {name}(x, y=2):", line, f"{self.name()} = {name}({second})"]
            case 3:
                lines = [f"    if {self.condition(inner)}:", f"        return {self.leaf(inner)}, 1"]
                lines += [f"    return {self.expression(inner, 1)}, k"]
                return [head, *lines, f"{self.name()}, {self.name()} = {name}({first}, {second})"]
            case 4:
                body = self.expression(inner, 1)
                return [f"{name} = lambda x, y: {body}", f"{self.name()} = {name}({first}, {name}({second}, {first}))"]
        line = f"    return {self.expression(inner, 2)}"
        return [head, line, f"{self.name()} = {name}({name}({first}, {second}), {self.leaf(scope)})"]

    def recursion(self, scope: dict[str, Any], name: str, first: str) -> list[str]:
        """A function that calls itself, at most some five levels deep."""
        inner = {"x": scope[first], "y": 3}
        base, call = self.leaf(inner), f"{name}({self.pick(['x', 'x', 'x[1:]', 'x + 1', 'x.T', 'x * 2'])}, y - 1)"
        forms = ["{0}", "{0} + 1", "{0} + y", "np.sum({0})", "({0}, y)", "{0} + {0}", "x + {0}", "np.maximum(x, {0})"]
        more = self.pick(forms)
        lines = [f"def {name}(x, y):", "    if y <= 0:", f"        return {base}"]
        lines += indented(self.store(inner)) if self.chance(40) else []
        return [*lines, f"    return {more.format(call)}", f"{self.name()} = {name}({first}, {self.pick(['3', 'k'])})"]

    def comprehension(self, scope: dict[str, Any]) -> list[str]:
        self.refusable = True
        counts = ["range(3)", *["range(k)"] * is_int(scope.get("k"))]  # k may have got another type
        sources = [*counts, *self.arrays(scope, lambda a: a.ndim > 0 and a.size < 30)]
        source = self.pick(sources)
        inner = {**scope, "x": self.run([f"x = [*{source}, 1][0]"])["x"]}
        body = self.expression(inner, 1)
        forms = ["np.array([{0} for x in {1}])", "[{0} for x in {1}]", "sum([np.sum({0}) for x in {1}])"]
        forms += ["[{0} for x in {1} if np.any(x)]", "max([np.max({0}) for x in {1}])", "np.stack([{0} for x in {1}])"]
        forms += [
            "any(np.any({0}) for x in {1})",
            "np.sum([{0} for x in {1}], axis=0)",
            "list(map(lambda x: {0}, {1}))",
        ]
        return [f"{self.name()} = {self.pick(forms).format(body, source)}"]

    # ---- what raises ----

    def fault(self, scope: dict[str, Any]) -> list[str]:
        """Something that may raise, for the inside of a `try`."""
        forms = [
            "{0} = k // (k - 2)",
            "raise ValueError('x')",
            "{0} = int('x')",
            "{0} = [1, 2][k]",
            "{0} = {{0: 1}}[k]",
        ]
        forms += ["assert k > 2", "if {2}:\n    raise IndexError(k)", "{0} = (1, 2, 3)[k]", "{0} = [].pop()"]
        names = self.arrays(scope, lambda a: a.ndim > 0)
        one = "k"
        if names:
            one = self.pick(names)
            forms += ["{0} = {1}[k]", "{1}[k + 2] = 1", "{0} = {1}[3]", "{0} = {1}.reshape(7, 7)", "{1}[k] += 1"]
            forms += ["{0} = {1} + {1}[1:]", "{0} = {1}[:, 0]", "{1}[...] = [1, 2, 3]", "{0} = np.max({1})"]
            forms += ["{0} = np.broadcast_to({1}, (k, 2))", "{0} = np.repeat({1}, -k)", "{0} = {1} @ {1}"]
            forms += ["{0} = np.sum({1}, axis=k)", "{0} = np.split({1}, k)", "{0} = {1}.reshape(k, -1)"]
            forms += ["{0} = np.stack([{1}, {1}[k:]])", "{0} = np.take({1}, k)", "{0} = int({1})", "{0} = {1}.item(k)"]
            forms += ["{0} = np.concatenate([{1}, {1}[None]])", "if {1}:\n    {0} = 1", "{0} = {1}[[9, 0]]"]
        return self.pick(forms).format(self.name(), one, self.condition(scope)).splitlines()

    def draw_below(self, count: int) -> int:
        return int(self.pick(range(count)))
