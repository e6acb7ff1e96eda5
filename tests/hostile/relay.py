"""An aggregator that lies: passes a worker's calls on to a real one, and changes what comes back.

    relay = Relay(aggregator.grpc, SubscribeRounds=lambda frames: ...)
    worker --aggregator relay.address

A lie is a function of an rpc's answer: of the message, or of the iterator of messages where it is a stream.
It returns the answer that the worker receives instead.
"""
import concurrent.futures
import contextlib

import grpc

from client.messages import pb

SERVICE = "distro.v1.AggregatorService"
CALLS = ("Join", "Heartbeat", "ReportState", "Leave")
STREAMS = ("SubscribeRounds", "DownloadSnapshot")


def _answers(name):
    """The class of an rpc's answer."""
    return getattr(pb, f"{name}Response")


@contextlib.contextmanager
def _refusals(context):
    """Passes on refusals of the real aggregator, with the reason."""
    try:
        yield
    except grpc.RpcError as error:
        context.set_trailing_metadata(error.trailing_metadata() or ())
        context.abort(error.code(), error.details())


class Relay(grpc.GenericRpcHandler):
    """`uploads`: the headers of all updates that a worker sent."""

    def __init__(self, target, **lies):
        self.uploads = []
        self._lies = lies
        self._channel = grpc.insecure_channel(target)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), handlers=(self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self):
        self._server.stop(None).wait()
        self._channel.close()

    def service(self, call):
        """The handler of a method; grpcio calls it."""
        service, name = call.method.strip("/").split("/")
        if service != SERVICE:
            return None
        as_bytes = {"request_deserializer": None, "response_serializer": None}
        if name in CALLS:
            return grpc.unary_unary_rpc_method_handler(lambda request, context: self._call(name, request, context), **as_bytes)
        if name in STREAMS:
            return grpc.unary_stream_rpc_method_handler(lambda request, context: self._stream(name, request, context), **as_bytes)
        return grpc.stream_stream_rpc_method_handler(self._upload, **as_bytes)

    def _call(self, name, request, context):
        with _refusals(context):
            answer = self._channel.unary_unary(f"/{SERVICE}/{name}")(request)
        message = _answers(name).FromString(answer)
        return self._lies.get(name, lambda truth: truth)(message).SerializeToString()

    def _stream(self, name, request, context):
        call = self._channel.unary_stream(f"/{SERVICE}/{name}")(request)
        context.add_callback(call.cancel)
        with _refusals(context):
            for message in self._lies.get(name, iter)(_answers(name).FromString(answer) for answer in call):
                yield message.SerializeToString()

    def _upload(self, requests, context):
        def noted():
            for request in requests:
                message = pb.UploadUpdateRequest.FromString(request)
                if message.HasField("header"):
                    self.uploads.append(message.header)
                yield request
        call = self._channel.stream_stream(f"/{SERVICE}/UploadUpdate")(noted())
        context.add_callback(call.cancel)
        with _refusals(context):
            yield from call
