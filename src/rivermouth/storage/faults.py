"""What a store of objects has against a request, in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

T = TypeVar("T")

_CODE, _MESSAGE = re.compile(r"<Code>([^<]+)</Code>"), re.compile(r"<Message>([^<]+)</Message>")
_STATUS = re.compile(r"non-2xx status code: (\d{3} [A-Za-z ]+)")
_NO_OBJECT = ("", "NoSuchKey", "BlobNotFound")
"""What stores say where there is no object; to HEAD nothing. Other words tell of other things."""
_NETWORK = ("kind: Connect", "HTTP error", "error sending request", "kind: Timeout")


class StoreFault(OSError):
    """A store does not answer, or refuses. ``code`` is its own word for that; empty: there is none.

    ``passes``: the same request may succeed later.
    """

    def __init__(self, said: str, code: str = "", *, passes: bool = True) -> None:
        super().__init__(said)
        self.code, self.passes = code, passes


def told(fault: BaseException, where: str) -> StoreFault:
    """A fault of the client as one of ours; ``where`` is what it was about."""
    text = str(fault)
    code, message, status = (each.search(text) for each in (_CODE, _MESSAGE, _STATUS))
    if code is not None:
        said = f"{code[1]}: {message[1].strip()}".partition("\n")[0] if message else code[1]
    elif status is not None:
        said = status[1].strip()
    elif any(each in text for each in _NETWORK):
        said = "no answer" + (": it took too long" if "Timeout" in text else ": no connection")
    else:
        said = text.partition("\n\nDebug source")[0].replace("\n", " ").strip()
    refused = status is not None and status[1][:1] == "4" and status[1][:3] not in ("408", "429")
    return StoreFault(f"{where}: {said.rstrip('.')}", code[1] if code else "", passes=not refused)


def asked(where: str, act: Callable[[], T]) -> T:
    """The answer of a store.

    Raises FileNotFoundError and FileExistsError where an object is not there, or is there; else
    StoreFault. A container or a user that is not there is none of the first: nothing is known then.
    """
    try:
        return act()
    except (NotFoundError, FileNotFoundError, NotADirectoryError) as fault:
        if (found := told(fault, where)).code not in _NO_OBJECT:
            raise found from fault
        raise FileNotFoundError(f"{where}: there is no such object") from fault
    except (AlreadyExistsError, FileExistsError) as fault:
        raise FileExistsError(f"{where}: it is there already") from fault
    except BaseError as fault:
        raise told(fault, where) from fault
    except StoreFault:
        raise
    except OSError as fault:
        raise StoreFault(f"{where}: {fault.strerror or fault}") from fault
