import psycopg2, pytest, time
from contextlib import closing
def test_x(database_url):
    for idle in (True, False):
        c=psycopg2.connect(database_url); c.autocommit=True
        cur=c.cursor(); cur.execute("select pg_backend_pid(), version()"); pid,v=cur.fetchone()
        print(v, psycopg2.__version__, psycopg2.__libpq_version__)
        def term():
            with closing(psycopg2.connect(database_url)) as o, o.cursor() as k:
                k.execute("select pg_terminate_backend(%s,5000)",(pid,)); print(k.fetchone())
        import threading
        t=None
        if idle: term()
        else:
            t=threading.Timer(0.2,term); t.start()
        try:
            cur.execute("select pg_sleep(1)")
            print("ok")
        except Exception as e:
            print(repr(e), e.pgcode, type(e).__mro__, c.closed, c.notices)
        if t: t.join()
