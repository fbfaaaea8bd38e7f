# SPDX-License-Identifier: Apache-2.0
"""Network bytes of a job, against what the programs themselves have counted. What is sent is exact;
of what is received tcp_info counts the other side's closing (FIN) as one byte. Each test has a
network namespace of its own: others on the machine have sockets, too."""
import ctypes
import os
import subprocess
import tempfile
import time

import pytest

from proctor_cli import PATIENCE, SLACK, finish, read_csv, skip_visibly, wait_until

PYTHON = "/usr/bin/python3"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
MB = 1000000

# peer HOST PORT: says what it got, and answers 1000 bytes to each connection.
SERVER = """
import socket, sys, threading
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.socket(family)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen(512)
print("ready", flush=True)
def serve(connection):
    while connection.recv(1 << 16):
        pass
    connection.sendall(b"r" * 1000)
    connection.close()
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
"""

# client HOST PORT BYTES TIMES PAUSE: says how many bytes it sent and got.
CLIENT = """
import socket, sys, time
host, port, size, times, pause = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
sent = got = 0
for i in range(times):
    c = socket.socket(family)
    c.connect((host, port))
    c.sendall(b"x" * size)
    sent += size
    time.sleep(pause)
    c.shutdown(socket.SHUT_WR)
    while piece := c.recv(1 << 16):
        got += len(piece)
    c.close()
print(sent, got)
"""


class Space:
    """A network namespace, for the time of a test."""

    def __init__(self, name):
        self.name = name
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
        if made.returncode:
            skip_visibly(f"ip netns: {made.stderr.strip()}")
        self.ip("link", "set", "lo", "up")

    def ip(self, *words):
        subprocess.run(["ip", "-n", self.name, *words], check=True)

    def words(self, *words):
        return ["nsenter", f"--net=/run/netns/{self.name}", *map(str, words)]

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False)


@pytest.fixture
def space():
    it = Space(f"proctor-test-{os.getpid()}")
    yield it
    it.remove()


@pytest.fixture
def other_space(space):
    """A second one, with a cable to the first: 10.7.7.1 here, 10.7.7.2 there."""
    it = Space(f"proctor-test-{os.getpid()}-b")
    try:
        space.ip("link", "add", "here", "type", "veth", "peer", "name", "there", "netns", it.name)
        for where, device, address in ((space, "here", "10.7.7.1/24"), (it, "there", "10.7.7.2/24")):
            where.ip("addr", "add", address, "dev", device)
            where.ip("link", "set", device, "up")
        yield it
    finally:
        it.remove()


def serve(proctor, space, host="127.0.0.1", port=4000):
    server = proctor.other(space.words(PYTHON, "-c", SERVER, host, port), stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"ready\n"
    return server


def record(proctor, space, *job, user=(), options=("-i", "50ms")):
    """The summary, and what the job wrote."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are not for everybody
        os.chmod(folder, 0o777)
        words = proctor.arguments("run", "-q", *options, "--summary", f"{folder}/s.json", "--", *job)
        done = subprocess.run(space.words(*user, *words), capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, **proctor.options({"cwd": "/"}))
        assert done.returncode == 0, done.stderr
        return proctor.summary(f"{folder}/s.json"), done.stdout


def net(summary):
    """Received, sent, unattributed."""
    return [summary["metrics"][f"net.{key}"]["total"] for key in ("rx", "tx", "unattributed")]


def client(size, times=1, pause=0.5, host="127.0.0.1", port=4000):
    return [PYTHON, "-c", CLIENT, host, port, size, times, pause]


@pytest.mark.parametrize("user", [[], NOBODY], ids=["root", "nobody"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_client_of_a_server_outside(proctor, space, user, host):
    serve(proctor, space, host)
    summary, out = record(proctor, space, *client(5 * MB, host=host), user=user)
    assert out.split() == [str(5 * MB), "1000"]
    assert net(summary) == [1001, 5 * MB, 0]
    assert "mark" not in summary["metrics"]["net.tx"]


def test_a_server_inside(proctor, space):
    """Its accepted sockets count; the client, outside, does not."""
    server = proctor.start("run", "-q", "-i", "50ms", "--summary", proctor.summary_file, "--", PYTHON, "-c", SERVER,
                           "127.0.0.1", "4000", **wrapped(proctor, space))
    assert server.stdout.readline() == b"ready\n"
    subprocess.run(space.words(*client(3 * MB)), check=True, stdout=subprocess.DEVNULL)
    os.kill(proctor.job_of(server), 15)
    finish(server)
    assert net(proctor.summary()) == [3 * MB + 1, 1000, 0]


def wrapped(proctor, space):
    """Popen options that put what is started into the namespace."""
    fd = os.open(f"/run/netns/{space.name}", os.O_RDONLY | os.O_CLOEXEC)
    setns = ctypes.CDLL(None).setns
    return {"preexec_fn": lambda: setns(fd, 0x40000000)}


def test_both_ends_inside_count_both(proctor, space):
    script = f"{PYTHON} -c '{SERVER}' 127.0.0.1 4000 & sleep 0.5; {PYTHON} -c '{CLIENT}' 127.0.0.1 4000 {MB} 1 0.5; kill $!"
    summary, _ = record(proctor, space, "sh", "-c", script)
    assert net(summary) == [1001 + MB + 1, 1000 + MB, 0]


def test_short_connections_of_a_server(proctor, space):
    """They are gone before anybody sees whose they were: the listening socket tells."""
    server = proctor.start("run", "-q", "-i", "100ms", "--summary", proctor.summary_file, "--", PYTHON, "-c", SERVER,
                           "127.0.0.1", "4000", **wrapped(proctor, space))
    assert server.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    subprocess.run(space.words(*client(10000, 1000, 0)), check=True, stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    os.kill(proctor.job_of(server), 15)
    finish(server)
    rx, tx, unattributed = net(proctor.summary())
    # The client's ends are nobody's, so far as they were not seen; the server's are the job's.
    assert 1000 * 10000 <= rx <= 1000 * 10001
    assert tx == 1000 * 1000
    assert unattributed <= 1000 * (10000 + 1001)


@pytest.mark.parametrize("user", [[], NOBODY], ids=["root", "nobody"])
def test_short_connections_of_a_client(proctor, space, user):
    """Nothing is lost and nothing counts twice; what nobody saw in time is unattributed."""
    serve(proctor, space)
    summary, out = record(proctor, space, *client(10000, 1000, 0), user=user, options=("-i", "100ms"))
    sent, got = map(int, out.split())
    rx, tx, unattributed = net(summary)
    assert "mark" not in summary["metrics"]["net.tx"], "events were lost"
    assert sent + got <= rx + tx + unattributed <= sent + got + 1000
    assert unattributed > 0.5 * sent


def test_an_inherited_socket_counts_once(proctor, space):
    serve(proctor, space)
    csv = proctor.folder / "m.csv"
    job = f"""
import os, socket, time
c = socket.create_connection(("127.0.0.1", 4000))
c.sendall(b"x" * {MB})
time.sleep(0.4)
if os.fork():
    time.sleep(0.4)
    os._exit(0)
time.sleep(0.8)
c.sendall(b"y" * {MB})
time.sleep(0.4)
"""
    summary, _ = record(proctor, space, PYTHON, "-c", job, options=(
        "-i", "50ms", "--csv", csv, "--processes", "--wait-tree"))
    assert net(summary)[1:] == [2 * MB, 0]
    sent = {}
    for row in read_csv(csv.with_name("m.processes.csv")):
        sent[row["pid"]] = float(row["net_tx_bytes"] or 0)
    assert sorted(sent.values()) == [MB, MB]  # each what it was the first to be seen with


def test_a_connection_from_before(proctor, space):
    serve(proctor, space)
    job = f"""
import socket, sys
c = socket.create_connection(("127.0.0.1", 4000))
c.sendall(b"x" * {MB})
print("sent", flush=True)
sys.stdin.readline()
c.sendall(b"y" * 12345)
c.shutdown(socket.SHUT_WR)
print(len(c.recv(4000)), flush=True)
sys.stdin.readline()
"""
    target = proctor.other(space.words(PYTHON, "-c", job), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"sent\n"
    csv = proctor.folder / "a.csv"
    attach = proctor.start("attach", "-q", "-i", "50ms", "--csv", csv, "--summary", proctor.summary_file, target.pid,
                           **wrapped(proctor, space))
    wait_until(lambda: csv.exists() and len(csv.read_text().splitlines()) > 2, "a sample")
    target.stdin.write(b"\n")
    target.stdin.flush()
    assert target.stdout.readline() == b"1000\n"
    lines = len(csv.read_text().splitlines())
    wait_until(lambda: len(csv.read_text().splitlines()) > lines + 3, "samples")
    target.communicate(b"\n", timeout=PATIENCE)
    finish(attach)
    assert net(proctor.summary()) == [1001, 12345, 0]


def test_a_socket_that_the_job_was_given(proctor, space):
    """As inetd does it: what moved before the job is not its, the rest is."""
    serve(proctor, space)
    giver = f"""
import os, socket, sys
c = socket.create_connection(("127.0.0.1", 4000))
c.sendall(b"x" * {MB})
os.dup2(c.fileno(), 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
    job = """
import socket, time
c = socket.socket(fileno=0)
c.sendall(b"y" * 12345)
time.sleep(0.3)
c.shutdown(socket.SHUT_WR)
print(len(c.recv(4000, socket.MSG_WAITALL)))
"""
    words = proctor.arguments("run", "-q", "-i", "50ms", "--summary", proctor.summary_file, "--", PYTHON, "-c", job)
    done = subprocess.run(space.words(PYTHON, "-c", giver, *words), capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL, **proctor.options({"cwd": "/"}))
    assert done.stdout == "1000\n", done.stderr
    assert net(proctor.summary()) == [1001, 12345, 0]


def test_over_a_cable(proctor, space, other_space):
    """A server that is not on this machine, as far as sockets can be seen."""
    serve(proctor, other_space, "10.7.7.2")
    summary, _ = record(proctor, space, *client(8 * MB, host="10.7.7.2"))
    assert net(summary) == [1001, 8 * MB, 0]


def test_a_job_in_a_namespace_of_its_own(proctor, space, other_space):
    """What went through its interfaces: payload and headers, from the moment it was seen there."""
    serve(proctor, other_space, "10.7.7.2")
    wait = 0.5 * SLACK  # for it to be seen there, before and after
    job = [PYTHON, "-c", f"import time; time.sleep({wait})\n" + CLIENT, "10.7.7.2", 4000, 8 * MB, 1, wait]
    here = Space(f"proctor-test-{os.getpid()}-c")
    try:
        summary, _ = record(proctor, here, *space.words(*job), options=("-i", "50ms"))
    finally:
        here.remove()
    rx, tx, unattributed = net(summary)
    assert 8 * MB <= tx <= 8.8 * MB
    assert 1000 <= rx <= 0.8 * MB
    assert unattributed == 0


def test_not_under_another_root(proctor):
    done = proctor("attach", "-q", "--root", f"/proc/{os.getpid()}/root", "--duration", "0.2s",
                   "--summary", proctor.summary_file, os.getpid())
    assert done.returncode == 0, done.stderr
    absent = {a["metric"]: a["reason"] for a in proctor.summary()["absent"]}
    assert "--root" in absent["net.rx"] and "--root" in absent["net.unattributed"]
