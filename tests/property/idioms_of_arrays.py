"""Idioms of arrays: changes in place through views and indices, `out=`, types that meet: see `random_idioms`."""

from __future__ import annotations

IN_PLACE = """
{0} = {a}[1:]
{1} = {0}[::-1]
{1} += {0}

{0} = {a}[::-1][1:]
{0} -= {a}[:-1]

{0} = {a}.T
{0} += {0}[::-1]

{0} = {a}.reshape(-1)
{0}[1:] = {0}[:-1]

{0} = {a}.ravel()
{1} = {0}.reshape({a}.shape)
{1} *= 2

{0} = {a}[:]
{1} = {0}[:]
{1}[0] = {0}[-1]

{a}[1:][::-1][:1] = 7

{a}[::2][-1] += 1

{a}[1:] += {a}[:-1]

{a}[:-1] -= {a}[1:]

{a}[...] = {a}[::-1]

{a}[[0, 0, -1]] += 1

{a}[[0, 0]] = [[1], [2]] if {a}.ndim > 1 else [1, 2]

{a}[[-1, 0]] = {a}[[0, -1]]

{v}[[0, 0, -1]] = [1, 2, 3]

{v}[np.zeros(3, int)] += np.array([1, 2, 3], {v}.dtype)

np.add.at({v}, [0, 0, -1], [1, 2, 3])

np.add.at({a}, np.zeros(k, int), 1)

np.maximum.at({v}, [0, -1, 0], [1, 2, 3])

{0} = np.bincount(abs({v}.astype(int)) % 4, minlength=5)

{0} = np.zeros(4)
np.add.at({0}, abs({v}.astype(int)) % 4, {v} * 0 + 1)

{0} = np.zeros(4)
{0}[abs({v}.astype(int)) % 4] += 1

{v}[np.argsort({v}, kind='stable')] = np.arange(len({v}))

{v}[{v} > 0] = {v}[{v} > 0][::-1]

{m}[{m} > 1] = 0

{m}[:, [0, 0]] += 1

{m}[[0, -1], [0, 0]] = [5, 6]

{m}[np.arange({m}.shape[0]), 0] -= 1

{m}[np.ix_([0, -1], [0])] *= 2

{m}[:, 0], {m}[0] = 1, 2

{m}[0], {m}[-1] = {m}[-1].copy(), {m}[0].copy()

{m}[:, ::-1][0] = {m}[0]

{0} = {m}[0]
{1} = {m}[:, 0]
{0} += 1
{1} += {0}[0]

{0} = np.diagonal({m}).copy()
np.fill_diagonal({m}, 0)

{m}[np.tril_indices({m}.shape[0], -1, {m}.shape[1])] = 0

{m}.flat[1::2] = 0

{m}.T[0][::-1] -= 1

{a}.sort(axis=0)

{a}[::-1].sort(axis=0)

{a}[{a} == {a}.max()] = 0

np.putmask({a}, {a} > 0, {a}[::-1])

np.copyto({a}[1:], {a}[:-1] + 0)

np.add({a}[1:], 1, out={a}[:-1])

np.add({a}, {a}[::-1], out={a}, where={a} > 0)

np.subtract({a}, 1, out={a}[::-1])

{0} = np.zeros({a}.shape)
np.multiply({a}, 2, out={0}, where={a} != 0)

{0} = np.divide({a}, 2, out=np.full({a}.shape, -1.0), where={a} > 0)

{0} = np.sum({a}, where={a} > 0, initial=1)

{0} = np.max({a}, axis=0, initial=-9, where={a} < 2)

{0} = np.empty({a}.shape[1:], {a}.dtype)
np.max({a}, axis=0, out={0})

{0} = np.zeros({a}.shape[:1])
np.max({a}, axis=tuple(range(1, {a}.ndim)), out={0})

{0} = np.clip({a}, 0, 2, out={a})
{0}[0] = 9

{0} = np.cumsum({a} % 2, axis=0, out={a}) if {a}.ndim else {a}
{0} += 1

{0} = np.negative({a}, out={a}[::-1])

{a} += {a}
{a} -= {b}.ravel()[0]

{0} = {a}
{0} = {0} + 1
{a}[0] = 5

{0} = {1} = {a}[1:]
{0} += 1
{1} = {1} - 1

{0}, {1} = {a}[:1], {a}[-1:]
{0}[...], {1}[...] = {1}, {0}

{0} = {a}.view()
{0}[-1] = {a}[0]
{0} = {0}.copy()
{0}[0] = 8

{0} = np.concatenate([{a}, {a}[:0]])
{0}[0] = 3

{a}[-1:0:-1] = {a}[1:]

{a}[-2::-1] += 1

{0} = {a}[5:2:-1]
{1} = {a}[-1:-9:-2]

{0} = np.roll({a}, k, axis=0)
{a}[...] = {0}

{0} = np.lib.stride_tricks.sliding_window_view({v}, 2)
{1} = {0}.max(axis=-1)

{0} = np.where({a} > 0)
{a}[{0}] = -1

{0} = np.nonzero({v} > 0)[0]
{v}[{0}[:1]] = 0

{0} = np.take({a}, [0, -1, 0], axis=0)
{0}[0] += 1

{0} = np.delete({a}, 0, axis=0)
{1} = np.insert({0}, 0, 7, axis=0)
""".strip().split("\n\n")

TYPES = """
{0} = np.array({n})
{0} += 1
{1} = {0} + 1

{0} = np.array(k)
{0}[...] = 3
{1} = {0}[()]

{0} = np.asarray({x})
{1} = {0}[..., None]

{0} = np.zeros(())
{0}[()] += {n}
{1} = {0}.item()

{0} = {a}[0, ...] + np.zeros((), 'f4')

{0} = {z} + 1
{1} = {z}[...]
{2} = {z}[()]

{z}[...] = {z} + 1

{0} = {a} + {z}
{1} = {z}.reshape(1)

{0} = {a}.astype('f2') + np.float16(0.5)

{0} = {a}.astype('f2') + {a}.astype('f4')

{0} = {a}.astype('i1') + {a}.astype('u1')

{0} = (abs({a}) % 5).astype('u1') - 3 * (k > 9)

{0} = np.uint8(250) + np.arange(4, dtype='u1')

{0} = np.arange(3, dtype='u8') + np.arange(3)

{0} = np.arange(3, dtype='u8') - np.uint64(1)

{0} = np.arange(3, dtype='u4') * np.int8(-1)

{0} = -np.arange(3, dtype='u2')

{0} = np.arange(3, dtype='u1') >> np.int8(1)

{0} = ~{a}.astype('u1')

{0} = {a} * 1j
{1} = {0}.real
{1} = {0}.imag + 1

{0} = {a} + 0j
{0}.real[...] = 1
{0}.imag = 2

{0} = ({a} * (1 + 2j)).conj()
{1} = {0} == {a}

{0} = np.array([1 + 2j, {n}])
{1} = abs({0}.real)

{0} = {a}.astype(np.complex64) + np.float64(1)

{0} = np.result_type({a}, np.float32)
{1} = np.zeros(2, {0})

{0} = {a}.astype(bool)
{0} |= {0}[::-1]
{1} = {0} + {0}

{0} = np.arange(3, dtype=np.float32) * 2.5
{1} = {0} + np.arange(3)

{0} = np.float32(k) + 0.5
{1} = np.float32(k) + np.float64(0.5)

{0} = np.int32(k) + 1
{1} = np.int32(k) / 2

{0} = np.int8(100) + np.array([100], 'i1')

{0} = {a}.view('u1')
{1} = {0}.shape

{0} = {a}.dtype.kind
{1} = 1 if {0} == 'f' else 2

{0} = np.finfo(np.float32).eps * 2
{1} = np.iinfo({a}.dtype).max if {a}.dtype.kind in 'iu' else 0

{0} = np.full(3, {n})
{0}[1] = 2.5

{0} = np.full((2, 2), {n}, dtype='f4')
{0}[0] += {n}

{0} = np.array([{n}, k])
{1} = np.array([[{n}], [k]], dtype=float)

{0} = {a} == {a}
{1} = ({a} != {a}).any() or ({a} == {b}[0]).all()
""".strip().split("\n\n")

RECORDS = """
{0} = np.zeros(len({v}), dtype=[('p', 'f8'), ('q', 'i4')])
for i in range(len({v})):
    {0}['p'][i] = i * 0.5
    {0}[i]['q'] = i
{1} = {0}['p'].sum() + {0}[1:]['q'].sum()

{0} = np.zeros(k + 1, dtype=[('p', 'f8'), ('q', 'f4', (2,))])
{0}['q'] = {n}
{1} = {0}.copy()
for row in {1}:
    row['p'] = row['q'][1] + 1
{2} = {0}['p'].sum() - {1}['p'].sum()

{0} = np.rec.fromarrays([np.arange(4.0), np.arange(4)], names='p,q')
{1} = {0}[{0}.q > k]
{1}.p[:] = 7
{2} = {0}.p.sum() + {1}['p'].sum() + len({1})

{0} = np.ones(5, dtype=[('p', 'f8'), ('q', 'i4')])
{1} = {0}[['q', 'p']]
{1}['p'][1:] += {0}['p'][:-1]
{0}[{0}['p'] > 1]['p'] = 100
{2} = {0}['p'].sum(), {0}[k % 5]['p']

{0} = np.arange(6.0).view([('p', 'f8'), ('q', 'f8')])
{1} = {0}[::-1]
{0}[0] = (k, 2)
{0}[1] = {0}[0]
{2} = [u['p'] for u in {1}]

{0} = np.ones((2, 3), dtype=[('p', 'i8'), ('q', 'f8')])
{1} = np.concatenate([{0}, {0}], axis=k % 2)
{1}['p'] *= 3
{2} = {1}['p'].sum(axis=0), {0}['p'].sum(), {1}.shape

{0} = {{k, 1}}
{0} |= {{2, k + 1}}
{1} = [3]
{1}.append({{k}})
{2} = len({0}), {1}
""".strip().split("\n\n")
