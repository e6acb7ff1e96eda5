"""All attacks, by name. Each module registers its own when it is imported."""
from attacks import connections, disk, headers, http, messages, streams, trust, updates  # noqa: F401
from attacks.registry import ATTACKS  # noqa: F401
