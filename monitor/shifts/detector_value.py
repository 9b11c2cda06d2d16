"""What a detector of changes knows, as a value."""

import msgspec


class DetectorValue(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Numbers and bytes, as each detector has them."""

    numbers: tuple[float, ...] = ()
    data: bytes = b""
