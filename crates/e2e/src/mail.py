"""A mail server for tests: PORT DIRECTORY [CERTIFICATE KEY USER PASSWORD]. Each mail becomes a file."""

import os
import ssl
import sys
import threading

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword


class Keeper:
    def __init__(self, directory):
        self.directory = directory
        self.count = 0

    async def handle_DATA(self, server, session, envelope):
        self.count += 1
        name = os.path.join(self.directory, f"{self.count:06}")
        with open(name + ".part", "wb") as file:
            for recipient in envelope.rcpt_tos:
                file.write(f"RCPT {recipient}\r\n".encode())
            file.write(envelope.content)
        os.rename(name + ".part", name + ".eml")
        return "250 kept"


def main():
    port, directory, *guard = sys.argv[1:]
    options = {}
    if guard:
        certificate, key, user, password = guard
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)

        def authenticate(server, session, envelope, mechanism, data):
            good = isinstance(data, LoginPassword) and (data.login, data.password) == (
                user.encode(),
                password.encode(),
            )
            return AuthResult(success=good, handled=good)

        options = {
            "tls_context": context,
            "require_starttls": True,
            "authenticator": authenticate,
            "auth_required": True,
        }
    controller = Controller(Keeper(directory), hostname="127.0.0.1", port=int(port), **options)
    controller.start()
    threading.Event().wait()


main()
