"""leasehold-gateway with TLS on both sides: which hosts it trusts, and which certificate its clients see.

A certificate that is wrong changes nothing when it is read again, and is named in the log. Exit code 77 with one line
where `openssl` is missing.

    python3 tls.py build/quick/bin
"""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import failing_hosts as hosts

WAIT_S = 60


def make_certificate(directory, name):
    """Returns the paths of a certificate for 127.0.0.1 and of its key."""
    certificate, key = (os.path.join(directory, name + ending) for ending in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "1", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                    "-out", certificate], check=True, capture_output=True)
    return certificate, key


class TlsHost(hosts.Host):
    def __init__(self, name, certificate, key):
        self.name, self.code, self.streams = name, "", []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        self.listen(listener)

    def serve(self, peer):
        try:
            encrypted = self.context.wrap_socket(peer, server_side=True)
        except OSError:
            peer.close()
            return
        super().serve(encrypted)


class Gateway:
    """A gateway with a certificate in a file."""

    def __init__(self, programs, directory, addresses, authorities):
        self.certificate, self.key = (os.path.join(directory, "shown" + ending) for ending in (".pem", ".key"))
        self.show(*make_certificate(directory, "first"))
        self.process, self.address, self.log_path = hosts.start_gateway(
            programs, addresses, directory, 1, "--tls-certificate", self.certificate, "--tls-key", self.key,
            "--host-ca", authorities)

    def show(self, certificate, key):
        shutil.copy(certificate, self.certificate)
        shutil.copy(key, self.key)

    def log(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def await_log(self, *texts):
        """Waits for a line with all the texts."""
        deadline = time.monotonic() + WAIT_S
        while not any(all(text in line for text in texts) for line in self.log().splitlines()):
            if time.monotonic() > deadline:
                sys.exit(f"no line with {texts}:\n{self.log()[-6000:]}")
            time.sleep(0.01)

    def ask(self, authority):
        """The text that a client reads who trusts this authority; the reason if it reads none."""
        context = ssl.create_default_context(cafile=authority)
        client = http.client.HTTPSConnection(self.address, timeout=WAIT_S, context=context)
        try:
            client.request("POST", "/v1/chat/completions", json.dumps({"model": "honest", "stream": True}))
            return client.getresponse().read().decode()
        except ssl.SSLError as error:
            return error.reason
        finally:
            client.close()

    def reload(self):
        self.process.send_signal(signal.SIGHUP)


def check(what, holds):
    print(f"{what:60} {'passes' if holds else 'FAILED'}", flush=True)
    return holds


def check_config(programs, *options):
    """The exit code and the error of --check-config."""
    checked = subprocess.run([os.path.join(programs, "leasehold-gateway"), "--hosts", "unix:/none", "--check-config",
                              *options], capture_output=True, text=True, check=False)
    return checked.returncode, checked.stderr


def check_files(programs, directory, certificate, key):
    """--check-config reads the files that a start would read, and names the one that is wrong."""
    wrong = os.path.join(directory, "wrong.pem")
    with open(wrong, "w", encoding="utf-8") as file:
        file.write("no certificate\n")
    _, other_key = make_certificate(directory, "other")
    good = check_config(programs, "--tls-certificate", certificate, "--tls-key", key, "--host-ca", certificate)
    refused = {
        wrong: check_config(programs, "--tls-certificate", wrong, "--tls-key", key),
        other_key: check_config(programs, "--tls-certificate", certificate, "--tls-key", other_key),
        "/none.pem": check_config(programs, "--host-ca", "/none.pem"),
    }
    return [check("--check-config accepts files that are right", good == (0, "")),
            *(check(f"--check-config names {os.path.basename(file)}", code > 2 and file in error)
              for file, (code, error) in refused.items())]


def run(programs, directory):
    trusted, stranger = (make_certificate(directory, name) for name in ("trusted", "stranger"))
    known, unknown = TlsHost("known", *trusted), TlsHost("unknown", *stranger)
    authorities = os.path.join(directory, "authorities.pem")
    shutil.copy(trusted[0], authorities)
    gateway = Gateway(programs, directory, [known.address, unknown.address], authorities)
    first = os.path.join(directory, "first.pem")
    second = make_certificate(directory, "second")
    results = check_files(programs, directory, *trusted)
    results.append(check("a text passes two encrypted connections", gateway.ask(first) == hosts.TEXT))
    gateway.await_log("host lost", unknown.address, "certificate")

    with open(gateway.certificate, "w", encoding="utf-8") as file:
        file.write("no certificate\n")
    gateway.reload()
    gateway.await_log("configuration not reloaded", gateway.certificate)
    results.append(check("a wrong certificate changes nothing", gateway.ask(first) == hosts.TEXT))

    gateway.show(*second)
    with open(authorities, "ab") as file, open(stranger[0], "rb") as added:
        file.write(added.read())
    gateway.reload()
    gateway.await_log("certificate reloaded", gateway.certificate)
    results.append(check("clients see the new certificate", gateway.ask(second[0]) == hosts.TEXT))
    results.append(check("and the old one no more", gateway.ask(first) == "CERTIFICATE_VERIFY_FAILED"))
    gateway.await_log("host changed", unknown.address, "state=ready")
    gateway.process.terminate()
    results.append(check("it ends with 0", gateway.process.wait(WAIT_S) == 0))
    if not all(results):
        sys.exit(gateway.log()[-6000:])


def main():
    if not shutil.which("openssl"):
        print("skipped: the program openssl is missing")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        run(sys.argv[1], directory)


if __name__ == "__main__":
    main()
