"""What is done with a scalar that has different types on different paths: see `mixed_scalars`.

{m} is its name; {p}, {q} and {w} are scalars of the types it may have, {x} an array of rank 1, {r} one to store to, {t}
a type of NumPy's, {c} a condition, {h}, {i} and {u} new names.
"""

from __future__ import annotations


def separated(text: str) -> list[str]:
    """The forms of a text, with semicolons or lines between them."""
    return text.strip().replace("\n", " ; ").split(" ; ")


STEPS = separated("""
abs({m}) ; -{m} ; +{m} ; ~{m} ; not {m} ; round({m}) ; round({m}, 1) ; {m} + 1 ; {m} - 1 ; {m} * 2 ; {m} / 2
{m} // 2 ; {m} % 3 ; {m} ** 2 ; {m} + {q} ; {q} - {m} ; {m} * {q} ; {m} / {q} ; {m} // {q} ; {m} % {q} ; {m} & 3
{m} | 1 ; {m} ^ {q} ; {m} << 1 ; {m} >> 1 ; {m} * 1000 ; {m} + 1.5 ; {m} * 1j ; 2 * {m} + 1 ; {m} + {m} ; {m} * {m}
{m} - {m} ; 255 + {m} ; {m} + 2 ** 40 ; 0.5 ** {m} ; {m} + True ; 1 - {m} ; {m} if {c} else {q} ; {m} or {q}
{m} and {q} ; {q} if {m} else {m} ; max({m}, {q}) ; min({m}, {q}) ; max({m}, 1) ; min({m}, 1) ; max({q}, {m}, 0)
{m} if {m} else 300 ; {m} if {m} else -2 ; {m} if {m} is not None else {q} ; {m} if {m} == {m} else {q} ; int({m})
float({m}) ; complex({m}) ; bool({m}) ; np.bool_({m}) ; np.{t}({m}) ; np.float64({m}) ; np.uint8({m}) ; np.int64({m})
{m} == {q} ; {m} != {q} ; {m} < {q} ; {m} >= {q} ; {m} == 1 ; {m} > 0 ; 0 < {m} < 3 ; {m} is None ; {m} is not None
math.floor({m}) ; math.ceil({m}) ; math.trunc({m}) ; math.sqrt({m}) ; math.isnan({m}) ; math.copysign(1, {m})
math.fabs({m}) ; math.isfinite({m}) ; math.log({m}) ; math.exp({m}) ; math.gcd({m}, 6) ; math.fmod({m}, 2)
math.hypot({m}, 1) ; math.pow({m}, 2) ; divmod({m}, 2)[0] ; divmod({m}, {q})[1] ; divmod({q}, {m}) ; pow({m}, 2)
pow({m}, 2, 7) ; pow(2, {m} % 5) ; 2 ** ({m} % 5) ; np.abs({m}) ; np.sqrt({m}) ; np.add({m}, {q})
np.multiply({m}, 2) ; np.negative({m}) ; np.maximum({m}, {q}) ; np.floor({m}) ; np.isnan({m}) ; np.sign({m})
np.square({m}) ; np.logical_not({m}) ; np.power({m}, 2) ; np.where({c}, {m}, {q}) ; np.conj({m}) ; np.minimum({m}, 3)
np.equal({m}, {q}) ; np.bitwise_and({m}, 3) ; np.add({m}, 1, dtype=np.float32) ; np.exp({m}) ; np.real({m})
sum([{m}, {m}]) ; sum([{m}, {q}]) ; sum([{m}]) ; max([{m}, {q}]) ; min({m}, {m}) ; {m} * {x}[0] ; {x}[-1] - {m}
{m} < {x}[0] ; np.int16(3) * {m} ; {m} + np.float16(0.5) ; {m} * np.float32(2) ; np.uint64(1) + {m}
{m} + np.complex64(1j) ; np.int8(100) + {m}
""")
"""Expressions whose value is a scalar again, mostly."""

USES = separated("""
{m} ; {m}, {m} ; {m}, float({m}) ; {m}, float({m}), {m} ; {m}, int({m}), {m} ; [{m}] ; [{m}, {q}]
({m}, [{m}, ({m}, 1)]) ; [[{m}], {m}] ; {{'a': {m}, 'b': [{m}]}} ; {{{m}: 1}} ; {{{m}: 1, {q}: 2}}
{{1: 'one', 0: 'none'}}.get({m}) ; [{m}] * 2 ; ({m},) * 2 ; {m}, {m} + 1 ; str({m}) ; f'{{{m}}}' ; f'{{{m}!r:>6}}'
repr({m}) ; '%s' % ({m},) ; str(type({m})) ; type({m}).__name__ ; type({m}) is int ; len({x}) + {m}
type({m}) is type({q}) ; type({m}) == float ; isinstance({m}, int) ; isinstance({m}, float)
isinstance({m}, (bool, np.bool_)) ; isinstance({m}, np.integer) ; isinstance({m}, np.floating)
isinstance({m}, (int, float)) ; isinstance({m}, np.generic) ; isinstance({m}, complex)
1 if isinstance({m}, float) else {m} ; {m} + 1 if isinstance({m}, int) else {q} ; {m} is None
'none' if {m} is None else {m} ; [{m} is None, {m}] ; 'yes' if {m} else 'no' ; {m} == {q} ; {m} != None ; {m} == {m}
{m} in [0, 1, None] ; {m} in ({p}, {q}) ; {m} in {x} ; {m} in {{0: 1, 1: 2}} ; {m} in range(3) ; [0, 1, 2].index({m})
[{q}, {m}].count({m}) ; hash({m}) == hash({q}) if {m} == {m} else None ; {x}[{m}] ; {x}[{m}:]
{x}[:{m}] ; {x}[::{m}] ; {x}[{m}:{m}]
{x}[[{m}]] ; {x}[{m}, None] ; [1, 2, 3][{m}] ; [1, 2, 3][{m}:] ; (1, 2, 3)[:{m}] ; 'abc'[{m}] ; {x}[min({m}, 1)]
{x}[-{m}:] ; {x}[{m} % 2] ; {x}[{m} > 0] ; list(range({m}))[:3] ; range(9)[{m}] ; list(range(5))[{m}] ; np.zeros({m})
np.ones({m}, dtype=np.int8) ; np.zeros(({m}, 2)).shape ; np.arange({m}) ; np.arange({m}, 4) ; np.empty({m}).shape
[0] * {m} ; 'ab' * {m} ; {x} + {m} ; {m} - {x} ; {x} * {m} ; {x} / {m} ; {x} // {m} ; {x} % {m} ; {x} ** {m}
{x} & {m} ; {x} << {m} ; {x} == {m} ; {x} < {m} ; {m} >= {x} ; {x} != {m} ; np.where({x} > 0, {m}, {x})
np.where({x} > 0, {x}, {m}) ; np.where({x} > 0, {m}, {q}) ; np.where({m}, {x}, 1) ; np.where({m}, {p}, {q})
np.array([{m}, 1]) ; np.array({m}) ; np.array([{m}, {m}]) ; np.array([{m}, {q}]) ; np.asarray({m}) ; np.full(2, {m})
np.full(2, {m}, np.uint8) ; np.full_like({x}, {m}) ; np.array([{m}], dtype=np.float32)
np.piecewise({x}, [{x} > 0], [{m}, 0]) ; np.pad({x}, 1, constant_values={m}) ; np.select([{x} > 1], [{m}], {x})
np.array([{m}], dtype=np.int8) ; np.append({x}, {m}) ; np.clip({x}, {m}, 3) ; np.clip({x}, None, {m})
np.maximum({x}, {m}) ; np.minimum({m}, {x}) ; np.add({x}, {m}) ; np.multiply({m}, {x}) ; np.power({x}, {m})
np.sum({x} == {m}) ; np.roll({x}, {m}) ; np.repeat({x}, {m}) ; np.linspace(0, {m}, 3) ; np.isclose({x}, {m})
np.concatenate([{x}, [{m}]]) ; np.searchsorted(np.sort({x}), {m}) ; np.sum({x}, initial={m}) ; np.max({x}, initial={m})
np.stack([{m}, {q}]) ; np.dot({x}, {m}) ; np.round({m}, 1) ; np.fmax({m}, {q}) ; np.ldexp(1.5, {m})
np.copysign({x}, {m}) ; np.result_type({x}, {m}).name ; np.isscalar({m}) ; np.size({m}) ; np.ndim({m})
sorted([{m}, {q}, 1]) ; max([{m}, {q}, {p}]) ; min({m}, {q}, {w}) ; sum([{m}, {m}]) ; sum([{m}] * 3)
sum([{q}, {m}], {p}) ; sum(({m}, 1000)) ; any([{m}, 0]) ; all([{m}, {q}]) ; list(enumerate([{m}], 1))
list(zip([{m}], [{q}])) ; list(reversed([{m}, {q}])) ; tuple([{m}, {q}]) ; [v + 1 for v in ({m}, {q})]
[{m} for _ in range(2)] ; [v for v in [{m}, {q}] if v] ; [{m} + v for v in {x}] ; list(map(abs, [{m}, {q}]))
divmod({m}, 3) ; divmod({q}, {m}) ; pow({m}, 2), {m} ; round({m}, 2), {m} ; (round({m}), {m}) ; abs({m}), {m}
(-{m}, {m}) ; round({m}) == {m} ; {m}.real ; {m}.imag ; {m}.dtype.name ; {m}.item() ; {m}.shape
{m}.astype(np.float32) ; {m}.conjugate() ; {m}.ndim ; {m}.sum() ; {m}.is_integer() ; {m}.bit_length()
bool({m}), int({m}) ; complex({m}), {m} ; np.uint8({m}) ; np.uint64({m}) ; np.int8({m}) ; np.float16({m})
np.{t}({m}) ; np.{t}({m}), {m} ; np.bool_({m}) ; {m} + {x}[0], {m} ; {m} * 1000 ; {m} * 1000, {m}
{m} + {q}, {m} - {q} ; {m} < {q}, {m} ; {m} if {m} else {q} ; {m} and {q}, {m} or {q} ; not {m}, {m}
math.floor({m}), {m} ; math.sqrt({m}), {m} ; math.isnan({m}) ; math.isinf({m}), {m} ; int({m}) + 1, {m}
(lambda v: (v, v))({m}) ; float({m}) + {m} ; sum([{m}], {q}) ; sum({x}, {m}) ; sum({x}, start={m})
sum([{m}] * k, {q}) ; sum(v for v in {x} if v > {m}) ; [5 // {m} for v in {x} if {c}] ; math.prod([{m}, {q}])
math.isclose({m}, 2, rel_tol={q}) ; math.isclose({m}, {q}) ; f'{{{m}:.2f}}' ; f'{{{m}:d}}' ; f'{{{m}!r:>9}}'
'%.2f' % {m} ; np.arange({m}, {m} + 3) ; np.arange({m}, 3, 0.5) ; np.array([{x}, [{m}] * len({x})]) ; np.tri({m})
{x}.sum(keepdims={m}) ; sorted({x}, reverse={m}) ; operator.mul({m}, {q}) ; list(itertools.accumulate([{m}, {q}]))
np.select([{x} > 1], [{m}], {q}) ; [{m} < v for v in {x}] ; {x}.tolist() + [{m}] ; functools.reduce(max, [{m}, {q}])
""")
"""Expressions whose value is returned beside others."""

EFFECTS = """
{r}[0] = {m}

{r}[:] = {m}

{r}[-1] += {m}

{r}[{i} := 0] = {m}

{r}[1:] = {m}

{r}[0], {r}[-1] = {m}, {q}

for {i} in range(len({r})):
    {r}[{i}] = {m}

for {i} in range(len({r})):
    {r}[{i}] += {m}

for {i} in range(len({r})):
    {r}[{i}] = {m} if {i} else {q}

{r} += {m}

{r} *= {m}

{r} -= {m}

{r} /= {m}

{r} **= {m}

{r}[{m}] = 1

{r}[{m}] += {m}

{r}[:{m}] = 7

{r}[{m}:] = 5

{r}[{m}:] += {q}

{r}[::{m}] = 2

{r}[[{m}]] = 3

{r}.fill({m})

{r}.flat[0] = {m}

{r}.flat[:2] = {m}

{r}[...] = {m} if {c} else 300

{r}[0] = {m} if {m} else 300

{r}[0] = {m} + 1

{r}[0] = {m} * {q}

{r}[0] = -{m}

{r}[{r} > 0] = {m}

{r}[:] = np.where({r} > 0, {m}, {r})

{r}[:] = [{m}] * len({r})

np.add({r}, {m}, out={r}, casting='unsafe')

np.multiply({m}, 2, out={r}[0:1], casting='unsafe')

np.copyto({r}, {m}, casting='unsafe')

np.put_along_axis({r}, np.array([0]), {m}, 0)

np.fill_diagonal({r}.reshape(1, -1), {m})

np.put({r}, [0], {m})

np.copyto({r}, {m})

{u} = []
for {i} in range(2):
    {u}.append({m})

{u} = [{q}]
{u}.append({m})
{u}[0] = {m}

{u} = [1, 2, 3]
{u}[{m}] = 9

{u} = [1, 2, 3]
{u}.insert({m}, 9)

{u} = [1, 2, 3]
{u}.pop({m})

{u} = [1, 2, 3]
del {u}[{m}]

{u} = {{}}
{u}[{m}] = 1
{u}[{q}] = 2

{u} = {{'a': {m}}}
{u}['a'] += 1

{u} = {{}}
for {i} in range(2):
    {u}[{m}] = {u}.get({m}, 0) + 1

{u} = 0
for {i} in range({m}):
    {u} += {i}
    if {i} > 2:
        break

{u} = []
for {i} in range({m}, {m} + 2):
    {u}.append({i})

{u} = {m}
for {i} in range(3):
    {u} = {u} * 2

{u} = {m}
for {i} in range(3):
    {u} += {q}

{u} = 0
for v in {x}:
    if v == {m}:
        {u} += 1

{u} = 0
for v in {x}:
    {u} = {u} + {m} * v

if {m} is None:
    {u} = 'none'
elif {m} > 1:
    {u} = {m}
else:
    {u} = {q}

if {m}:
    {u} = {m}
else:
    {u} = {q}

if isinstance({m}, int):
    {u} = {m} * 100
else:
    {u} = {m}

if isinstance({m}, (float, np.floating)):
    {u} = float({m})
elif isinstance({m}, (bool, np.bool_)):
    {u} = bool({m})
else:
    {u} = {m}

if {m} is not None:
    {u} = {m} * 100
else:
    {u} = {m}

if {m} == {q}:
    {u} = {m}, 'same'
else:
    {u} = 'other', {m}

def {h}(v):
    if v is None:
        return 0
    return v + 1
{u} = {h}({m})

def {h}(v, w={q}):
    return v, w
{u} = {h}({m}), {h}({q}, {m})

def {h}():
    return {m}
{u} = {h}()

def {h}():
    yield {m}
    yield {q}
{u} = list({h}())

{u} = [{m}, {q}]
{u}[0], {u}[1] = {u}[1], {u}[0]

{u}, *{h} = {m}, {q}, {m}

{u} = np.zeros(3)
{u}[0] = {m}
{u}[1:] = {m}

{u} = np.zeros(2, np.uint8)
{u}[0] = {m}

{u} = np.zeros(2, np.int8)
{u} += {m}

{u} = np.empty(2, np.{t})
{u}[:] = {m}

{u} = np.zeros(2, np.complex64)
{u}[1] = {m}

if k > 2:
    raise ValueError({m})

if k > 2:
    raise KeyError('%r' % ({m},))

if k > 2:
    raise KeyError(f'{{{m}}}')

assert k < 3, {m}

{u} = {m}
while {u} and k:
    {u} = {q}
    break
else:
    {u} = {u}, 0

match {m}:
    case 0:
        {u} = 'zero'
    case None:
        {u} = 'none'
    case int() | float():
        {u} = {m}
    case _:
        {u} = 'else'

try:
    {u} = {m} + 1
except TypeError:
    {u} = {m}

try:
    {u} = [1, 2, 3][{m}]
except (IndexError, TypeError) as error:
    {u} = str(error)

try:
    {r}[0] = {m}
    {u} = 'stored'
except (OverflowError, TypeError, ValueError) as error:
    {u} = str(error)

try:
    {u} = f'{{{m}:d}}'
    {u} = 'formatted'
except (TypeError, ValueError) as error:
    {u} = str(error)

try:
    {u} = np.uint8({m})
except (OverflowError, TypeError) as error:
    {u} = str(error)

try:
    {u} = {q} // {m}
except ZeroDivisionError:
    {u} = {m}
""".strip().split("\n\n")
"""Statements; {u} is returned, if it is used."""
