"""A store of objects with conditional writes, as programs see S3's, and with the faults of a test. It checks no signatures."""
import hashlib
import http.server
import threading
import time
import urllib.parse

ACCESS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


class ObjectStore:
    """`fault(method, key)` is asked before each request: None, or what happens instead:

    "refuse"   503, and nothing is done
    "lose"     it is done, and the connection ends without an answer
    "cut"      a part of the body is read, nothing is done, and the connection ends
    "stall"    nothing is done until release()
    """

    def __init__(self, host="127.0.0.1"):
        self.lock = threading.Lock()
        self.objects = {}  # key -> (bytes, {header: value})
        self.parts = {}  # upload -> {number: bytes}
        self.requests = []  # (method, key)
        self.fault = lambda method, key: None
        self.honours_conditions = True
        self.ahead = 0  # seconds that its clock is ahead of ours
        self.released = threading.Event()
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do(self):
                store.answer(self)

            do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = do

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # clients end their connections as they like
                pass

        self.server = Server((host, 0), Handler)
        self.url = "http://%s:%d" % self.server.server_address
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def environment(self):
        return {**ACCESS, "AWS_ENDPOINT_URL": self.url}

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def release(self):
        self.released.set()

    def keys(self, prefix=""):
        with self.lock:
            return sorted(key for key in self.objects if key.startswith(prefix))

    def answer(self, request):
        url = urllib.parse.urlsplit(request.path)
        key = url.path.lstrip("/").partition("/")[2]
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        fault = self.fault(request.command, key)
        with self.lock:
            self.requests.append((request.command, key))
        length = int(request.headers.get("Content-Length", 0))
        if fault == "cut":
            request.rfile.read(length // 2)
            request.close_connection = True
            return
        body = request.rfile.read(length)
        if fault == "stall":
            self.released.wait()
            request.close_connection = True
            return
        if fault == "refuse":
            return self.send(request, 503, error="SlowDown")
        if hashlib.sha256(body).hexdigest() != request.headers["x-amz-content-sha256"]:
            return self.send(request, 400, error="XAmzContentSHA256Mismatch")
        sent = time.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
        if abs(time.mktime(sent) - time.mktime(time.gmtime()) - self.ahead) > 900:
            return self.send(request, 403, error="RequestTimeTooSkewed")
        with self.lock:
            answer = self.act(request, key, query, body)
        if fault == "lose":
            request.close_connection = True
            return
        self.send(request, *answer)

    def act(self, request, key, query, body):
        """Status, body and headers."""
        if "list-type" in query:
            return 200, self.list(query["prefix"], query["start-after"]), {}
        there = self.objects.get(key)
        if request.command in ("GET", "HEAD"):
            return (404, b"", {}) if there is None else (200, *there)
        if request.command == "DELETE":
            if "uploadId" in query:
                self.parts.pop(query["uploadId"], None)
            elif there is not None:
                del self.objects[key]
            return 204, b"", {}
        if request.command == "POST" and "uploads" in query:
            upload = f"upload/{len(self.requests)}+"
            self.parts[upload] = {0: request.headers["x-amz-meta-distro-sha256"]}
            return 200, f"<R><UploadId>{upload}</UploadId></R>".encode(), {}
        if request.command == "PUT" and "partNumber" in query:
            self.parts[query["uploadId"]][int(query["partNumber"])] = body
            return 200, b"", {"ETag": '"%s"' % hashlib.md5(body).hexdigest()}
        headers = {"x-amz-meta-distro-sha256": request.headers["x-amz-meta-distro-sha256"]}
        if request.command == "POST":
            parts = self.parts.pop(query["uploadId"])
            headers = {"x-amz-meta-distro-sha256": parts.pop(0)}
            body = b"".join(parts[number] for number in sorted(parts))
        elif self.honours_conditions and not self.holds(request.headers, there):
            return 412, b"<Error><Code>PreconditionFailed</Code></Error>", {}
        headers["ETag"] = '"%s"' % hashlib.md5(body).hexdigest()
        self.objects[key] = (body, headers)
        return 200, b"", headers

    def list(self, prefix, after):
        """Seven at a time."""
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        listed = "".join(f"<Contents><Key>{key}</Key><Size>{len(self.objects[key][0])}</Size></Contents>" for key in keys[:7])
        return f"<R><IsTruncated>{str(len(keys) > 7).lower()}</IsTruncated>{listed}</R>".encode()

    @staticmethod
    def holds(headers, there):
        if headers.get("If-None-Match") == "*" and there is not None:
            return False
        wanted = headers.get("If-Match")
        return wanted is None or there is not None and there[1]["ETag"] == wanted

    def send(self, request, status, body=b"", headers=None, error=None):
        if error:
            body = f"<Error><Code>{error}</Code><Message>of a test</Message></Error>".encode()
        request.send_response_only(status)
        for name, value in (headers or {}).items():
            if value is not None:
                request.send_header(name, value)
        request.send_header("Date", time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + self.ahead)))
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)
