# Varnish 7 in front of an aggregator's --objects (docs/deploy.md, "Mirrors"). Replace the backend's host and port.
# Clients that ask for the same object while it is fetched get its bytes as they arrive: the aggregator sends one copy.
#
#   varnishd -F -a :80 -f objects.vcl -s malloc,8G -p send_timeout=86400     # a snapshot over a slow link takes hours
vcl 4.1;

import std;

backend default {
  .host = "aggregator";
  .port = "7704";
  .connect_timeout = 2s;
  .first_byte_timeout = 10s;
  .between_bytes_timeout = 10s;
}

sub vcl_recv {
  if (req.method != "GET" && req.method != "HEAD") {
    return (synth(405));
  }
  if (req.url == "/healthz") {
    return (synth(200));
  }
  if (req.url !~ "^/v1/objects/[^?]*$") {
    return (synth(404));
  }
  unset req.http.Cookie;
  unset req.http.Authorization;
  return (hash);
}

sub vcl_hash {
  # A name has the SHA-256 of the bytes: the same object under every host name.
  hash_data(req.url);
  return (lookup);
}

sub vcl_backend_response {
  set beresp.grace = 0s;
  if (beresp.status != 200) {
    # What is missing now may be there in a moment.
    set beresp.ttl = 0s;
    set beresp.uncacheable = true;
  }
  if (std.bytes(beresp.http.Content-Length + "B", 1TB) > storage.s0.free_space + storage.s0.used_space) {
    # Otherwise the response would break off where the cache is full, and the aggregator would have sent it in vain.
    return (error(503, "larger than the cache"));
  }
  return (deliver);
}
