"""The files for nginx, Caddy and systemd, checked by these programs where they are there."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.server.conftest import QUERY, make_folder
from tests.server.test_kills import free_port, process_of

from hushed.client import connect
from hushed.server._setup import invite
from hushed.server._tokens import Scope

PLACE = Path(__file__).parents[2] / "examples" / "server"


def require(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def make_certificate(place: Path) -> tuple[Path, Path]:
    """A certificate of localhost that is its own authority."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = place / "localhost.pem", place / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, private


def write_nginx(place: Path, port: int, server: int) -> list[str]:
    """The file as it is, but for names and ports, in a file of nginx that holds nothing else."""
    certificate, private = make_certificate(place)
    told = (PLACE / "nginx.conf").read_text()
    for old, new in [
        ("listen 80;", f"listen 127.0.0.1:{free_port()};"),
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("stats.example.org", "localhost"),
        ("/etc/ssl/stats/fullchain.pem", str(certificate)),
        ("/etc/ssl/stats/key.pem", str(private)),
        ("127.0.0.1:8642", f"127.0.0.1:{server}"),
    ]:
        assert old in told
        told = told.replace(old, new)
    paths = "".join(
        f"{each}_temp_path {place}/{each};\n"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = place / "nginx.conf"
    whole.write_text(
        f"pid {place}/nginx.pid;\nerror_log {place}/error.log;\ndaemon off;\n"
        f"events {{}}\nhttp {{\naccess_log {place}/access.log;\n{paths}{told}}}\n"
    )
    return [require("nginx"), "-p", str(place), "-c", str(whole), "-e", f"{place}/error.log"]


def write_caddy(place: Path, port: int, server: int) -> list[str]:
    certificate, private = make_certificate(place)
    told = (PLACE / "Caddyfile").read_text()
    for old, new in [
        ("\nstats.example.org {", f"\nhttps://localhost:{port} {{\n\ttls {certificate} {private}"),
        ("127.0.0.1:8642", f"127.0.0.1:{server}"),
    ]:
        assert old in told
        told = told.replace(old, new)
    whole = place / "Caddyfile"
    whole.write_text(f"{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{told}")
    return [require("caddy"), "run", "--config", str(whole), "--adapter", "caddyfile"]


@pytest.mark.slow
def test_nginx_reads_its_file(tmp_path):
    """A misspelt line is refused by the same call."""
    command = write_nginx(tmp_path, 1, 2)
    done = subprocess.run([*command, "-t"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    whole = tmp_path / "nginx.conf"
    whole.write_text(whole.read_text().replace("proxy_next_upstream", "proxy_next_upstreams"))
    assert subprocess.run([*command, "-t"], check=False, capture_output=True).returncode != 0


@pytest.mark.slow
def test_caddy_reads_its_file(tmp_path, monkeypatch):
    """As it stands, and not with another word in it."""
    program = require("caddy")
    monkeypatch.setenv("HOME", str(tmp_path))
    for text, fine in [
        ((PLACE / "Caddyfile").read_text(), True),
        ((PLACE / "Caddyfile").read_text().replace("max_size", "most_size"), False),
    ]:
        file = tmp_path / "Caddyfile"
        file.write_text(text)
        command = [program, "validate", "--config", str(file), "--adapter", "caddyfile"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (done.returncode == 0) is fine, done.stderr


@pytest.mark.slow
def test_systemd_reads_its_file(tmp_path):
    """Unknown settings are told on standard error alone."""
    program = require("systemd-analyze")
    told = (PLACE / "hushed.service").read_text().replace("/opt/hushed/bin/hushed", sys.executable)
    for text, fine in [(told, True), (told.replace("PrivateTmp", "PrivatTmp"), False)]:
        file = tmp_path / "hushed.service"
        file.write_text(text)
        done = subprocess.run(
            [program, "verify", str(file)], check=False, capture_output=True, text=True
        )
        assert ((done.returncode, done.stderr) == (0, "")) is fine, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_nginx, write_caddy], ids=["nginx", "caddy"])
def test_23_a_server_is_asked_through_a_proxy(tmp_path, monkeypatch, write):
    """TLS, an answer, a body that is too long; who asks is not whoever a client says."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    tokens, folder, port = make_folder(tmp_path), tmp_path / "stats", free_port()
    place = tmp_path / "proxy"
    place.mkdir()
    file = folder / "hushed.toml"
    proxy = f'behind_proxy = true\npublic_url = "https://localhost:{port}"\n'
    proxy += 'trusted_proxies = ["127.0.0.1"]'
    file.write_text(file.read_text().replace("behind_proxy = false", proxy))
    far = invite(folder, "ana", "analyst", [], days=1, scope=Scope(addresses=("10.9.8.7",)))
    with process_of(folder) as process, (place / "log").open("wb") as log:
        command = write(place, port, process.port)
        standing = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            authority = ssl.create_default_context(cafile=place / "localhost.pem")
            pool = urllib3.PoolManager(ssl_context=authority, retries=False)
            url = f"https://localhost:{port}"
            wait_for_proxy(pool, url, standing)
            headers = {"authorization": f"Bearer {tokens['ana']}"}
            found = pool.request("GET", f"{url}/v1/me", headers=headers)
            assert (found.status, found.json()["name"]) == (200, "ana")
            assert found.headers["strict-transport-security"]
            forged = {"authorization": f"Bearer {far}", "x-forwarded-for": "10.9.8.7"}
            assert pool.request("GET", f"{url}/v1/me", headers=forged).status == 401
            quote = f"{url}/v1/datasets/stays/quote"
            long = b'{"query": "' + b"x" * 100_000 + b'"}'
            sent = headers | {"content-type": "application/json"}
            assert pool.request("POST", quote, headers=sent, body=long).status in (413, 400)
            monkeypatch.setenv("SSL_CERT_FILE", str(place / "localhost.pem"))
            asked = connect(url, tokens["ana"]).table("stays")
            answer = asked.bound_contributions(max_rows_per_user=1).count().release(epsilon=0.1)
            assert answer.entry == 1
            assert answer.asked.query.user == QUERY["user"]
        finally:
            standing.terminate()
            standing.wait(20)
    assert tokens["ana"][20:40] not in "".join(
        each.read_text(errors="replace") for each in place.rglob("*log")
    )


def wait_for_proxy(pool: urllib3.PoolManager, url: str, standing: subprocess.Popen[bytes]) -> None:
    stop = time.monotonic() + 30
    while time.monotonic() < stop and standing.poll() is None:
        try:
            if pool.request("GET", f"{url}/livez").status == 200:
                return
        except urllib3.exceptions.HTTPError:
            time.sleep(0.05)
    pytest.fail("the proxy did not start")
