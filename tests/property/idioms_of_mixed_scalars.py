"""How a name comes to hold scalars of different types: see `mixed_scalars`.

{m} is the name; {p}, {q} and {w} are scalars of the types it may have, {x} an array of rank 1 that has one of them, {c}
and {d} conditions, {h}, {i} and {u} new names. Numbers of iterations are bounded by `k` or by
an explicit break, so that a program ends whatever the scalar is.
"""

from __future__ import annotations

ORIGINS = """
{m} = {p} if {c} else {q}

{m} = {p} if {c} else {q} if {d} else {w}

if {c}:
    {m} = {p}
else:
    {m} = {q}

if {c}:
    {m} = {p}
elif {d}:
    {m} = {q}
else:
    {m} = {w}

{m} = {p}
if {c}:
    {m} = {q}

{m} = {p}
if {c}:
    {m} = {q}
    if {d}:
        {m} = {w}

{m} = {p}
if {c}:
    {m} = {q}
if {d}:
    {m} = {w}

{m} = {p} or {q}

{m} = {p} and {q}

{m} = {p} or {q} or {w}

{m} = ({c}) and {p}

{m} = ({c}) and {p} or {q}

{m} = max({p}, {q})

{m} = min({p}, {q})

{m} = max({p}, {q}, {w})

{m} = min([{p}, {q}, {w}])

{m} = min(max({p}, {q}), {w})

{m} = max(({p}, {q}), key=lambda v: -v)

{m} = sum([{p}, {q}])

{m} = sum(({p}, {q}), {w})

{m} = sum({x}) if {c} else {p}

{m} = sum(v for v in {x} if v > 1)

{m} = max((v for v in {x} if v > 1), default={p})

{m} = {p}
for {i} in range(len({x})):
    if {x}[{i}] > 1:
        {m} = {x}[{i}]

{m} = 0
for v in {x}:
    if v > {m}:
        {m} = v

{m} = None
for v in {x}:
    if {m} is None or v < {m}:
        {m} = v

{m} = None
for {i} in range(k):
    if {m} is None:
        {m} = {p}
    elif {d}:
        {m} = {q}

{m} = {p}
for {i} in range(k):
    {m} = {q}

{m} = {p}
for {i} in range(k):
    {m} = {m} + {q}

{m} = {p}
for v in {x}:
    {m} += v

{m} = {p}
for v in {x}:
    if v > 1:
        {m} = {m} + 1

{m} = {p}
for v in {x}:
    {m} = max({m}, v)

{m} = {p}
for v in {x}:
    {m} = min(v, {m}, {q})

{m} = {p}
{i} = 0
while {i} < k:
    {i} += 1
    if {i} == 2:
        {m} = {q}
        break

{i} = 0
while True:
    {i} += 1
    if {i} > k:
        {m} = {p}
        break
    if {i} > 2:
        {m} = {q}
        break

for {m} in ({p}, {q}, {w}):
    if {c}:
        break

for {i} in range(k):
    if {i} == 2:
        {m} = {p}
        break
else:
    {m} = {q}

{m} = {p}
for {i} in range(4):
    if {i} < k:
        continue
    {m} = {q} if {i} == 2 else {m}

{m}, {u} = {p}, {q}
for {i} in range(k):
    {m}, {u} = {u}, {m}

try:
    {m} = {x}[k]
except IndexError:
    {m} = {p}

{m} = {p}
try:
    {m} = {q}
    {u} = 1 // (k - 1)
    {m} = {w}
except ZeroDivisionError:
    pass

try:
    {m} = {p} if 3 // (k - 2) > 1 else {q}
except ZeroDivisionError:
    {m} = {w}
finally:
    {u} = k

def {h}(v={p}):
    return v
{m} = {h}() if {c} else {h}({q})

def {h}(v, other=None):
    return v if other is None else other
{m} = {h}({p}, {q}) if {c} else {h}({w})

def {h}(n):
    if n > 2:
        return {p}
    if n == 1:
        return {q}
    return {w}
{m} = {h}(k)

def {h}(n):
    for v in {x}:
        if n > 1:
            return v
        n += 1
    return {p}
{m} = {h}(k - 1)

def {h}(n):
    if n > 1:
        return {p}
{m} = {h}(k)

def {h}(v):
    def {u}(n):
        return v if n else {q}
    return {u}(k - 1) if {c} else {w}
{m} = {h}({p})

def {h}(n):
    return {p} if n == 0 else {h}(n - 1) if n > 2 else {q}
{m} = {h}(k)

def {h}(n):
    if n == 0:
        return {p}
    v = {h}(n - 1)
    return v if n > 1 else {q}
{m} = {h}(k)

{m} = {p}
def {h}(v):
    nonlocal {m}
    if {c}:
        {m} = v
{h}({q})

{h} = lambda v: v if {c} else {q}
{m} = {h}({p})

{m} = ({p}, {q})[k % 2]

{m} = [{p}, {q}, {w}][k % 3]

{m} = {{0: {p}, 1: {q}}}.get(k, {w})

{m} = {{'a': {p}, 'b': {q}}}['a' if {c} else 'b']

{m} = next((v for v in {x} if v > k), {p})

{m}, {u} = ({p}, {q}) if {c} else ({q}, {p})

{u} = [{p}, {q}]
{m} = {u}[0] if {c} else {u}[-1]

{u} = []
for v in {x}:
    if v > 1:
        {u}.append(v)
{m} = {u}[0] if {u} else {p}

{u} = [{p}]
if {c}:
    {u}.append({q})
{m} = {u}[-1]

match k:
    case 0:
        {m} = {p}
    case 1 | 2:
        {m} = {q}
    case _:
        {m} = {w}

if ({m} := {p}) and {c}:
    {m} = {q}

{m} = functools.reduce(max, [{p}, {q}, {w}])

{m} = {x}.max() if {c} else {p}

{m} = {x}.sum() if {c} else {p}

{m} = {p}
for {i} in range(k):
    for v in {x}:
        if v > {i}:
            {m} = v
            break
    else:
        {m} = {q}

{m} = sum([v for v in {x} if v > k], {p}) if {c} else {q}

{m} = sum((v * {q} for v in range(k)), {p})

{m} = sum(v * {p} for v in range(k))

{u} = [{q} for v in {x} if {c}]
{m} = {u}[0] if {u} else {p}

def {h}(n, other=None):
    return sum(7 // n for _ in range(2) if other is not None)
{m} = {h}(k, {p}) if {c} else {h}(0)

{m} = math.prod([{p}, {q}])

{m} = list(itertools.accumulate([{p}, {q}], max))[-1]

{m} = operator.add({p}, {q}) if {c} else {w}
""".strip().split("\n\n")
