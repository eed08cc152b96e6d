"""Mutates structured files, which changes of bytes would only make unreadable.

    data = mutated_model(data, Random(17))

ONNX models are mutated field by field, archives (npz) member by member with correct
checksums, so errors appear after decoding. Data that can't be decoded is returned
unchanged.
"""

import io
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS = (0, 1, -1, 2, 3, 7, 16, 255, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 0.5, 1e30, float("nan"), float("inf"), -float("inf"))


def mutated_model(data: bytes, random: Random) -> bytes:
    """Changes, drops, repeats or exchanges some fields of an ONNX model."""
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return data
    for _ in range(random.choice([1, 1, 2, 4])):
        messages = list(_messages(model))
        # Deeper messages are more numerous, so they are drawn more often.
        _change(random.choice(messages), messages, random)
    return model.SerializeToString()


def _messages(message: Any) -> list[Any]:
    """The message and all messages nested in it."""
    found = [message]
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                found += _messages(inner)
    return found


def _change(message: Any, messages: list[Any], random: Random) -> None:
    fields = [field for field, _ in message.ListFields()]
    if random.random() < 0.15 or not fields:
        fields = list(message.DESCRIPTOR.fields)
    field = random.choice(fields)
    value = getattr(message, field.name)
    if random.random() < 0.1:
        message.ClearField(field.name)
    elif field.message_type is not None:
        _change_messages(message, field, messages, random)
    elif not field.is_repeated:
        setattr(message, field.name, _scalar(field, value, messages, random))
    elif not value or random.random() < 0.2:
        value.append(_scalar(field, None, messages, random))
    else:
        at = random.randrange(len(value))
        if random.random() < 0.3:
            del value[at]
        else:
            value[at] = _scalar(field, value[at], messages, random)


def _change_messages(
    message: Any, field: Any, messages: list[Any], random: Random
) -> None:
    """Copies a message of the same kind from elsewhere into `field`, or drops one."""
    alike = [m for m in messages if m.DESCRIPTOR is field.message_type]
    other = type(alike[0])() if alike else None
    if other is not None:
        other.CopyFrom(random.choice(alike))
    value = getattr(message, field.name)
    if not field.is_repeated:
        if other is None:
            value.SetInParent()
        else:
            value.CopyFrom(other)
    elif not value or random.random() < 0.3:
        value.add() if other is None else value.append(other)
    else:
        at = random.randrange(len(value))
        if random.random() < 0.4 or other is None:
            del value[at]
        else:
            value[at].CopyFrom(other)


def _scalar(field: Any, old: Any, messages: list[Any], random: Random) -> Any:
    """A value of the field's type: an extreme, a neighbor, or another message's."""
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        taken = [
            value
            for message in messages
            for other, value in message.ListFields()
            if other.type == field.type and not other.is_repeated
            # protobuf returns strings that are not UTF-8 as bytes, and rejects them
            if field.type == field.TYPE_BYTES or isinstance(value, str)
        ]
        if field.type == field.TYPE_BYTES:
            return random.choice([*taken, b"", b"\xff" * 8, random.randbytes(4)])
        return random.choice([*taken, "", "x", "\x00", "\N{SNOWMAN}", 'a"b\\c'])
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return random.choice(FLOATS)
    if kind == field.CPPTYPE_ENUM:
        return random.choice([*field.enum_type.values_by_number])
    number = random.choice(NUMBERS)
    if isinstance(old, int) and random.random() < 0.5:
        number = old + random.choice([-1, 1])
    bits = 32 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    unsigned = kind in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
    low, high = (
        (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    return min(max(number, low), high)


def mutated_archive(
    data: bytes, random: Random, of_member: Callable[[bytes, Random], bytes]
) -> bytes:
    """Mutates, renames, drops or repeats a member of a zip file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(i.filename, archive.read(i)) for i in archive.infolist()]
    except Exception:  # zipfile raises many types
        return data
    at = random.randrange(len(members) or 1)
    if members:
        name, content = members[at]
        match random.randrange(8):
            case 0:
                del members[at]
            case 1:
                members.append(members[at])
            case 2:
                name = random.choice(
                    ["", "arg0", "arg9.npy", "../x.npy", "\N{SNOWMAN}"]
                )
                members[at] = (name, content)
            case _:
                members[at] = (name, of_member(content, random))
    file = io.BytesIO()
    method = random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(name or "x", content)
    return file.getvalue()
