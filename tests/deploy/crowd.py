"""Made-up series of a run of 40 workers, half an hour long, as blocks for a Prometheus: one worker has a fifth of the others'
uplink. Recorded series are written as the rules would have recorded them."""
import math
import subprocess
import time

WORKERS, STRAGGLER = 40, 17
SECONDS, STEP = 1800, 30
UPDATE, RESULT, COMPUTE = 2.1e6, 31.4e6, 6.0  # bytes, bytes, seconds
RUN = 'namespace="made-up",run="crowd",instance="crowd-distro"'
WHOLE = ("distro_aggregator_workers", "distro_aggregator_min_workers", "distro_aggregator_run_state")  # these are counted


def uplink(worker):
    return 2.5e5 if worker == STRAGGLER else 1.25e6 * (1 + 0.15 * math.sin(7 * worker))


def downlink(worker):
    return 1.25e7 * (1 + 0.15 * math.cos(5 * worker))


def stages(worker):
    return {"compute": COMPUTE * (1 + 0.05 * math.sin(3 * worker)), "upload": UPDATE / uplink(worker), "download": RESULT / downlink(worker)}


def middle(values):
    ordered = sorted(values)
    return (ordered[len(ordered) // 2 - 1] + ordered[len(ordered) // 2]) / 2


ROUND = max(sum(stages(worker).values()) for worker in range(1, WORKERS + 1))
MEDIAN = {stage: middle([stages(worker)[stage] for worker in range(1, WORKERS + 1)]) for stage in ("compute", "upload", "download")}


def of_worker(worker):
    """(name, labels, value, whether it counts up by that much a second)."""
    rated, took = "instance_worker:distro_worker", stages(worker)
    yield f"{rated}_sent_bytes:rate5m", "", UPDATE / ROUND, False
    yield f"{rated}_received_bytes:rate5m", "", RESULT / ROUND, False
    yield f"{rated}_received_per_sent_bytes:ratio5m", "", RESULT / UPDATE, False
    yield f"{rated}_update_bytes:per_round5m", "", UPDATE, False
    yield f"{rated}_result_bytes:per_round5m", "", RESULT, False
    yield "instance_worker:distro_aggregator_included:ratio5m", "", 1, False
    for direction, bytes_, link in (("upload", UPDATE, uplink(worker)), ("download", RESULT, downlink(worker))):
        label = f'direction="{direction}"'
        yield "instance_worker_direction:distro_worker_goodput_bytes:rate5m", label, link, False
        yield "instance_worker_direction:distro_worker_link_use:ratio5m", label, bytes_ / ROUND / link, False
        yield "instance_worker_direction:distro_worker_transfer_seconds:rate5m", label, took[direction] / ROUND, False
        yield "distro_worker_link_capacity_bytes_per_second", label, link, False
        yield f"distro_worker_{direction}_duration_seconds_sum", "", took[direction] / ROUND, True
        yield f"distro_worker_{direction}_duration_seconds_count", "", 1 / ROUND, True
    for stage, seconds in took.items():
        label = f'stage="{stage}"'
        yield "instance_worker_stage:distro_worker_stage_seconds:per_round5m", label, seconds, False
        yield "instance_worker_stage:distro_worker_excess_seconds:per_round5m", label, seconds - MEDIAN[stage], False
    yield "distro_worker_rtt_seconds", "", 0.03 + 0.002 * worker, False
    yield "distro_worker_last_report_timestamp_seconds", "", 1, True


def of_run():
    yield "distro_aggregator_round", "", 1 / ROUND, True
    yield "instance:distro_aggregator_rounds:rate5m", "", 1 / ROUND, False
    yield "distro_aggregator_round_duration_seconds_sum", "", 1, True
    yield "distro_aggregator_round_duration_seconds_count", "", 1 / ROUND, True
    yield "instance:distro_aggregator_update_bytes:mean5m", "", UPDATE, False
    yield "distro_aggregator_result_size_bytes", "", RESULT, False
    yield "instance:distro_worker_gradient_per_sent_bytes:ratio5m", "", 4.9e9 / UPDATE, False
    yield "instance:distro_worker_gradient_per_received_bytes:ratio5m", "", 4.9e9 / RESULT, False
    yield "distro_aggregator_workers", 'state="active"', WORKERS, False
    yield "distro_aggregator_min_workers", "", 24, False
    yield "distro_aggregator_run_state", 'state="training"', 1, False
    yield "distro_aggregator_build_info", 'version="made-up"', 1, False


def lines(now):
    given = [(*series, f"worker-{worker}") for worker in range(1, WORKERS + 1) for series in of_worker(worker)]
    given += [(*series, None) for series in of_run()]
    for name, label, value, counts, worker in sorted(given, key=lambda entry: (entry[0], entry[1], entry[4] or "")):
        labels = ",".join(filter(None, [RUN, f'worker="{worker}"' if worker else "", label]))
        for second in range(0, SECONDS + 1, STEP):
            wobble = 1 if counts or name in WHOLE else 1 + 0.01 * math.sin(second / 97 + len(name) + hash_of(worker))
            yield f"{name}{{{labels}}} {value * second if counts else value * wobble:.6g} {now - SECONDS + second}"
    yield "# EOF"


def hash_of(worker):
    return sum(map(ord, worker or ""))


def write_blocks(folder):
    """Into folder/tsdb, ending now."""
    (folder / "crowd.txt").write_text("\n".join(lines(int(time.time()))) + "\n")
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "crowd.txt", folder / "tsdb"], check=True,
                   capture_output=True)
