"""`gateway`: start agents on this machine for a server on another one."""

from __future__ import annotations

import os
from argparse import Namespace

from tenure.cli.answers import say
from tenure.cli.main import Answer, Run, arg, options


@options(
    arg("--listen", metavar="HOST:PORT", help="where to listen (127.0.0.1:7430)"),
    arg("--tls-cert", metavar="FILE", help="the certificate, for HTTPS"),
    arg("--tls-key", metavar="FILE", help="its private key"),
    arg("--new-secret", action="store_true", help="print a new shared secret, and end"),
)
def gateway(run: Run, given: Namespace) -> Answer | int:
    """Start agents on this machine for pools of a server on another one, until stopped.

    Starts what `[programs.NAME]` of this machine names, for requests signed with the shared secret. Stopping the
    gateway leaves its agents running; the next one knows them.
    """
    from tenure.core import signatures

    if given.new_secret:
        key = signatures.key_for(signatures.STANDARD, None, os.urandom)
        secret = signatures.spelled(signatures.STANDARD, key)
        return Answer({"secret": secret}, secret)
    from tenure.config import read_settings
    from tenure.server.gateway_process import serve_gateway
    from tenure.spawners.settings import read_gateway

    flags = {f"gateway.{name}": getattr(given, name) for name in ("listen", "tls_cert", "tls_key")}
    settings = read_settings(run.folder, run.environ, flags)
    return serve_gateway(read_gateway(settings, run.folder), lambda url: say(f"gateway on {url}"))
