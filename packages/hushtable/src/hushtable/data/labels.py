"""Texts as labels: spelling differences without meaning, and labels that may be the same.

`fold` removes invisible characters, and is applied wherever texts are compared: names of columns,
categories, identifiers. `key` also removes case, accents and look-alike letters; a person is asked
about labels with the same key, which are never merged automatically. Tested by
``tests/test_labels.py``.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.columns import texts_column
from hushtable.language import N_
from hushtable.words.refusals import refused

#: Version of the rules of `fold`. A plan notes it: 0 is for plans without a note, whose texts are
#: compared as they are. To change the rules, raise the version, and keep the rules of earlier
#: versions.
LABELS_VERSION = 1

#: White space of Unicode, and what separates fields and records in ASCII.
BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
#: Marks without a width: spaces and joiners, marks of direction, byte order marks.
MARKS = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
#: Variation selectors: whether a character is drawn as text or as a picture.
SELECTORS = "\ufe0e\ufe0f"
_OUTER = BLANKS + MARKS
_NO_SELECTORS = dict.fromkeys(map(ord, SELECTORS))
_ASCII_BLANKS = "".join(sign for sign in BLANKS if sign.isascii())
#: Texts that need no folding, though not all of them: letters that are one character in form NFC,
#: of Latin, Cyrillic, Japanese, Chinese and Korean, without white space at the ends.
_PLAIN = (
    "!-~\u00a1-\u02af\u0400-\u0482\u048a-\u04ff\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
)
_FOLDED = f"^(?:[{_PLAIN}](?:[ {_PLAIN}]*[{_PLAIN}])?)?$"
#: Small letters that look like Latin ones, or whose capitals do; and letters with a stroke, which
#: have no accent by Unicode. The Greek mu is not included: micrograms are not milligrams.
_LOOK_ALIKE = str.maketrans("авекмнорстхуіѕјαβεζηικορτυχıłøđ", "abekmhopctxyisjabezhikoptyxilod")
#: Number of consecutive letters from which a label is a word.
_WORD = re.compile(r"[^\W\d_]{3,}")


def fold(text: str) -> str:
    """Return a text in Unicode form NFC, without invisible characters around it.

    These are white space and zero-width marks at both ends, and variation selectors anywhere.
    Folding it again changes nothing.
    """
    if text.isascii():
        return text.strip()
    return unicodedata.normalize("NFC", text.translate(_NO_SELECTORS)).strip(_OUTER)


def fold_texts(column: pa.Array) -> pa.Array:
    """Return a column of texts, each as `fold` returns it; the same object if none changes."""
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        trimmed = pc.ascii_trim(column, characters=_ASCII_BLANKS)
        return column if trimmed.equals(column) else trimmed
    if pc.all(pc.match_substring_regex(column, _FOLDED)).as_py() is not False:
        return column
    encoded = column.dictionary_encode()
    different = encoded.dictionary.to_pylist()
    # Not pc.utf8_normalize, which in Arrow 18 decomposes where it should compose.
    folded = [fold(text) for text in different]
    return column if folded == different else texts_column(folded).take(encoded.indices)


def fold_names(names: Sequence[str], source: str = "the data") -> tuple[str, ...]:
    """Return names of columns, folded; raises `DataError` if two become equal."""
    folded = tuple(map(fold, names))
    if len(set(folded)) < len(folded):
        known: dict[str, str] = {}
        for name, new in zip(names, folded, strict=True):
            if known.get(new) == name:
                raise refused("listed_twice", source=source, name=name)
            if new in known:
                raise refused(
                    "same_names", source=source, one=ascii(known[new]), other=ascii(name), name=new
                )
            known[new] = name
    return folded


# --- labels that may be one -----------------------------------------------------------------------


def key(text: str) -> str:
    """Return a label without case, accents, look-alike letters and double blanks."""
    folded = unicodedata.normalize("NFKC", fold(text)).casefold()
    parts = unicodedata.normalize("NFD", folded)
    # The accents of Latin, Greek and Cyrillic; in other scripts, marks make other words.
    kept = (c for c in parts if not _is_accent(c) and unicodedata.category(c) != "Cf")
    return " ".join("".join(kept).translate(_LOOK_ALIKE).split())


def _is_accent(letter: str) -> bool:
    return "\u0300" <= letter <= "\u036f"


def near(labels: Mapping[str, int]) -> list[list[str]]:
    """Return groups of different labels, given their rows, that have the same key.

    The largest group first, and in each group the most frequent label first; full-width labels and
    similar ones come last.
    """
    groups: dict[str, list[str]] = {}
    for text in labels:
        groups.setdefault(key(text), []).append(text)

    def rank(text: str) -> tuple[bool, int, str]:
        return not unicodedata.is_normalized("NFKC", text), -labels[text], text

    alike = [sorted(group, key=rank) for group in groups.values() if len(group) > 1]
    return sorted(alike, key=lambda g: (-sum(labels[t] for t in g), g))


def is_asked(group: Iterable[str]) -> bool:
    """Return whether a person should decide if the labels of a group are the same.

    Not for codes without three consecutive letters: their case and accents often have a meaning, as
    in ``a`` and ``A`` of a gene. A person is always asked about labels that look the same.
    """
    group = [*group]
    return any(map(_WORD.search, group)) or len({*map(_bare, group)}) > 1


def difference(group: Iterable[str]) -> str:
    """Return in words how the labels of a group differ: by case, by accents, or otherwise."""
    group = [*group]
    if len({text.casefold() for text in group}) == 1:
        return N_("case")
    return N_("case or accents") if len({*map(_bare, group)}) == 1 else N_("look-alike signs")


def _bare(text: str) -> str:
    parts = unicodedata.normalize("NFD", text.casefold())
    return "".join(c for c in parts if not _is_accent(c))


def merged(labels: Mapping[str, int]) -> list[str]:
    """Return one label for each key, the most frequent, in the order of the keys.

    The order therefore does not depend on which spelling is the most frequent.
    """
    return sorted({*labels} - {text for group in near(labels) for text in group[1:]}, key=key)
