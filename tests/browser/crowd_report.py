"""/status.json of a made-up run: the 1.2 B model on home links, where one worker has a fifth of the others' uplink."""
import math

UPDATE, RESULT, COMPUTE, PARAMETERS = 1.77e6, 31.4e6, 6.0, 1_204_000_000
STRAGGLER = 17


def worker(number, round_seconds):
    slow = number == STRAGGLER
    up = 2.5e5 if slow else 1.25e6 * (1 + 0.15 * math.sin(7 * number))
    down = 1.25e7 * (1 + 0.15 * math.cos(5 * number))
    upload, download = UPDATE / up, RESULT / down
    update = COMPUTE * (1 + 0.05 * math.sin(3 * number)) + upload
    problem = ("Slow uplink: 250 kB/s, most have 1.25 MB/s; its updates are in after 12.9 s, most after 7.4 s" if slow else "")
    return {
        "name": f"node-{number:03}", "state": "active", "reason": "in time", "severity": "bad" if slow else "good", "problem": problem,
        "runbook": "DistroUplinkSaturated" if slow else "", "in_state_seconds": 7200 + 60 * number, "silent_seconds": 0.4, "lag_rounds": 0,
        "agreement_score": math.sin(number), "probation_left": 0, "own_tokens": 0, "own_evaluation_loss": None, "loss": 2.61 + 0.04 * math.sin(11 * number),
        "tokens": 1_048_576 * 900, "sent_bytes": UPDATE * 900, "received_bytes": RESULT * 900, "received_snapshot_bytes": 0, "mirror_bytes": 0, "mirror_failures": 0,
        "tokens_per_second": 131072 / round_seconds,
        "up_bytes_per_second": UPDATE / round_seconds, "down_bytes_per_second": RESULT / round_seconds, "up_goodput": up,
        "down_goodput": down, "upload_ratio": upload / round_seconds,
        "wait_ratio": max(0.0, (round_seconds - update - download) / round_seconds), "download_ratio": download / round_seconds,
        "update_seconds": update, "rounds": 900, "included_rounds": 899, "last_included_round": 4211, "missed_in_a_row": 0,
        "local_steps": 12, "weight": 6, "excluded": ""}


def without_rates(name, **values):
    known = worker(1, 15.5)
    unknown = {key: None for key in ("tokens_per_second", "up_bytes_per_second", "down_bytes_per_second", "up_goodput", "down_goodput",
                                     "upload_ratio", "wait_ratio", "download_ratio", "update_seconds", "last_included_round", "loss")}
    return {**known, **unknown, "name": name, "included_rounds": 0, "problem": "", "runbook": "", **values}


def report(workers, others=()):
    """Workers that train, the straggler first as the aggregator sorts them, and some rows of others."""
    round_seconds = 15.5
    rows = [worker(number, round_seconds) for number in range(1, workers + 1)]
    order = ("bad", "warning", "good", "gone")
    rows = sorted([*rows, *others], key=lambda row: order.index(row["severity"]))
    states = {state: sum(row["state"] == state for row in rows)
              for state in ("joining", "synced", "probation", "active", "late", "suspect", "left", "quarantined")}
    training = [[r, 2.45 + 8 * math.exp(-r / 350) + 0.03 * math.sin(r * 1.7) + 0.02 * math.cos(r * 0.31)] for r in range(7, 4212, 8)]
    held_out = [[r, 2.48 + 8 * math.exp(-r / 350)] for r in range(100, 4212, 200)]
    return {
        "schema": 1, "time": 1.7e9,
        "run": {"id": "llama-1b2-5f21c0", "state": "training", "reason": "round 4212: waiting for node-017", "epoch": 3,
                "log_hash": "9f3a61d20c77be14", "version": "0.1.0", "method": "signs, K = 4", "insecure": False, "parameters": PARAMETERS, "min_workers": 24},
        "round": {"number": 4212, "of": 25000, "open_seconds": 11.2, "deadline_seconds": 24.0, "typical_seconds": round_seconds,
                  "per_minute": 60 / round_seconds, "complete": 4200, "deadline": 12, "excluded_ratio": 0.0, "last_commit_timestamp": 1.7e9,
                  "snapshot_round": 4098, "subscriber_lag_rounds": 0},
        "loss": {"training": training, "held_out": held_out, "held_out_last": held_out[-1][1]},
        "bytes": {"up": UPDATE, "down": RESULT, "gradient": 4.0 * PARAMETERS, "report_parameters": 1.2e9, "report_up": 2.8e6,
                  "report_down": 86.8e6, "received_update_bytes": UPDATE * workers * 4212, "sent_result_bytes": RESULT * workers * 4212},
        "totals": {"loss": training[-1][1], "tokens": 131072 * workers * 4212, "updates_received": workers * 4212,
                   "updates_expected": workers * 4212, "updates_rejected": 3, "state_hash_mismatches": 0, "sign_agreement_ratio": 0.83,
                   "log_bytes": 6.1e9, "disk_free_bytes": 412e9, "disk_bytes": 500e9},
        "states": states, "warnings": [],
        "readiness": {"ready": True, "checks": [{"name": name, "ok": True, "detail": detail} for name, detail in (
            ("loaded", ""), ("not_draining", ""), ("run", "llama-1b2-5f21c0"), ("workers", ""), ("disk", ""))]},
        "workers": rows}
