"""An authority and what it signs, made with openssl: for brokers that speak TLS."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder of its own."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """What clients are told to trust."""
        return self.folder / "ca.pem"

    def create(self) -> "Authority":
        self.folder.mkdir(parents=True)
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority"),
            *("-keyout", str(self.folder / "ca.key"), "-out", str(self.certificate)),
        )
        return self

    def signed(self, name: str, address: str) -> Path:
        """Key and certificate of a server at this address, in one PEM file."""
        key, request, certificate = (self.folder / f"{name}.{ending}" for ending in ("key", "csr", "crt"))
        names = self.folder / f"{name}.names"
        names.write_text(f"subjectAltName={address}\n")
        subject = ("-subj", f"/CN={name}")
        _openssl("req", "-newkey", "rsa:2048", "-nodes", *subject, "-keyout", str(key), "-out", str(request))
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", "2", "-extfile", str(names)),
            *("-CA", str(self.certificate), "-CAkey", str(self.folder / "ca.key"), "-CAcreateserial"),
            *("-out", str(certificate)),
        )
        both = self.folder / f"{name}.pem"
        both.write_text(key.read_text() + certificate.read_text())
        return both


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
