"""Prometheus scrapes of the server, one after the other in one file, each under a line with its time."""
import http.client
import threading
import time


class Scraper:
    def __init__(self, path, port, every_s=1.0):
        self._path, self._port, self._every = path, port, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error = None

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()
        if self.error:
            raise self.error

    def _run(self):
        try:
            with open(self._path, "w", encoding="utf-8") as file:
                while True:
                    text = self._scrape()
                    if text:  # a server that does not answer leaves a gap, as it does for a real scraper
                        file.write(f"# scrape {time.time_ns()}\n{text}")
                    if self._stop.wait(self._every):
                        return
        except OSError as error:
            self.error = error

    def _scrape(self):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            return response.read().decode() if response.status == 200 else ""
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()
