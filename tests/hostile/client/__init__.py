"""A client of the protocol, written from docs/protocol.md, docs/payload_format.md, docs/algorithm.md, docs/security.md and
proto/distro/v1 alone: nothing of the project's own code is in it. It trains nothing: its votes are made up."""
