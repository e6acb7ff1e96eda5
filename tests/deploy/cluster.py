"""The cluster that tests run in, where the environment names one:

    KUBECONFIG            the cluster; its nodes have the images, and pod and service addresses answer from this machine, which pods reach
    DISTRO_IMAGE_PREFIX   for example localhost/distro: PREFIX/aggregator, PREFIX/tools and PREFIX/worker-cpu are run
    DISTRO_IMAGE_TAG      their tag; default: test
    DISTRO_VARNISH_IMAGE  optional: Varnish for the mirror of the chart, which is not started without
    DISTRO_BIN            distroctl and distro-worker of the same build
"""
import os
import pathlib
import subprocess
import time

import pytest

from charts import SOURCE

KUBECONFIG, PREFIX = os.environ.get("KUBECONFIG"), os.environ.get("DISTRO_IMAGE_PREFIX")
TAG = os.environ.get("DISTRO_IMAGE_TAG", "test")
BIN = pathlib.Path(os.environ.get("DISTRO_BIN", SOURCE / "build/dev/bin"))
LIMIT = 300
SMALL = {"requests": {"cpu": "50m", "memory": "64Mi"}}
IMAGES = {"image": {"registry": PREFIX, "repository": "aggregator", "tag": TAG}, "toolsImage": {"repository": "tools", "tag": TAG},
          "workers": {"image": {"repository": "worker-cpu", "tag": TAG}}}

needed = pytest.mark.skipif(not (KUBECONFIG and PREFIX), reason="needs a cluster: set KUBECONFIG and DISTRO_IMAGE_PREFIX (docs/deploy.md)")


def kubectl(namespace, *arguments, text=None):
    done = subprocess.run(["kubectl", "-n", namespace, *arguments], input=text, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {LIMIT} s: {what}"
        time.sleep(0.2)
    return found
