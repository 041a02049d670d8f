"""How gunicorn serves the API: `gunicorn api.wsgi:app` finds this file in the project's folder by itself."""

from core.settings import load_settings

_settings = load_settings(role="web")
# A platform's router comes from outside; a development stack is nobody else's business.
_host = "127.0.0.1" if _settings.environment == "development" else "0.0.0.0"  # noqa: S104

bind = f"{_host}:{_settings.port}"
worker_class = "gthread"
# One process serves two cores' worth of workers; WEB_CONCURRENCY raises it.
threads = _settings.web_threads
# Within the 30 s that platforms grant between SIGTERM and SIGKILL.
graceful_timeout = 25
timeout = 60
keepalive = 15
# Two gunicorns on one machine would meet on the control socket.
control_socket_disable = True
# The API writes its own log, with request ids and without secrets.
accesslog = None
errorlog = "-"
