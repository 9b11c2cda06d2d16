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

    def signed(self, name: str, *extensions: str, days: int = 2) -> Path:
        """Key and certificate in one PEM file. A server's says its address: `subjectAltName=IP:127.0.0.1`."""
        key, request, certificate = (self.folder / f"{name}.{ending}" for ending in ("key", "csr", "crt"))
        said = self.folder / f"{name}.extensions"
        said.write_text("".join(f"{extension}\n" for extension in extensions))
        subject = ("-subj", f"/CN={name}")
        _openssl("req", "-newkey", "rsa:2048", "-nodes", *subject, "-keyout", str(key), "-out", str(request))
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", str(days), "-extfile", str(said)),
            *("-CA", str(self.certificate), "-CAkey", str(self.folder / "ca.key"), "-CAcreateserial"),
            *("-out", str(certificate)),
        )
        both = self.folder / f"{name}.pem"
        both.write_text(key.read_text() + certificate.read_text())
        return both


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
