"""Strings that are arguments, looked at character by character."""

import numpy as np

from tests.corpus import Case, program, raising

SMILE = "\U0001f600"


@program([("kitten", "sitting"), ("ab", ""), ("", ""), ("é" + SMILE, SMILE + "x")])
def edit_distance(a, b):
    if len(a) < len(b):
        a, b = b, a
    before = list(range(len(b) + 1))
    for i, one in enumerate(a):
        now = [i + 1]
        for j, other in enumerate(b):
            now.append(min(before[j + 1] + 1, now[j] + 1, before[j] + (one != other)))
        before = now
    return before[-1]


@program([("abcbdab", "bdcaba"), ("a", "")])
def common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(len(a)):
        for j in range(len(b)):
            equal = a[i] == b[j]
            table[i + 1, j + 1] = table[i, j] + 1 if equal else max(table[i, j + 1], table[i + 1, j])
    return table[len(a), len(b)]


@program([("abcba",), ("abca",), ("",)])
def palindromes(s):
    i, j = 0, len(s) - 1
    while i < j and s[i] == s[j]:
        i += 1
        j -= 1
    best = ""
    for k in range(len(s)):
        if s[k : k + 3] == s[k : k + 3][::-1] and len(s[k : k + 3]) > len(best):
            best = s[k : k + 3]
    return i >= j, s == s[::-1], best, not s


@program([("aaabbc",), ("",), ("hello " + SMILE,)])
def counted_characters(s):
    runs, count = [], 1
    for i in range(1, len(s) + 1):
        if i < len(s) and s[i] == s[i - 1]:
            count += 1
        else:
            if s:
                runs.append((s[i - 1], count))
            count = 1
    counts, seen, first = {}, set(), []
    for c in s:
        counts[c] = counts.get(c, 0) + 1
        if c not in seen:
            seen.add(c)
            first.append(c)
    vowels = sum(1 for c in s if c in "aeiou")
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return runs, counts, len(seen), first, vowels, ordered, sorted(s), len(set(s)), [c for c in s if c != "a"]


@program([("XIV",), ("MCMXCIV",), raising(KeyError, "XQ")])
def roman_numerals(s):
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for i in range(len(s)):
        if i + 1 < len(s) and values[s[i]] < values[s[i + 1]]:
            total -= values[s[i]]
        else:
            total += values[s[i]]
    return total


@program([("([])", 7), ("([)]", 97), ("((", 1000007), ("é" + SMILE, 97)])
def brackets_and_hashes(s, modulus):
    stack, fits = [], True
    for c in s:
        if c in "([":
            stack.append(c)
        elif (c == ")" or c == "]") and (not stack or (stack.pop() == "(") != (c == ")")):
            fits = False
            break
    value, falling, other = 0, 0, 0
    for i in range(len(s)):
        value = (value * 31 + ord(s[i])) % modulus
        falling += i > 0 and s[i] < s[i - 1]
        other += s[i] == "ab" or s[i] == 3 or "a" <= s[i] <= "m"
    return fits and not stack, value, falling, other


@program([("abc", 1), ("abc", -3), raising(IndexError, "abc", 3), raising(IndexError, "", 0)], message=True)
def character_at(s, k):
    return s[k], ord(s[k])


@program([("abc", 2.0, "ab"), ("xyz", 1.0, ""), ("a", 1.0, "c")], fell_back=None, opaque=None)
def strings_known_by_value(s, x, kind):
    numbers = {}
    for c in s:
        numbers[ord(c)] = 1
    mode = 2 * x if kind == "ab" else x
    return s[0] in numbers, ord(s[0]) in numbers, s.upper(), s, mode, kind in s, "".join(c + c for c in s)


@program(
    [(1.5, 2), (3, 2), raising(ValueError, 1.5, 7)],
    message=True,
    opaque=None,
)
def format_that_numbers_do_not_have(x, y):
    total = x + y
    try:
        text = f"{total}: {x:q}"
    except ValueError as error:
        text = str(error)
    if y > 5:
        return f"{total!r:>8}{y:x}{x:zz}"
    return total, text


# ---- lists of many strings -------------------------------------------------------------------------------------------


def _words(*others, count=40):
    found = ["abcdefgh"[: i * 5 % 9] + "zé" * (i % 3 == 0) for i in range(count)]
    found[: len(others)] = others
    return found


WORDS = (
    lambda: (_words(),),
    lambda: (_words("a\0b", "\0", SMILE, "\ud800", count=50),),
    lambda: ([""] * 33,),
)


@program(WORDS)
def characters_of_words(words):
    total, longest = 0, 0
    for place, word in enumerate(words):
        longest = max(longest, len(word))
        for c in word:
            if c in "aeiou" or c == SMILE:
                total += ord(c) * place
    return total, longest, len(words)


@program(WORDS)
def pairs_of_words(words):
    same, shared, begins = 0, 0, 0
    for i in range(len(words)):
        for j in range(i):
            if words[i] == words[j]:
                same += 1
            if words[j] == "abcde" or words[i] != "ab":
                shared += i
            if len(words[i]) > 2 and words[j] and words[i][1:] == words[j][-2:] and words[i][0] == "a":
                begins += 1
    return same, shared, begins


@program([lambda: (_words(), [float(i) for i in range(40)])])
def words_beside_numbers(words, weights):
    total = 0.0
    for word, weight in zip(words, weights, strict=False):
        for c in word:
            total += (ord(c) - 97) * weight
    return total, max(sum(1 for c in word if c == "z") for word in words)


@program([lambda: (_words(), 3), lambda: (_words(), -40), Case(lambda: (_words(), 40), raises=IndexError)],
         message=True)  # fmt: skip
def word_at(words, k):
    best = words[0]
    count = 0
    for word in words:
        for c in word:
            if words[k][:1] == c:
                count += 1
        if len(word) > len(best):
            best = word
    return count, best, words[k]


class _Loud(str):
    def __iter__(self):
        return iter("aaaa")


class _Speech:
    def __init__(self, words):
        self.words = words

    def vowels(self):
        return characters_of_words(self.words)[0]


@program([lambda: ([*_words(), _Loud("b")],), lambda: ([*_words(), ["c"]],), *WORDS,
          lambda: ([*_words(), b"ab"],)], fell_back=None, opaque=None)  # fmt: skip
def words_and_others(words):
    count = 0
    for word in words:
        for c in word:
            if c == "a":
                count += 1
    return count


@program([lambda: (_words(),)], fell_back=None, opaque=None, mutates=(0,))
def words_that_change(words):
    count = 0
    for i in range(len(words)):
        for c in words[i]:
            if c == "a":
                words[i - 1] = "aa"
                count += 1
    words.append("a")
    return count


@program([lambda: (_Speech(_words()),)])
def words_in_an_attribute(speech):
    return speech.vowels()


@program(WORDS, fell_back=None, opaque=None)
def words_as_keys(words):
    counts = {}
    for word in words:
        for c in word:
            counts[c] = counts.get(c, 0) + 1
        counts[word] = counts.get(word, 0) + 1
    return counts, [word.upper() for word in words][:2]
