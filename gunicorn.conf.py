"""How gunicorn serves the API: `gunicorn api.wsgi:app` finds this file in the project's folder by itself."""

from typing import Any

from api.http.worker import serving
from api.server_log import ServerLog
from core.logs import log
from models.db import counts
from models.db.sessions import pooler

_settings = log.start("web", "web")
pooler.end_behind(_settings, process="web")
bind = _settings.listens_on
# Of a unix socket: only its owner and group, such as the proxy's, may connect.
umask = 0o007
# Threads that no slow client holds. WEB_CONCURRENCY raises the number of processes.
worker_class = serving(trusted_proxies=_settings.trusted_proxies, open_max=_settings.open_requests_max)
threads = _settings.web_threads
# Idle connections wait in a poller, not in a thread.
worker_connections = 2000
keepalive = 15
# Within the 30 s that platforms grant between SIGTERM and SIGKILL.
graceful_timeout = 25
timeout = 60
# X_Signature must not pass for X-Signature, and no header may rename the path. Who is believed about forwarding is
# TRUSTED_PROXIES, which the application reads.
header_map = "drop"
forwarder_headers = ""
secure_scheme_headers = {}
# Two gunicorns on one machine would meet on the control socket.
control_socket_disable = True
# The API writes its own log, with request ids and without secrets.
accesslog = None
logger_class = ServerLog
errorlog = "-"


def worker_exit(_server: Any, _worker: Any) -> None:
    """Write the last counts of a worker process that ends."""
    counts.end()
