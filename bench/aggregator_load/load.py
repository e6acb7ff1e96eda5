#!/usr/bin/env python3
"""The aggregator under load: synthetic workers that speak the whole protocol, at the report's 1.2 B layout, K = 4 with signs and 128 with
deltas, beside a plain gRPC streaming loop that moves the same bytes on the same machine in the same run. Prints a table.

    bench/aggregator_load/load.py --build build/release            W = 8, 32, 128, 512
    bench/aggregator_load/load.py --build build/release --short    W = 8, 32; half a minute on two cores, two with deltas
    bench/aggregator_load/load.py ... --short --method deltas signs   both methods in turn
    bench/aggregator_load/load.py ... --workers 3 --method deltas --kept 32 128 4096   this many workers, and other K
    bench/aggregator_load/load.py ... --text FILE --out build/wire   also the updates of workers that learn from the text, recorded first

Workers and aggregator share the machine's cores, as floor's both ends do. One round goes first and is not measured. Random updates
agree in nothing and make results as large as they can be; recorded ones, of signs, are those of up to 32 workers, and W = 128 repeats
them. Results of deltas are not cut (bench/convergence/README.md, "What travels down").
"""
import argparse
import itertools
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "wire")]
import load_run  # noqa: E402
import processes  # noqa: E402
import recording  # noqa: E402

# (workers, votes kept per block (0: all), measured rounds)
SHORT = {"signs": ((8, 0, 3), (32, 0, 3), (32, 32, 3)), "deltas": ((8, 0, 3), (32, 0, 2))}
FULL = {"signs": ((8, 0, 8), (8, 32, 8), (32, 0, 5), (32, 32, 5), (128, 32, 3), (512, 32, 2)),
        "deltas": ((8, 0, 5), (32, 0, 3))}
RECORDED = ((8, 0, 8), (32, 0, 5), (32, 32, 5), (128, 32, 3))
MOST_RECORDED = 32
PHASES = ("validate", "combine", "encode")
LIMIT_SECONDS = 280  # of one row
HEADER = ("| updates | W | down | sent MB | received MB | rounds/s | aggregator CPU s a round | CPU ms a worker and round | peak RSS MB "
          "| validate, combine, encode: busy s a round | last upload byte to first result byte, ms p50, p99 | to last result byte "
          "| to first, at the aggregator, ms mean | segments back before the round's last acknowledgement | floor rounds/s "
          "| floor's server CPU s a round | ratio of throughput |")


def floor_seconds(build, space, workers, up, down, rounds):
    """Wall seconds per round of the streaming loop, and its server's processor seconds."""
    server = space.start("floor-server", [build / "stream_floor", "--listen", "127.0.0.1:0"])
    processes.until(lambda: server.alive() and server.out_path.read_text().endswith("\n"), "the floor's server listens")
    clients = space.start("floor-clients", [build / "stream_floor", "--server", server.out_path.read_text().strip(), "--workers", workers,
                                            "--up_bytes", up, "--down_bytes", down, "--rounds", rounds])
    if clients.exit_code(LIMIT_SECONDS):
        raise AssertionError(clients.log())
    cpu = load_run.cpu_seconds(server.child.pid)
    server.kill()
    return json.loads(clients.out_path.read_text())["seconds"] / rounds, cpu / rounds


def measure(build, workers, keep, rounds, recorded=None, **layout):
    with load_run.Load(build, workers, rounds + 1, keep, recorded, **layout) as load:
        seen, cpu = load.measure(lambda: [load.start()], LIMIT_SECONDS)
        peak = load_run.peak_bytes(load.aggregator.child.pid)
        busy = [load.aggregator.metric("distro_aggregator_phase_seconds_total", phase=phase) / len(seen) for phase in PHASES]
        at_server = load_run.result_latency(load.aggregator)
        up, down = load_run.update_bytes(load.aggregator, workers, len(seen)), seen[-1]["result_bytes"]
        load.aggregator.kill()
        floor, floor_cpu = floor_seconds(build, load.space, workers, up, down, rounds)
    firsts, lasts = load_run.segment_delays(seen)
    return {"up": up, "down": down, "seconds": load_run.seconds_a_round(seen), "cpu": cpu, "peak": peak, "busy": busy, "floor": floor,
            "floor_cpu": floor_cpu, "at_server": at_server, "firsts": firsts, "lasts": lasts, "early": load_run.early_share(seen)}


def row(updates, workers, keep, measured):
    def ms(values, share):
        return f"{1e3 * load_run.percentile(values, share):.0f}"
    m = measured
    busy = ", ".join(f"{seconds:.2f}" for seconds in m["busy"])
    return (f"| {updates} | {workers} | {f'top {keep}' if keep else 'lossless'} | {m['up'] / 1e6:.2f} | {m['down'] / 1e6:.2f} | {1 / m['seconds']:.3f} "
            f"| {m['cpu']:.2f} | {m['cpu'] / workers * 1e3:.0f} | {m['peak'] / 1e6:.0f} | {busy} | {ms(m['firsts'], .5)}, {ms(m['firsts'], .99)} "
            f"| {ms(m['lasts'], .5)}, {ms(m['lasts'], .99)} | {1e3 * m['at_server']:.0f} | {100 * m['early']:.0f} % "
            f"| {1 / m['floor']:.3f} | {m['floor_cpu']:.2f} | {m['floor'] / m['seconds']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with distro-aggregator, aggregator_load, stream_floor")
    parser.add_argument("--short", action="store_true", help="W = 8 and 32 at few rounds")
    parser.add_argument("--method", nargs="+", choices=tuple(FULL), default=["signs"], help="what the workers send (default: signs)")
    parser.add_argument("--workers", nargs="+", type=int, help="W (default: the rows of the table)")
    parser.add_argument("--kept", nargs="+", type=int, default=[None], help="K (default: the method's; at 1.2 B a worker of K = 4096 sends 151 MB)")
    parser.add_argument("--text", type=pathlib.Path, help="training text of the workers whose updates are recorded; needs --out")
    parser.add_argument("--out", type=pathlib.Path, help="folder in which recordings are kept")
    options = parser.parse_args()
    if options.text and not options.out:
        parser.error("--text: give --out, too, a folder for what is recorded")
    if options.text and "signs" not in options.method:
        parser.error("--text: what is recorded are updates of signs; add signs to --method")
    load_run.print_head(HEADER)
    build = options.build.resolve()
    for method, kept in itertools.product(options.method, options.kept):
        rows = [(workers, 0, 3) for workers in options.workers] if options.workers else (SHORT if options.short else FULL)[method]
        settings = {"method": method} | ({"kept_per_block": kept} if kept else {})
        name = f"{method}, K = {kept}, random" if kept else f"{method}, random"
        for workers, keep, rounds in rows:
            print(row(name, workers, keep, measure(build / "bin", workers, keep, rounds, **settings)), flush=True)
    if options.text is None:
        return
    for workers, keep, rounds in RECORDED:
        updates = recording.record(build, options.text, options.out.resolve(), min(workers, MOST_RECORDED))[1]
        print(row("signs, recorded", workers, keep, measure(build / "bin", workers, keep, rounds, updates)), flush=True)


if __name__ == "__main__":
    main()
