"""How the baselines are served: as the product was when this was frozen."""

import os

bind = f"127.0.0.1:{os.environ['BENCH_PORT']}"
workers = 1
worker_class = "gthread"
threads = 32
graceful_timeout = 25
timeout = 60
keepalive = 15
control_socket_disable = True
accesslog = None
errorlog = "-"
