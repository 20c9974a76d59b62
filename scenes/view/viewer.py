"""The viewer in the browser: a recording, or a world that runs. The only file that imports viser."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
import webbrowser
from typing import Any, Protocol

from ..recordings.recording import Recording
from ..sources import SceneLike

RATE = 1 / 30  # [s] between pictures that are sent


class Show(Protocol):
    """A show: it adds its controls and nodes to the server when it is made."""

    def advance(self, seconds: float) -> None:
        """Advance by seconds of real time."""
        ...


class Viewer:
    """A server and its show.  url: its address."""

    def __init__(self, server: Any, show: Show, url: str) -> None:
        self.server, self.show, self.url = server, show, url
        self.trouble: BaseException | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="carom viewer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        before = time.perf_counter()
        while not self._ends.wait(max(0.0, before + RATE - time.perf_counter())):
            now = time.perf_counter()
            try:
                self.show.advance(now - before)
            except BaseException as error:  # `wait` raises it
                self.trouble = error
                self._ends.set()
            before = now

    def wait(self) -> None:
        """Wait until Ctrl-C, which ends it."""
        with contextlib.suppress(KeyboardInterrupt):
            while not self._ends.wait(0.5):  # in pieces, so that Ctrl-C is heard on every system
                pass
        self.close()
        if self.trouble is not None:
            raise self.trouble

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self.server.stop()


def view(
    source: Recording | SceneLike,
    *,
    port: int = 8080,
    host: str = "127.0.0.1",
    open_browser: bool = True,
    block: bool = True,
) -> Viewer:
    """Show a recording, or run a scene, in the browser.

    source: a Recording; or a SceneSpec, a SceneBuilder, an import or an argument of `carom.load`, which runs as you
        watch.
    port: 0 takes a free one.  host: "0.0.0.0" lets other machines connect.
    block: until Ctrl-C; else the Viewer is returned at once, and `close` ends it.
    """
    try:
        import viser
    except ImportError as error:
        raise ImportError("view: viser is not installed: pip install 'carom[view]'") from error
    port = _free_port(host, port)
    with contextlib.redirect_stdout(io.StringIO()):  # its banner
        server = viser.ViserServer(host=host, port=port, label="Carom", verbose=False)
    try:
        show = _make_show(server, source)
    except BaseException:
        server.stop()
        raise
    shown = "localhost" if host in ("0.0.0.0", "127.0.0.1") else host
    viewer = Viewer(server, show, f"http://{shown}:{port}")
    print(f"view: {viewer.url}" + ("  (Ctrl-C ends it)" if block else ""), flush=True)
    if open_browser:
        webbrowser.open(viewer.url)
    if block:
        viewer.wait()
    return viewer


def _make_show(server: Any, source: Recording | SceneLike) -> Show:
    if isinstance(source, Recording):
        from .recording import RecordingShow

        return RecordingShow(server, source)
    from .live import LiveShow

    print("view: compiling the scene ...", flush=True)
    return LiveShow(server, source)


def _free_port(host: str, port: int) -> int:
    """The port, if it is free; viser would take another one in silence."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            other = port + 1 if 0 <= port < 65535 else 8080
            reason = getattr(error, "strerror", None) or "it is from 0 to 65535"
            raise ValueError(f"view: port is {port} on {host}: {reason}; give another, e.g. port={other}") from error
        return probe.getsockname()[1]
