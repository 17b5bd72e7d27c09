"""Celery on Redis: one worker with a process a core, prefetching as its guide recommends for short tasks."""

import os
import signal
import threading

from celery import Celery
from celery.signals import worker_ready
from redis import Redis

import peer
from peer import settings, task

app = Celery("noop", broker=task["url"])
app.conf.update(
    worker_prefetch_multiplier=settings["worker_prefetch_multiplier"],
    task_acks_late=settings["task_acks_late"],
    task_ignore_result=settings["task_ignore_result"],
    worker_redirect_stdouts=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(n, meant):
    peer.started(n, meant)


def prepare():
    with app.producer_pool.acquire() as producer:
        for n in range(task["jobs"]):
            noop.apply_async((n, 0), producer=producer)
    peer.answer(prepared=task["jobs"])


def offer():
    def send(jobs):
        for job in jobs:
            noop.apply_async(job)
    peer.offer(send)


def work():
    worker_ready.connect(lambda **_: peer.answer(began_us=peer.now_us()), weak=False)

    def stop_when_told():
        peer.wait_until_told()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_when_told, daemon=True).start()
    try:
        app.worker_main(["worker", f"--concurrency={settings['concurrency']}", "--loglevel=ERROR", "--without-gossip",
                         "--without-mingle", "--without-heartbeat"])
    except SystemExit:
        pass
    peer.answer(stopped=True)


def left():
    redis = Redis.from_url(task["url"])
    peer.counting(lambda: redis.llen("celery") + redis.hlen("unacked"))


peer.main({"prepare": prepare, "offer": offer, "work": work, "left": left})
