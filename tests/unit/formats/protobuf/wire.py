"""Bytes of Protobuf's encoding, also of what no writer writes."""

from __future__ import annotations

VARINT, FIXED_64, BLOCK, GROUP, END, FIXED_32 = range(6)


def varint(value: int, more: int = 0) -> bytes:
    """A number of 64 bits, in so many more bytes than it needs."""
    left, code = value & (2**64 - 1), bytearray()
    while left > 0x7F:
        code.append(left & 0x7F | 0x80)
        left >>= 7
    code.append(left)
    for _ in range(more):
        code[-1] |= 0x80
        code.append(0)
    return bytes(code)


def zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def field(number: int, wire: int, written: bytes) -> bytes:
    return tag(number, wire) + written


def block(number: int, inside: bytes) -> bytes:
    """A field with its length ahead."""
    return tag(number, BLOCK) + varint(len(inside)) + inside
