"""Numbers as they are written: which values a numeral may stand for, its unit, and month names.

A numeral can be read in more than one way: "1.234" is one thousand two hundred and thirty-four in Berlin and one and
a bit in London. A number is therefore a set of *readings*, and two numbers agree when they share one. Values are
kept as text ("0.5", "1000000"), so that no digit is lost and a numeral of any length costs linear time.
"""

from __future__ import annotations

import re

#: Powers of ten that a scale word after a numeral multiplies by.
SCALES = {
    **dict.fromkeys(("thousand", "k", "tsd", "tausend", "mil", "mille"), 3),
    **dict.fromkeys(("million", "millions", "mio", "mln", "millionen", "millones", "milliones"), 6),
    **dict.fromkeys(("billion", "billions", "bn", "milliarde", "milliarden", "milliard", "milliards"), 9),
    **dict.fromkeys(("trillion", "trillions", "tn"), 12),
}

_UNITS = {
    "%": ("%", "percent", "pct", "prozent", "percentage"),
    "€": ("€", "eur", "euro", "euros"),
    "$": ("$", "usd", "dollar", "dollars"),
    "£": ("£", "gbp"),
    "¥": ("¥", "yen", "jpy", "yuan", "cny"),
    "km": ("km", "kilometre", "kilometres", "kilometer", "kilometers"),
    "m": ("m", "metre", "metres", "meter", "meters"),
    "cm": ("cm", "centimetre", "centimetres", "centimeter", "centimeters"),
    "mm": ("mm", "millimetre", "millimetres", "millimeter", "millimeters"),
    "mi": ("mi", "mile", "miles"),
    "ft": ("ft", "foot", "feet"),
    "kg": ("kg", "kilogram", "kilograms", "kilo", "kilos"),
    "g": ("g", "gram", "grams", "gramm"),
    "mg": ("mg", "milligram", "milligrams"),
    "lb": ("lb", "lbs"),
    "t": ("tonne", "tonnes"),
    "l": ("litre", "litres", "liter", "liters"),
    "ml": ("ml", "millilitre", "millilitres", "milliliter", "milliliters"),
    "°c": ("°c", "celsius"),
    "°f": ("°f", "fahrenheit"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "day": ("day", "days"),
    "week": ("week", "weeks"),
    "month": ("month", "months"),
    "year": ("year", "years"),
    "kb": ("kb", "kilobyte", "kilobytes"),
    "mb": ("mb", "megabyte", "megabytes"),
    "gb": ("gb", "gigabyte", "gigabytes"),
    "tb": ("tb", "terabyte", "terabytes"),
}
#: The canonical unit of each spelling, casefolded.
UNITS = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings}
#: Signs that stand before or after a numeral without a space.
CURRENCIES = frozenset("€$£¥")

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()
#: The number of each English month name and its usual abbreviations, casefolded.
MONTHS = {name: at for at, name in enumerate(_MONTHS, start=1)}
MONTHS |= {name[:3]: at for name, at in MONTHS.items()} | {"sept": 9}

_UP_TO_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
#: The values of English number words, casefolded.
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_UP_TO_TWENTY.split())}
NUMBER_WORDS |= {word: str(10 * tens) for tens, word in enumerate(_TENS.split(), start=3)}
NUMBER_WORDS |= {word: str(value) for value, word in enumerate(_ORDINALS.split(), start=1)}

_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\d-])")
_GROUPED = re.compile(r"\d{1,3}([.,' ])\d{3}(?:\1\d{3})*")
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")


def spelled_dates(text: str) -> str:
    """`text` with ISO dates written as "12 March 2019", so that they meet the same date in words."""
    return _ISO_DATE.sub(lambda m: f"{int(m[3])} {_MONTHS[int(m[2]) - 1].capitalize()} {m[1]}", text)


def plain(whole: str, fraction: str = "") -> str:
    """The canonical text of a value: no zeros that say nothing. `plain("007", "50")` is "7.5"."""
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def scaled(value: str, power: int) -> str:
    """`value` times ten to the `power`, digit by digit: `scaled("2.5", 6)` is "2500000"."""
    whole, _, fraction = value.partition(".")
    return plain(whole + fraction[:power].ljust(power, "0"), fraction[power:])


def readings(numeral: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a numeral may stand for: (values, parts).

    `numeral` is ASCII digits with `.`, `,`, `'` or single spaces between them. Any one of `values` is the number;
    where it is several numbers in a row (a date, a version, a score), `values` is empty and `parts` has them. Digits
    grouped by spaces are one number, yet have `parts` too, as "12 345" may be two.

    >>> readings("1,234.50")
    (('1234.5',), ())
    >>> readings("1.234")
    (('1234', '1.234'), ())
    >>> readings("0,5")
    (('0.5',), ())
    >>> readings("12.03.2019")
    ((), ('12', '3', '2019'))
    """
    if numeral.isdigit():
        return (plain(numeral),), ()
    pieces = re.split(r"[.,' ]", numeral)
    if _GROUPED.fullmatch(numeral) and numeral[0] != "0":
        values = [plain("".join(pieces))]
        separator = numeral[len(pieces[0])]
        # Three decimals are rare, and read as such only between a full stop; the zeros stay, as written precision,
        # so that "2.500" (thousand, in Berlin) never meets "2.5".
        if len(pieces) == 2 and separator == ".":
            values.append(f"{pieces[0]}.{pieces[1]}")
        return tuple(values), tuple(plain(piece) for piece in pieces) if separator == " " else ()
    if _INDIAN.fullmatch(numeral):
        return (plain("".join(pieces)),), ()
    if len(pieces) == 2:
        return (plain(*pieces),), ()
    mark = max(numeral.rfind("."), numeral.rfind(","))
    if mark > 0 and numeral[mark] not in numeral[:mark]:
        head = numeral[:mark]
        if _GROUPED.fullmatch(head) or _INDIAN.fullmatch(head):
            return (plain(re.sub(r"\D", "", head), numeral[mark + 1 :]),), ()
    return (), tuple(plain(piece) for piece in pieces)
