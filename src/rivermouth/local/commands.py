"""Our commands as a person types them into a shell."""

from __future__ import annotations

import shlex


def typed(*words: object) -> str:
    """``rivermouth`` and ``words``, each quoted for the shell where it needs that; SQL with single
    quotes is in double quotes.
    """
    return " ".join(["rivermouth", *(quoted(word) for word in words)])


def quoted(word: object) -> str:
    """One word, quoted for the shell where it needs that."""
    text = str(word)
    plain = "'" in text and not set(text) & set('"$`\\!')
    return f'"{text}"' if plain else shlex.quote(text)
