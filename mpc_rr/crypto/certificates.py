"""Certificates for a broker of one's own: self-signed, and known by their fingerprint."""

import datetime as dt
import hashlib
import ssl

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALID = dt.timedelta(days=3650)
_EARLIER = dt.timedelta(days=1)
"""Clocks differ: what is made now should hold for somebody whose clock is slow."""


def self_signed() -> tuple[str, str]:
    """A fresh certificate and its private key, both PEM. Only its fingerprint says whose it is."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mpc-rr broker")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _VALID)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


def is_self_signed(pem: str) -> bool:
    """Whether the first certificate of a file vouches for itself, and no authority for it."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    return certificate.issuer == certificate.subject


def check_pair(pem: str, private: str) -> None:
    """``ValueError`` unless this is a certificate and its private key, without a password."""
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode()).public_key()
        key = serialization.load_pem_private_key(private.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("its certificate or the private key of it is damaged") from None
    if key.public_key() != certificate:
        raise ValueError("its private key is not that of its certificate")


def fingerprint(pem: str) -> str:
    """SHA-256 of the first certificate of a file, in hexadecimal digits."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    return fingerprint_of(certificate.public_bytes(serialization.Encoding.DER))


def fingerprint_of(der: bytes) -> str:
    """SHA-256 of a certificate as it is sent, in hexadecimal digits."""
    return hashlib.sha256(der).hexdigest()


class WrongCertificate(ssl.SSLCertVerificationError):
    """The certificate is not the expected one. Nothing but a handshake was sent."""

    def __str__(self) -> str:
        return "its certificate is not the one whose fingerprint stands in the address"


class TlsSocket(ssl.SSLSocket):
    """A socket that is closed when its handshake fails: paho would leave that to nobody."""

    def do_handshake(self, block: bool = False) -> None:
        """Shake hands, and check what the other side has shown."""
        try:
            super().do_handshake(block)
            self.check_peer()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except OSError:  # all that ssl raises
            self.close()
            raise

    def check_peer(self) -> None:
        """Raise what is wrong with the other side, beyond what the context checks."""


def accepting_only(expected: str) -> ssl.SSLContext:
    """A TLS client that accepts the certificate with this fingerprint, and no other.

    Neither names nor authorities nor dates count, as the fingerprint says it all. It is compared
    as a part of the handshake: nothing else is sent before.
    """

    class Pinned(TlsSocket):
        def check_peer(self) -> None:
            shown = self.getpeercert(binary_form=True)
            if shown is None or fingerprint_of(shown) != expected:
                raise WrongCertificate

    context = accepting_any()
    context.sslsocket_class = Pinned
    return context


def accepting_any() -> ssl.SSLContext:
    """A TLS client that checks nothing: for a server that this process has started itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
