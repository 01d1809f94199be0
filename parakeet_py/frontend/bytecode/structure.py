"""From basic blocks to structured statements: loops and branches from the control-flow graph.

The graph is simplified first: the test of a loop, which CPython writes down twice, becomes one block again, and
branches that share a way out become `and` and `or`. Then dominators decide: a branch ends where its ways meet, a loop
is what can come back to its header. Whatever has no such place is written down once for every way to it, which is
always right; a graph that would need too much of it, or is irreducible, is refused.
"""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import field

from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend.bytecode.nodes import Node, Unknown

_TEMPORARY = re.compile(r"\$t\d+\.\d+")


def structured(nodes: dict[int, Node]) -> list[ast.stmt]:
    """The statements that do what the blocks do."""
    entry = min(nodes)
    _thread(nodes)
    while _fold_test(nodes) or _short_circuit(nodes, entry):
        _thread(nodes)
    return _Structure(nodes, entry).sequence(entry, None, None)


# ---- simplification -------------------------------------------------------------------------------------------------


def _predecessors(nodes: dict[int, Node]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {offset: [] for offset in nodes}
    for offset, node in nodes.items():
        for successor in dict.fromkeys(node.successors):
            found[successor].append(offset)
    return found


def _thread(nodes: dict[int, Node]) -> None:
    """Edges to blocks that only go elsewhere go there at once; unreachable blocks are dropped."""

    def target(offset: int) -> int:
        seen = set()
        while offset not in seen:
            seen.add(offset)
            node = nodes[offset]
            if node.statements or len(node.successors) != 1 or node.test or node.iterable or node.begins:
                break
            offset = node.successors[0]
        return offset

    for node in nodes.values():
        node.successors = tuple(map(target, node.successors))
        if node.test is not None and len(set(node.successors)) == 1:
            node.statements.append(ast.copy_location(ast.Expr(_truth(node.test)), node.test))
            node.test, node.successors = None, node.successors[:1]
    reached: set[int] = set()
    todo = [min(nodes)]
    while todo:
        offset = todo.pop()
        if offset not in reached:
            reached.add(offset)
            todo += nodes[offset].successors
    for offset in set(nodes) - reached:
        del nodes[offset]


def _truth(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _text(statements: list[ast.stmt], test: ast.expr) -> str | None:
    """Statements and a test in a form in which temporaries have no names; None if some come from before."""
    module = ast.Module([*statements, ast.Expr(test)], [])
    bound: set[str] = set()
    for statement in module.body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id[:2] in ("$t", "$s")]
        if any(isinstance(name.ctx, ast.Load) and name.id not in bound and name.id[1] == "t" for name in names):
            return None
        bound.update(name.id for name in names if isinstance(name.ctx, ast.Store))
    numbers: dict[str, str] = {}
    return _TEMPORARY.sub(lambda m: numbers.setdefault(m[0], f"#{len(numbers)}"), ast.dump(module))


def _fold_test(nodes: dict[int, Node]) -> bool:
    """The test at the end of a loop and the one before it become one."""
    tests = sorted(offset for offset, node in nodes.items() if node.test is not None)
    for last in tests:
        back = [each for each in nodes[last].successors if each <= last]
        for first in tests:
            if first >= last or not back or nodes[first].successors != nodes[last].successors:
                continue
            one, other = nodes[first], nodes[last]
            assert one.test is not None and other.test is not None
            for count in range(min(len(one.statements), len(other.statements)) + 1):
                texts = [
                    _text(node.statements[len(node.statements) - count :], node.test)
                    for node in (one, other)
                    if node.test is not None
                ]
                if texts[0] is None or texts[0] != texts[1]:
                    continue
                keep = len(one.statements) - count
                header = first
                if keep:
                    header = first + 1
                    nodes[header] = Node(header, one.statements[keep:], one.successors, one.test)
                    nodes[first] = Node(first, one.statements[:keep], (header,))
                other.statements = other.statements[: len(other.statements) - count]
                other.test, other.successors = None, (header,)
                return True
    return False


def _short_circuit(nodes: dict[int, Node], entry: int) -> bool:
    before = _predecessors(nodes)
    for node in nodes.values():
        if node.test is None:
            continue
        yes, no = node.successors
        for second, shared, operator in ((yes, no, ast.And()), (no, yes, ast.Or())):
            other = nodes[second]
            if other.test is None or other.statements or len(before[second]) > 1 or second == entry or other is node:
                continue
            test, (other_yes, other_no) = other.test, other.successors
            on = isinstance(operator, ast.And)
            if shared == (other_yes if on else other_no):
                test, other_yes, other_no = _truth(test), other_no, other_yes
            elif shared != (other_no if on else other_yes):
                continue
            first = node.test
            values = [*_operands(first, operator), *_operands(test, operator)]
            node.test = ast.copy_location(ast.BoolOp(operator, values), first)
            node.successors = (other_yes, other_no)
            del nodes[second]
            return True
    return False


def _operands(test: ast.expr, operator: ast.boolop) -> list[ast.expr]:
    same = isinstance(test, ast.BoolOp) and type(test.op) is type(operator)
    return test.values if same and isinstance(test, ast.BoolOp) else [test]


_LEAVES = ast.Return | ast.Raise | ast.Break | ast.Continue


def _raises(statements: list[ast.stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ast.Raise)


# ---- structure ------------------------------------------------------------------------------------------------------


@record
class _Loop:
    header: int
    follow: int | None
    around: _Loop | None


@record(frozen=False)
class _Graph:
    order: list[int]
    place: dict[int, int]
    before: dict[int, list[int]]
    dominator: dict[int, int]
    loops: dict[int, set[int]] = field(default_factory=dict)

    def dominates(self, one: int, other: int) -> bool:
        while self.place[other] > self.place[one]:
            other = self.dominator[other]
        return one == other


def _graph(nodes: dict[int, Node], entry: int) -> _Graph:
    order: list[int] = []
    seen = {entry}
    path = [(entry, iter(nodes[entry].successors[::-1]))]
    while path:
        offset, rest = path[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                path.append((successor, iter(nodes[successor].successors[::-1])))
                break
        else:
            order.append(offset)
            path.pop()
    order.reverse()
    place = {offset: index for index, offset in enumerate(order)}
    before = _predecessors(nodes)
    dominator = {entry: entry}
    changed = True
    while changed:  # Cooper, Harvey, Kennedy
        changed = False
        for offset in order[1:]:
            new: int | None = None
            for each in before[offset]:
                if each not in dominator:
                    continue
                new = each if new is None else _common(dominator, place, each, new)
            assert new is not None
            if dominator.get(offset) != new:
                dominator[offset], changed = new, True
    graph = _Graph(order, place, before, dominator)
    for offset in order:
        if nodes[offset].iterable is not None:
            graph.loops.setdefault(offset, {offset})  # also of a body that never ends a turn: `for x in y: return x`
        for header in nodes[offset].successors:
            if place[header] > place[offset]:
                continue
            if not graph.dominates(header, offset):
                raise Unknown("control flow enters a loop at two places")
            body = graph.loops.setdefault(header, {header})
            todo = [offset]
            while todo:
                each = todo.pop()
                if each not in body:
                    body.add(each)
                    todo += before[each]
    return graph


def _common(dominator: dict[int, int], place: dict[int, int], one: int, other: int) -> int:
    while one != other:
        if place[one] > place[other]:
            one = dominator[one]
        else:
            other = dominator[other]
    return one


class _Structure:
    def __init__(self, nodes: dict[int, Node], entry: int) -> None:
        self.nodes = nodes
        self.graph = _graph(nodes, entry)
        self.written: set[int] = set()
        self.left = 8 * len(nodes) + 64

    def sequence(self, at: int | None, stop: int | None, loop: _Loop | None, inside: bool = False) -> list[ast.stmt]:
        """Statements from a block until `stop`, where falling off the end leads to."""
        out: list[ast.stmt] = []
        while at is not None and (at != stop or inside):
            if loop and not inside:
                if at == loop.header:
                    return [*out, self.placed(ast.Continue(), at)]
                if at == loop.follow:
                    return [*out, self.placed(ast.Break(), at)]
                around = loop.around
                while around:
                    if at == around.header or (at == around.follow and self.nodes[at].successors):
                        raise Unknown("control flow leaves two loops at once")
                    around = around.around
            self.left -= 1
            if self.left < 0:
                raise Unknown("control flow is too entangled")
            if at in self.graph.loops and not inside:
                at = self.loop(at, stop, loop, out)
                continue
            inside = False
            node = self.nodes[at]
            again = at in self.written
            self.written.add(at)
            out += copy.deepcopy(node.statements) if again else node.statements
            if node.test is None:
                at = node.successors[0] if node.successors else None
                continue
            test = copy.deepcopy(node.test) if again else node.test
            meet = self.meeting(at, stop, loop)
            yes, no = (self.sequence(each, stop if meet is None else meet, loop) for each in node.successors)
            branch = ast.If(test, yes, no) if yes else ast.If(_truth(test), no, [])
            if meet is None and _raises(no):
                out.append(ast.copy_location(ast.If(_truth(test), no, []), test))
                out += yes
            elif meet is None and yes and no and isinstance(yes[-1], _LEAVES):
                out.append(ast.copy_location(ast.If(test, yes, []), test))
                out += no
            elif yes or no:
                out.append(ast.copy_location(branch, test))
            else:
                out.append(ast.copy_location(ast.Expr(_truth(test)), test))
            at = meet
        return out

    def placed(self, statement: ast.stmt, at: int) -> ast.stmt:
        node = self.nodes[at]
        where = node.test or node.iterable or next(iter(node.statements), None)
        return ast.copy_location(statement, where) if where else statement

    def meeting(self, at: int, stop: int | None, loop: _Loop | None) -> int | None:
        """Where the ways of a branch meet again, if all that do not leave go there."""
        graph = self.graph
        around = {stop, loop.header, loop.follow} if loop else {stop}
        found = [
            each
            for each in graph.order
            if graph.dominator[each] == at and each != at and each not in around and self.ways(each) > 1
        ]
        for meet in reversed(found):
            if stop is None or stop not in self.reach(list(self.nodes[at].successors), {meet, *around}):
                return meet
        return None

    def ways(self, offset: int) -> int:
        place = self.graph.place
        return len([each for each in self.graph.before[offset] if place[each] < place[offset]])

    def reach(self, starts: list[int], ends: set[int | None]) -> set[int]:
        """The blocks that can be reached; `ends` are, but not what is behind them."""
        seen: set[int] = set()
        todo = list(starts)
        while todo:
            offset = todo.pop()
            if offset not in seen:
                seen.add(offset)
                if offset not in ends:
                    todo += self.nodes[offset].successors
        return seen

    # ---- loops ------------------------------------------------------------------------------------------------------

    def loop(self, header: int, stop: int | None, around: _Loop | None, out: list[ast.stmt]) -> int | None:
        """Append the loop; where to go on behind it."""
        node, members = self.nodes[header], self.graph.loops[header]
        again = header in self.written
        exits = dict.fromkeys(
            each for member in sorted(members) for each in self.nodes[member].successors if each not in members
        )
        ends: set[int | None] = {stop, header}
        outer = around
        while outer:
            ends |= {outer.header, outer.follow}
            outer = outer.around
        reached = {each: self.reach([each], ends) for each in exits}
        counted = node.iterable is not None
        tested = (
            not counted and node.test is not None and not node.statements and len(set(node.successors) & members) == 1
        )
        if not counted and not tested:
            follow = self.best(reached)
            inner = _Loop(header, follow, around)
            test: ast.expr = ast.Constant(True)
            endless = ast.While(test, self.sequence(header, header, inner, inside=True), [])
            self.locate(endless)
            out.append(endless)
            return follow
        self.written.add(header)
        end = next(each for each in node.successors if each not in members) if tested else node.successors[1]
        others = [each for each in exits if each != end]
        follow = end
        if not any(end in reached[each] for each in others):
            shared = [
                each
                for each in self.graph.order
                if each in reached[end] and any(each in reached[other] for other in others)
            ]
            beyond = [each for each in others if around and each in (around.header, around.follow)]
            follow = next(iter([*shared, *beyond]), end)
        inner = _Loop(header, follow, around)
        body = next(each for each in node.successors if each in members) if tested else node.successors[0]
        statements = self.sequence(body, header, inner)
        otherwise = self.sequence(end, follow, around) if follow != end else []
        if tested:
            assert node.test is not None
            condition = copy.deepcopy(node.test) if again else node.test
            condition = condition if node.successors[0] == body else _truth(condition)
            loop: ast.stmt = ast.While(condition, statements, otherwise)
            ast.copy_location(loop, condition)
        else:
            assert node.iterable is not None and node.item is not None
            iterable = copy.deepcopy(node.iterable) if again else node.iterable
            loop = ast.copy_location(ast.For(copy.deepcopy(node.item), iterable, statements, otherwise), iterable)
        if isinstance(loop, ast.For | ast.While) and not loop.body:
            loop.body = [ast.copy_location(ast.Pass(), loop)]
        out.append(loop)
        return follow

    def best(self, reached: dict[int, set[int]]) -> int | None:
        """Where most ways out of an endless loop lead."""
        if not reached:
            return None

        def rank(offset: int) -> tuple[int, bool, int]:
            count = sum(offset in each for each in reached.values())
            return (-count, not self.nodes[offset].successors, self.graph.place[offset])

        return min(set().union(*reached.values()), key=rank)

    def locate(self, loop: ast.While) -> None:
        first = loop.body[0] if loop.body else loop
        ast.copy_location(loop.test, first)
        ast.copy_location(loop, first)
