"""Words that say little by themselves: English stop-words, and the words that negate in several languages."""

from __future__ import annotations

import re

from ragscore.judges.offline.scripts import folded

_STOP = """
a about above after again against all also although am among an and another any are as at be because been before being
below between both but by can cannot could did do does doing done down during each either eg else etc even ever few for
from further get had has have having he her here hers herself him himself his how however i ie if in into is it its
itself just let like made make makes many may me might more most much must my myself near neither no nor not of off
often on once one only onto or other others otherwise our ours out over own per quite rather same shall she should since
so some such than that the their theirs them themselves then there therefore these they this those though through thus
to too toward towards under until up upon us use used uses using very via was we were what when where whether which
while who whom whose why will with within without would yes yet you your yours yourself
"""
#: English words without weight, casefolded. No other language: "die" and "war" say much in English.
STOP_WORDS = frozenset(_STOP.split())

_NEGATIVE = """
not no never none neither nor without cannot cant nobody nothing nowhere hardly unable
nicht kein keine keinen keinem keiner keines nie niemals ohne pas jamais aucun aucune sans
nunca ningún ninguna ninguno não sem niet geen nooit не нет ليس لا لم لن नहीं
"""
#: Words that turn a statement round, casefolded.
NEGATIONS = frozenset(_NEGATIVE.split())

# In scripts without spaces between words, or as a part of a word.
_NEGATIVE_PART = re.compile(r"n't\b|[不没沒無无非未]|않|못했|없|아니|ない|ません|なかった|ไม่")
_SPLIT = re.compile(r"[^\s.,;:!?()\"]+")


def has_negation(text: str) -> bool:
    """Whether `text` holds a word that negates, in one of the languages of `NEGATIONS` or in Chinese, Japanese,
    Korean or Thai. Prefixes ("impossible") and meanings ("failed to") are not seen."""
    text = folded(text).casefold()
    return _NEGATIVE_PART.search(text) is not None or not NEGATIONS.isdisjoint(_SPLIT.findall(text))
