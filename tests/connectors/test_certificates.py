"""When certificates expire, whoever shows them, and after their files were replaced."""

import subprocess
import time
from pathlib import Path
from typing import Literal

import pytest

from monitor.ports.certificates import Certificate, CertificatesOnDisk


def made(folder: Path, days: int, usage: str = "", password: str = "") -> tuple[Path, Path]:
    """Certificate and key, for one usage or for any."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    extensions = ["-addext", f"extendedKeyUsage={usage}"] if usage else []
    locked = ["-passout", f"pass:{password}"] if password else ["-nodes"]
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-days",
        str(days),
        "-subj",
        "/CN=us",
        *extensions,
        *locked,
    ]
    subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key


def days_left(expires: float | None) -> int:
    assert expires is not None
    return round((expires - time.time()) / 86_400)


@pytest.mark.parametrize(("by", "usage"), [("server", "serverAuth"), ("client", "clientAuth")])
def test_one_that_is_for_one_end_alone_is_asked_there(
    tmp_path: Path, by: Literal["server", "client"], usage: str
) -> None:
    assert days_left(Certificate(*made(tmp_path, 5, usage), by=by).expires()) == 5


def test_a_key_may_be_locked(tmp_path: Path) -> None:
    files = made(tmp_path, 5, password="open")
    assert days_left(Certificate(*files, "open", by="client").expires()) == 5
    assert Certificate(*files, by="client").expires() is None, "nobody is asked for a password at a terminal"


def test_of_several_the_first_counts_and_another_file_is_seen(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    certificates = CertificatesOnDisk(
        *(Certificate(*made(tmp_path / name, days)) for name, days in (("one", 3), ("two", 9)))
    )
    assert days_left(certificates.expires()) == 3
    made(tmp_path / "one", 30)
    assert days_left(certificates.expires()) == 9


def test_where_there_is_none_nothing_expires() -> None:
    assert CertificatesOnDisk().expires() is None
