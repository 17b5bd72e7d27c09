"""PostgreSQL and Redis of our own: data below `.work/run`, a free port on loopback, ended by their process ids.

Both come from Debian's packages. What is not installed is fetched with `apt-get download` and unpacked below `.work`,
which needs no rights and starts no service.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from . import debian
from .shell import NotRun, command, end

POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "max_connections": "200",
}
REDIS_SETTINGS = {
    "redis-always": {"appendonly": "yes", "appendfsync": "always"},
    "redis-everysec": {"appendonly": "yes", "appendfsync": "everysec"},
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Servers:
    """Starts each server when it is first asked for."""

    def __init__(self, work):
        self.work = work
        self.started = {}

    def get(self, name):
        if name == "sqlite":
            return Sqlite(self.work)
        if name not in self.started:
            make = Postgres if name == "postgres" else Redis
            self.started[name] = make(self.work, name)
        return self.started[name]

    def facts(self):
        return {name: {"version": server.version, "settings": server.settings}
                for name, server in self.started.items()}

    def stop(self):
        for server in self.started.values():
            server.stop()


class Sqlite:
    """A directory for each measurement."""

    def __init__(self, work):
        self.work = work

    def fresh(self):
        place = self.work / "run" / f"sqlite-{secrets.token_hex(4)}"
        place.mkdir(parents=True)
        return str(place)

    def discard(self, url):
        shutil.rmtree(url, ignore_errors=True)


class Postgres:
    def __init__(self, work, name):
        self.settings = POSTGRES_SETTINGS
        self.log = work / "run" / f"{name}.log"
        programs = debian.find("postgresql", "usr/lib/postgresql/*/bin/initdb", work)
        self.bin, self.env = programs.path.parent, programs.env
        self.data = work / "run" / name
        self.port = free_port()
        self.password = secrets.token_hex(12)
        # PostgreSQL refuses to run as root.
        self.user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} \
            if os.geteuid() == 0 else {}
        closed = [place for place in work.parents if not place.stat().st_mode & 0o001]
        if self.user and closed:
            raise NotRun(f"PostgreSQL refuses to run as root and nobody else may enter {closed[-1]}; "
                         "run this as another user or keep the working tree elsewhere")
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(parents=True)
        key = work / "run" / f"{name}.password"
        key.write_text(self.password)
        if self.user:
            shutil.chown(self.data, "nobody")
            shutil.chown(key, "nobody")
        key.chmod(0o400)
        self._run("initdb", "-D", self.data, "-U", "bench", "-E", "UTF8", "--locale=C", "-A", "scram-sha-256",
                  f"--pwfile={key}")
        self.version = self._run("postgres", "--version").split(") ")[-1].split(" (")[0].strip()
        given = self.settings | {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        words = [word for key, value in given.items() for word in ("-c", f"{key}={value}")]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([self.bin / "postgres", "-D", self.data, *words], stdout=log, stderr=log,
                                            cwd="/", env=os.environ | self.env, start_new_session=True, **self.user)
        self._wait()

    def _run(self, program, *words):
        return command([self.bin / program, *words], self.log, cwd="/", env=self.env, **self.user)

    def _wait(self):
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.sql("select 1")
                return
            except NotRun:
                time.sleep(0.2)
        self.stop()
        raise NotRun(f"PostgreSQL does not answer (see {self.log})")

    def sql(self, statement, database="postgres"):
        return command([self.bin / "psql", "-h", "127.0.0.1", "-p", self.port, "-U", "bench", "-d", database,
                        "-v", "ON_ERROR_STOP=1", "-qAtc", statement], self.log, cwd="/",
                       env=self.env | {"PGPASSWORD": self.password}, seconds=120)

    def fresh(self):
        """An empty database, with what the last measurement left behind written out."""
        name = f"bench_{secrets.token_hex(4)}"
        self.sql(f"create database {name}")
        self.sql("checkpoint")
        return f"postgres://bench:{self.password}@127.0.0.1:{self.port}/{name}"

    def discard(self, url):
        self.sql(f"drop database if exists {url.rsplit('/', 1)[1]} with (force)")

    def stop(self):
        end(self.process, signal.SIGINT)


class Redis:
    def __init__(self, work, name):
        self.settings = REDIS_SETTINGS[name]
        program = debian.find("redis-server", "usr/bin/redis-server", work)
        self.data = work / "run" / name
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(parents=True)
        self.port = free_port()
        log = work / "run" / f"{name}.log"
        env = os.environ | program.env
        said = command([program.path, "--version"], log, env=program.env)
        self.version = said.split("v=")[1].split()[0]
        words = [word for key, value in self.settings.items() for word in (f"--{key}", value)]
        with open(log, "a") as out:
            self.process = subprocess.Popen(
                [program.path, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.data, *words],
                stdout=out, stderr=out, env=env, start_new_session=True)
        until = time.monotonic() + 30
        while not self._says("PING").startswith(b"+PONG"):
            if time.monotonic() > until or self.process.poll() is not None:
                self.stop()
                raise NotRun(f"Redis does not answer (see {log})")
            time.sleep(0.1)

    def _says(self, word):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as talk:
                talk.sendall(f"{word}\r\n".encode())
                return talk.recv(100)
        except OSError:
            return b""

    def fresh(self):
        self._says("FLUSHALL")
        return f"redis://127.0.0.1:{self.port}/0"

    def discard(self, _url):
        self._says("FLUSHALL")

    def stop(self):
        end(self.process, signal.SIGTERM)


def directory_of_starts():
    """Where handlers write down that they started: in memory, so that it does not compete for the disk."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else None
