"""Calls over HTTP: the server's words as exceptions, and what is tried again."""

import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import sojourn
from sojourn.server import api


class FakeServer:
    """A server that gives prepared answers, `(status, body)` or None for a connection that is cut, and keeps what it was asked."""

    def __init__(self, test, *answers):
        prepared, self.asked = iter(answers), []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                asked.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
                answer = next(prepared)
                if answer is None:
                    self.connection.close()
                    return
                status, content, *headers = answer
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        test.addCleanup(thread.join)
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)


BUSY = (503, {"kind": "unavailable", "message": "starting"})


class Calls(unittest.TestCase):
    def setUp(self):
        self.pauses = []
        patch = mock.patch.object(api.time, "sleep", self.pauses.append)
        patch.start()
        self.addCleanup(patch.stop)

    def test_requests_carry_token_protocol_and_body(self):
        server = FakeServer(self, (200, {"done": True}))
        answer = api.Api([server.url], "secret").post("jobs/3/search", {"stop": [1]})
        self.assertEqual(answer, {"done": True})
        ((method, path, headers, body),) = server.asked
        self.assertEqual((method, path, body), ("POST", "/v1/jobs/3/search", {"stop": [1]}))
        self.assertEqual((headers["Authorization"], headers["sojourn-protocol"]), ("Bearer secret", "3"))

    def test_a_refusal_has_the_server_s_words_and_is_not_tried_again(self):
        server = FakeServer(self, (404, {"kind": "not-found", "message": "no job 77"}))
        with self.assertRaises(sojourn.Refused) as caught:
            api.Api([server.url]).get("jobs/77")
        refused = caught.exception
        self.assertEqual((refused.status, refused.kind, refused.message), (404, "not-found", "no job 77"))
        self.assertEqual((len(server.asked), self.pauses), (1, []))

    def test_a_busy_server_and_a_cut_connection_are_tried_again(self):
        server = FakeServer(self, BUSY, None, (200, [1]))
        self.assertEqual(api.Api([server.url]).get("jobs", mine=True, owner=None), [1])
        self.assertEqual([path for _, path, *_ in server.asked], ["/v1/jobs?mine=true"] * 3)

    def test_the_server_says_how_long_to_wait(self):
        server = FakeServer(self, (*BUSY, ("Retry-After", "7")), (200, {}))
        api.Api([server.url]).get("health")
        self.assertGreaterEqual(self.pauses[0], 7)
        impatient = FakeServer(self, (*BUSY, ("Retry-After", "3600")))
        with self.assertRaises(sojourn.Refused):
            api.Api([impatient.url]).get("health")

    def test_attempts_end(self):
        server = FakeServer(self, *[BUSY] * (api.MAX_RETRIES + 1))
        with self.assertRaises(sojourn.Refused):
            api.Api([server.url]).get("health")
        self.assertEqual(len(self.pauses), api.MAX_RETRIES)
        self.assertLessEqual(max(self.pauses), api.MAX_PAUSE)

    def test_of_several_servers_the_next_is_asked(self):
        gone = FakeServer(self)
        gone.server.server_close()
        server = FakeServer(self, (200, {}), (200, {}))
        away = []
        several = api.Api([gone.url, server.url], away=lambda: away.append(True))
        several.get("health")
        several.get("health")
        self.assertEqual((several.url, len(self.pauses), away), (server.url, 1, [True]))

    def test_a_server_that_comes_back_elsewhere_is_asked_there(self):
        gone, server = FakeServer(self), FakeServer(self, (200, {"here": True}))
        gone.server.server_close()
        moving = api.Api([gone.url], away=lambda: moving.move_to(server.url))
        self.assertEqual(moving.get("health"), {"here": True})

    def test_other_servers_and_none_are_said(self):
        other = FakeServer(self, (404, b"<html>"), (200, b"<html>"))
        for _ in range(2):
            with self.assertRaisesRegex(sojourn.Unreachable, "isn't one of a sojourn server"):
                api.Api([other.url]).call("GET", "health", retries=0)
        with self.assertRaisesRegex(ValueError, "no address of a server"):
            api.Api(["localhost:8642"])


if __name__ == "__main__":
    unittest.main()
