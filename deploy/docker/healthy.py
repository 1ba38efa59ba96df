"""Ends with 0 while the server in this container answers."""

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection

port = int(os.environ.get("TENURE_SERVE_PORT", "7420"))
if os.environ.get("TENURE_SERVE_TLS_CERT"):
    # Its certificate is for the names that others know it by, not for this one.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    link: HTTPConnection = HTTPSConnection("127.0.0.1", port, timeout=4, context=context)
else:
    link = HTTPConnection("127.0.0.1", port, timeout=4)
try:
    link.request("GET", "/health")
    status = link.getresponse().status
except (OSError, HTTPException) as error:
    sys.exit(str(error))
sys.exit(0 if status == 200 else f"/health answered {status}")
