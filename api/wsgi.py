"""The web process's entry point: `gunicorn api.wsgi:app`. The only module here that reads the environment."""

from actors.queue.broker import make_broker
from actors.queue.caller import Caller
from api.app import create_app
from core.logs import log
from core.settings.settings import load_settings
from models.db import base, counts
from models.db.prefetch import ahead

_settings = load_settings(role="web")
log.configure(_settings, process="web")
base.connect(_settings.database_url, statement_timeout_ms=_settings.statement_timeout_ms, application_name="sluice-web")
ahead.allow()
_broker = make_broker(_settings, client_name="sluice-web")
# One more reads ahead, another one writes counts.
_broker.heartbeats.connections_max = _settings.web_threads + 2
counts.report("web")

app = create_app(_settings, caller=Caller(_broker, _settings), queues=_broker, link=_broker.link)
