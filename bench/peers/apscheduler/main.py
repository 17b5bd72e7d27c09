"""APScheduler with its SQLAlchemy job store on PostgreSQL; jobs are offered inside, as its schedulers share no store."""

from datetime import datetime, timezone

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import create_engine, text

import peer
from peer import settings, task

URL = task["url"].replace("postgres://", "postgresql+psycopg://")


def scheduler():
    return BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=URL)},
        executors={"default": ThreadPoolExecutor(settings["max_workers"])},
        job_defaults={"misfire_grace_time": settings["misfire_grace_time"]},
        timezone=timezone.utc,
    )


def prepare():
    made = scheduler()
    made.start(paused=True)
    due = datetime.fromtimestamp(task.get("at_us", peer.now_us()) / 1e6, timezone.utc)
    for n in range(task["jobs"]):
        made.add_job("peer:started", "date", run_date=due, args=(n, 0), id=str(n))
    made.shutdown()
    peer.answer(prepared=task["jobs"])


def work():
    made = scheduler()
    peer.answer(began_us=peer.now_us())
    made.start()
    if "rate" in task:
        def send(jobs):
            for n, meant in jobs:
                made.add_job("peer:started", args=(n, meant), id=str(n))
        peer.offer(send)
    peer.wait_until_told()
    made.shutdown()
    peer.answer(stopped=True)


def left():
    engine = create_engine(URL, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        peer.counting(lambda: connection.execute(text("select count(*) from apscheduler_jobs")).scalar())


peer.main({"prepare": prepare, "work": work, "left": left})
