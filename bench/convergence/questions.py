"""The questions of the study: each is a function of a lab that returns a table. Settings are chosen with one seed; the chosen ones are
measured with three."""
from lab import LONG_TEXT, STEPS, Run
from page import table
from tuning import (BASES, CHOICES, DECAYS, METHODS, RATES, SHOWN, bits_of, climb, deltas, loss_of, loss_of_seeds, rows_of, traffic_of, tuned)

QUESTIONS = {}


def question(function):
    QUESTIONS[function.__name__] = function
    return function


@question
def methods(lab):
    """Every method, tuned from a first guess until no neighbour is better (one seed); then three seeds of the best. Bytes per step."""
    lab.run([first for first, _ in METHODS.values()])

    def cells(name):
        best, tried = tuned(lab, name)
        decays = [best.value(decay) for decay in ("beta", "mu", "beta1", "beta2")]
        return [tried, f"{best.lr:g}", ", ".join(f"{decay:g}" for decay in decays if decay is not None), loss_of_seeds(lab, best),
                *traffic_of(lab, best)]
    return table(["method", "settings tried", "rate", "decays", "held-out loss", "sent", "received"], rows_of(lab, [(name, name) for name in METHODS], cells))


def each(lab, variants, header="setting"):
    """One seed of each named run, with the bytes per step."""
    return table([header, "held-out loss", "sent", "received"], rows_of(lab, variants, lambda run: [loss_of(lab, run), *traffic_of(lab, run)]))


@question
def attackers(lab):
    """One of eight workers is hostile: the round after which agreement suspects it, and the loss if it is then excluded."""
    never = (0, 0, 0, 0, 0, 0, 0, 10**6)
    attacks = (("none", {}), ("none, seven workers", {"first_round": never}), ("the cap everywhere, signs as they are", {"attack": "cap"}), ("random signs", {"attack": "random"}),
               ("inverted signs, its own scales", {"attack": "inverted", "attack_multiple": 0}),
               ("inverted signs at the median", {"attack": "inverted", "attack_multiple": 1}),
               ("inverted signs at the cap", {"attack": "inverted_cap"}))
    defences = (("caps as they are", {}), ("no caps above 16 rates", {"cap_growth": 255}), ("C_min a quarter", {"rho": 0.25}),
                ("norms clipped at the median", {"norm_clip": 1}))
    rows = []
    for name, base in BASES:
        asked = defences if base.value("window") > 1 else defences[:1] + defences[3:4]
        for what, attack in attacks:
            tried = asked[:1] if "first_round" in attack else asked

            def cells(defence):
                run = base.having(**attack, **defence)
                suspected, left_out = lab.suspected(run).get(7), run.having(quarantine=True)
                if suspected is None:
                    return [loss_of(lab, run)]
                lab.run([left_out])
                return [loss_of(lab, run), f"{suspected}", *(f"{loss:.3f}" for loss in lab.known([left_out]).values())]
            rows += [[f"{name}, {what}", *row] for row in rows_of(lab, tried, cells)]
    signs = METHODS["signs, K = 32"][0]
    rows += rows_of(lab, [(f"signs, {what}", signs.having(attack=attack) if attack else signs)
                     for what, attack in (("none", None), ("random signs", "random"), ("inverted signs", "inverted"))],
                    lambda run: ["one vote each", loss_of(lab, run)])
    return table(["attack", "defence", "held-out loss", "suspected after round", "and left out"], rows)


@question
def accomplices(lab):
    """Honest workers of other data and other speed, and a quarter of eight workers that all send the same: the loss, and who is suspected and left out."""
    h1, h5 = (base.having(quarantine=True) for _, base in BASES)
    speeds = h5.having(window=9, steps=540, warmup=54, worker_steps=(1, 1, 2, 2, 8, 8, 9, 9))
    two, other = {"attackers": 2, "attack_together": True}, {"backwards": 2}
    inverted = two | {"attack": "inverted_cap"}
    both = (("all honest", {}), ("two of other data", other), ("six, all honest", {"first_round": (0,) * 6 + (10**6,) * 2}),
            ("two invert their signs at the cap", inverted), ("the same, and two of other data", inverted | other))
    alike = (("one of other data", {"backwards": 1}), ("three of other data", {"backwards": 3}), ("two send the same signs in every round", two | {"attack": "drift"}),
             ("two send random signs", two | {"attack": "random"}), ("two invert a third of their blocks at the cap", two | {"attack": "third_inverted_cap"}))
    variants = [(f"{name}, {what}", base.having(**changes)) for name, base, asked in (("H = 1", h1, both + alike), ("1 to 9 steps", speeds, both)) for what, changes in asked]

    def cells(run):
        suspected = sorted(lab.suspected(run).items())
        return [loss_of(lab, run), ", ".join(f"{worker} after round {after}" for worker, after in suspected)]
    return table(["workers", "held-out loss", "left out"], rows_of(lab, variants, cells))


@question
def length(lab):
    """The difference over the length of the run: settings tuned for 300 steps, the same share of warm-up, one seed. 1000 steps use the better of
    the tuned rate and the next lower one; 3000 steps use the same."""
    def cells(name):
        best, _ = tuned(lab, name)
        long, _ = climb(lab, best.having(steps=1000, warmup=100), {"lr": neighbours_of(best.lr, METHODS[name][1]["lr"])})
        return [f"{best.lr:g}, {long.lr:g}", *(loss_of(lab, run) for run in (best.having(steps=100, warmup=10), best, long, long.having(steps=3000, warmup=300)))]

    def neighbours_of(rate, rates):
        return rates[max(0, rates.index(rate) - 1):rates.index(rate) + 1]
    names = [*SHOWN[:2], "deltas, H = 1, K = 32", *SHOWN[2:]]
    return table(["method", "rates", *(f"{steps} steps" for steps in (100, 300, 1000, 3000))], rows_of(lab, [(name, name) for name in names], cells))


@question
def windows(lab):
    """H inner steps with everything sent unchanged, the best that a window can reach, by tokens per worker and step. With few tokens, the better of two rates."""
    def cells(at):
        window, tokens = at
        base = deltas(window, 4096, beta=0.0, mu=0.8, transform="none", values="float", levels=0, divisor="all", cap_growth=256)
        best, _ = climb(lab, base.having(lr=8e-3), {"lr": (8e-3, 1.6e-2)})
        return [f"{best.lr:g}", loss_of(lab, best.having(tokens=tokens))]
    return table(["H, tokens", "rate", "held-out loss"], rows_of(lab, [(f"{h}, {tokens // 8}", (h, tokens)) for tokens in (2048, 16384)
                 for h in (1, 5, 10, 15, 30) if tokens == 2048 or h in (1, 5, 15)], cells))


@question
def kept(lab):
    """H and K, with rate and decay of the buffer tuned for each."""
    def cells(at):
        base = dict(BASES)["H = 1" if at[0] == 1 else "H = 5"].having(window=at[0], k=at[1])
        best, tried = climb(lab, base, CHOICES)
        return [tried, f"{best.lr:g}, {best.value('beta'):g}", loss_of(lab, best), *traffic_of(lab, best)]
    pairs = ((1, 4), (1, 8), (1, 32), (1, 128), (3, 16), (5, 8), (5, 16), (5, 32), (10, 16), (10, 32), (15, 32), (30, 128))
    return table(["H, K", "settings tried", "rate, beta", "held-out loss", "sent", "received"],
                 rows_of(lab, [(f"{h}, {k}", (h, k)) for h, k in pairs], cells))


@question
def combining(lab):
    """Divisors, C_min and outer rates."""
    variants = []
    for name, base in BASES:
        variants += [(f"{name}, senders", base), (f"{name}, senders, C_min a quarter", base.having(rho=0.25))]
        variants += [(f"{name}, all, outer rate {alpha}, beta {beta:g}", base.having(divisor="all", alpha=alpha, beta=beta))
                     for alpha in (1, 2, 4) for beta in (base.value("beta"), 0.95)]
    return each(lab, variants)


@question
def inner(lab):
    """The inner optimizer."""
    base = BASES[1][1]
    variants = [("as tuned", base)]
    variants += [(f"mu {mu:g}", base.having(mu=mu)) for mu in (0.9, 0.98)]
    variants += [(f"{steps} Newton-Schulz steps", base.having(newton_schulz=steps)) for steps in (3, 4, 7)]
    variants += [(f"step {scale:g} of the longer side's root", base.having(muon_scale=scale)) for scale in (0.1, 0.4)]
    variants += [(f"decays of AdamW {b1:g}, {b2:g}", base.having(beta1=b1, beta2=b2)) for b1, b2 in ((0.7, 0.99), (0.8, 0.95))]
    return each(lab, variants)


@question
def values(lab):
    """The values sent per position."""
    rows = []
    for name, base in BASES:
        rows += [(f"{name}, {what}", base.having(values=value) if value != "bit" else base)
                 for value, what in (("bit", "a sign, a scale a block"), ("float", "floats"), ("two", "a sign and a bit, two scales a block"), ("tensor", "a sign, a scale a tensor"))]
    return each(lab, rows)


@question
def transform(lab):
    """Blocks sent as DCT or as they are, each tuned; three seeds, then a longer run."""
    def cells(at):
        name, on = at
        base, grids = METHODS[name]
        best, tried = climb(lab, base.having(transform=on), grids)
        longer = best.having(steps=1000, warmup=100, lr=best.lr / 2)
        lab.run([longer])
        return [tried, ", ".join(f"{best.value(field):g}" for field in grids), loss_of_seeds(lab, best), *(f"{loss:.3f}" for loss in lab.known([longer]).values())]
    names = [name for name in METHODS if name.startswith("deltas,")]
    variants = [(f"{name}, {what}", (name, on)) for what, on in (("DCT of matrices", None), ("the block", "none"), ("DCT of everything", "all"))
                for name in names if on != "all" or "K = 32" in name]
    return table(["method", "settings tried", "rate, beta, mu", "held-out loss", "1000 steps, half the rate"], rows_of(lab, variants, cells))


@question
def download(lab):
    """Results: levels, and results cut to the largest K' of a block."""
    base = BASES[1][1]
    variants = [("8 levels, half an octave apart", base), ("floats", base.having(levels=0))]
    variants += [(f"{levels} levels, {step:g} octaves apart", base.having(levels=levels, level_step=step))
                 for levels, step in ((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (4, 0.5), (16, 0.25))]
    for keep in (64, 128):
        variants.append((f"cut to {keep}", base.having(keep=keep)))
        variants += [(f"cut to {keep}, {what}", base.having(keep=keep, **settings)) for what, settings in
                     (("feedback of all that was sent", {"feedback": "included"}), ("beta 0.95", {"beta": 0.95}), ("K = 16", {"k": 16}), ("divisor all, outer rate 3", {"divisor": "all", "alpha": 3}))]
    variants.append(("feedback of what was cancelled too", base.having(feedback="cancelled")))
    return each(lab, variants)


@question
def outer(lab):
    """The outer step, and the place of weight decay."""
    base = BASES[1][1]
    variants = [("as it is", base), ("outer rate 0.65 over the last tenth", base.having(alpha_end=0.65)), ("decay in the update", base.having(decay_in_update=True))]
    variants += [(f"outer rate {alpha:g}", base.having(alpha=alpha)) for alpha in (0.7, 1.4)]
    variants += [(f"Nesterov {mu:g}, outer rate {alpha:g}", base.having(nesterov=mu, alpha=alpha)) for mu, alpha in ((0.5, 0.5), (0.9, 0.1))]
    return each(lab, variants)


@question
def missed(lab):
    """Updates that miss their round, and workers that join late."""
    variants = []
    for name, base in BASES:
        late = STEPS // 3 // base.value("window")
        variants += [(f"{name}, all there", base), (f"{name}, 10 % missed", base.having(miss=0.1)), (f"{name}, 30 % missed", base.having(miss=0.3)),
                     (f"{name}, four of eight from a third of the run on", base.having(first_round=(0, 0, 0, 0, late, late, late, late)))]
    return each(lab, variants)


@question
def overlap(lab):
    """A result applied some steps into the next window."""
    variants = [(f"{name}, {later} later" if later else name, base.having(overlap=later) if later else base)
                for name, base in BASES for later in (0, 1, 3, 5) if later <= base.value("window")]
    return each(lab, variants)


@question
def speeds(lab):
    """Eight workers with speeds from 1 to 9, compared with eight of one speed: the same tokens per round, and the same number of rounds."""
    h5 = dict(BASES)["H = 5"]
    steps, rounds = (1, 1, 2, 2, 8, 8, 9, 9), 60  # 40 steps a round, as eight times five
    window = h5.having(window=9, steps=9 * rounds, warmup=54)
    differ = window.having(worker_steps=steps)
    return each(lab, [("all alike, H = 5", h5.having(steps=5 * rounds)), ("1 to 9 steps, weighted by them", differ),
                      ("1 to 9 steps, all of one weight", differ.having(equal_weights=True))])


@question
def stateless(lab):
    """Workers without state between rounds, such as clients that take part in single rounds."""
    variants = [(f"{name}, {what}", base.having(**keeps)) for name, base in BASES
                for what, keeps in (("state kept", {}), ("nothing kept", {"stateless": True}))]
    return each(lab, variants)


@question
def workers(lab):
    """W workers at the same tokens a step."""
    return each(lab, [(f"{name}, W = {count}", base.having(workers=count)) for name, base in BASES for count in (2, 4, 8, 16)])


@question
def thirty_two(lab):
    """W = 32 and 4096 tokens a step, the rate tuned for each: which settings learn best with the report's bytes, 0.0187 bits up and 0.58 down per parameter and step."""
    h1, h5 = (base for _, base in BASES)
    methods = (("AdamW, All-Reduce", tuned(lab, "AdamW, All-Reduce")[0].having(tokens=4096)), ("Muon, All-Reduce", tuned(lab, "Muon, All-Reduce")[0].having(tokens=4096)),
               *((f"H = {run.value('window')}, K = {run.value('k')}", run.having(workers=32, tokens=4096))
                 for run in (h5, h5.having(window=3, k=16), h1.having(k=4, beta=0.8, mu=0.8, lr=3.2e-2))))

    def cells(run):
        best, _ = climb(lab, run, {"lr": RATES})
        return [f"{best.lr:g}", loss_of(lab, best), *(f"{bits:.3g}" for bits in bits_of(lab, best))]
    return table(["method", "rate", "held-out loss", "bits sent a parameter", "received"], rows_of(lab, methods, cells))


@question
def sizes(lab):
    """A second text, with the rate tuned again, and a larger model, with the settings of the smaller one."""
    def cells(variant):
        name, what = variant
        best, _ = tuned(lab, name)
        if what == "second text":
            best, _ = climb(lab, best.having(text=1), {"lr": METHODS[name][1]["lr"]})
        else:
            best = best.having(model="1M")
        return [f"{best.lr:g}", loss_of(lab, best), *traffic_of(lab, best)]
    return table(["method", "rate", "held-out loss", "sent", "received"],
                 rows_of(lab, [(f"{name}, {what}", (name, what)) for what in ("second text", "1 M parameters") for name in SHOWN], cells))


def all_reduce(adamw, muon, **fields):
    """The runs of both with these rates: one process, whatever it stands for, that sends nothing."""
    fields = {"beta1": 0.9, "beta2": 0.95, "workers": 1, **fields}
    return Run(method="adamw", lr=adamw, **fields), Run(method="muon", lr=muon, beta=0.9, **fields)


@question
def together(lab):
    """What W workers gain over one alone, with 512 tokens a worker and step, 3000 steps, rate to zero, text read once: the share of the gain of
    All-Reduce (Muon) that deltas keep, and how many times the steps one alone needs for the same loss. The rate of each row is tuned, and for one
    row the momentum, of AdamW also its decays."""
    long = {"steps": 3000, "warmup": 100, "floor": 0, "text": LONG_TEXT}
    adamw, muon = all_reduce(4e-3, 1.6e-2, **long)

    def best(run):
        return climb(lab, run, {"lr": RATES} | (DECAYS if run.method == "adamw" else {}))[0]

    def alone_for(loss):
        """From runs of one alone of other lengths; between two, the logarithm of the steps is linear in the loss."""
        lengths = [muon.having(tokens=512, steps=steps) for steps in (1500, 3000, 6000, 9000, 12000, 24000)]
        points = [(run.steps, lab.losses([best(run)])[0]) for run in lengths]
        for (few, high), (many, low) in zip(points, points[1:]):
            if low <= loss <= high:
                return f"{few * (many / few) ** ((high - loss) / (high - low)) / long['steps']:.1f}"
        return f"< {points[0][0] / long['steps']:g}" if loss > points[0][1] else f"> {points[-1][0] / long['steps']:g}"

    def local(workers, h, k, mu=0.9):
        return deltas(h, k, lr=8e-3 if h > 1 else 1.6e-2, beta=0.8, mu=mu, workers=workers, tokens=512 * workers, **long)

    def cells(at):
        workers, run = at
        chosen = best(run)
        (loss,), (alone,), (reduced,) = (lab.losses([one]) for one in (chosen, best(muon.having(tokens=512)), best(muon.having(tokens=512 * workers))))
        worth = alone_for(loss)
        if run.method != "deltas":
            return [f"{chosen.lr:g}", f"{loss:.3f}", "", worth, "", ""]
        bits = (f"{bits:.3g}" for bits in bits_of(lab, chosen))
        return [f"{chosen.lr:g}", f"{loss:.3f}", f"{(alone - loss) / (alone - reduced):.0%}", worth, *bits]
    variants = [("alone, Muon", (1, muon.having(tokens=512)))]
    for workers, pairs in ((3, ((5, 128), (5, 4096), (1, 32), (20, 128), (50, 128), (5, 32), (5, 512), (1, 128), (10, 256), (20, 512), (20, 4096))),
                           (8, ((5, 128), (5, 4096), (1, 32), (20, 128), (50, 128)))):
        variants.append((f"W = {workers}, All-Reduce, Muon", (workers, muon.having(tokens=512 * workers))))
        if workers == 3:
            variants += [("W = 3, All-Reduce, AdamW", (3, adamw.having(tokens=3 * 512))), ("W = 3, H = 5, K = 128, momentum 0.8", (3, local(3, 5, 128, mu=0.8)))]
        variants += [(f"W = {workers}, H = {h}, K = {k}", (workers, local(workers, h, k))) for h, k in pairs]
    return table(["workers", "rate", "held-out loss", "share of the gain", "times the steps of one alone", "bits sent a parameter and step", "received"], rows_of(lab, variants, cells))


@question
def ten_thousand(lab):
    """Eight workers that share 2048 tokens a step, 10 000 steps, rate to zero, text read once. The rate of each row is tuned."""
    long = {"steps": 10000, "warmup": 300, "floor": 0, "text": LONG_TEXT, "tokens": 2048}
    variants = list(zip(("AdamW, All-Reduce", "Muon, All-Reduce"), all_reduce(2e-3, 8e-3, **long)))
    variants += [(f"H = {h}, K = {k}", deltas(h, k, lr=4e-3, beta=0.8, mu=0.9, workers=8, **long)) for h, k in ((5, 128), (20, 128), (5, 4096))]
    slow = variants[2][1].having(slow=0.5, slow_decay=0.98)
    variants += [("H = 5, K = 128, decays of AdamW 0.98, 0.99", variants[2][1].having(beta1=0.98, beta2=0.99)),
                 ("H = 5, K = 128, a slow mean is half of the input", slow), ("the same, from half to 0.9 as the rate goes to 0", slow.having(slow_end=0.9))]

    def cells(run):
        chosen, tried = climb(lab, run, {"lr": RATES})
        row = [tried, f"{chosen.lr:g}", loss_of(lab, chosen)]
        if run.method != "deltas":
            return [*row, "", ""]
        return row + [f"{bits:.3g}" for bits in bits_of(lab, chosen)]
    return table(["method", "rates tried", "rate", "held-out loss", "bits sent a parameter and step", "received"], rows_of(lab, variants, cells))


@question
def ideas(lab):
    """Changes for long runs: eight workers that share 2048 tokens a step, H = 5, K = 128, 3000 steps, rate to zero, text read once."""
    long = {"steps": 3000, "warmup": 100, "floor": 0, "text": LONG_TEXT, "tokens": 2048}
    slow = {"slow": 0.5, "slow_decay": 0.98}
    base = deltas(5, 128, lr=4e-3, beta=0.8, mu=0.9, workers=8, **long)
    changes = (("as it is", {}), ("rate 0.008", {"lr": 8e-3}), ("momentum 0.95", {"mu": 0.95}), ("decay of the buffer 0.9", {"beta": 0.9}),
               ("decay of the buffer 0.8, to 1 as the rate goes to 0", {"beta_end": 1.0}),
               ("rate 0.002, decay of the buffer 0.95", {"lr": 2e-3, "beta": 0.95}),
               ("rate 0.002, outer rate 2", {"lr": 2e-3, "alpha": 2}),
               ("every position as a float, rate 0.008", {"lr": 8e-3, "k": 4096, "values": "float", "levels": 0}),
               ("weight decay at the replicas, exact", {"decay_in_update": True}),
               ("slow mean of the gradients: half of the input, decay 0.98", slow),
               ("the same, 0.7 of the input", slow | {"slow": 0.7}),
               ("the same, from half of the input to 0.9 as the rate goes to 0", slow | {"slow_end": 0.9}),
               ("the same, half of the input, decay 0.99", slow | {"slow_decay": 0.99}),
               ("half of the input, decay 0.98; momentum 0.8, decay of the buffer 0.9", slow | {"mu": 0.8, "beta": 0.9}),
               ("half of the input, decay 0.98; weight decay at the replicas", slow | {"decay_in_update": True}))
    variants = list(zip(("AdamW, All-Reduce", "Muon, All-Reduce"), all_reduce(4e-3, 8e-3, **long)))
    variants += [(name, base.having(**change)) for name, change in changes]
    return table(["setting", "held-out loss"], rows_of(lab, variants, lambda run: [loss_of(lab, run)]))


@question
def peers(lab):
    """Published methods of local steps and this one: eight workers that share 2048 tokens a step, 3000 steps, rate to zero, text read once. The
    rate of each row is tuned, and the momentum of an outer step that has one."""
    long = {"steps": 3000, "warmup": 100, "floor": 0, "text": LONG_TEXT, "tokens": 2048, "workers": 8}
    own = {"beta": 0.8, "mu": 0.9, **long}
    plain = {"transform": "none", "divisor": "all", "cap_growth": 256, "levels": 0, **long}  # no part of this method
    adamw = {"inner": "adamw", "beta1": 0.9, "beta2": 0.95, "lr": 4e-3}
    dense = {"values": "float", "beta": 0.0, "alpha": 0.7, "nesterov": 0.9}
    muon = {"mu": 0.9, "lr": 8e-3}
    sparse = {"values": "two", "beta": 0.95, "feedback": "included", **adamw, **plain}
    variants = [
        ("deltas, H = 5, K = 128", deltas(5, 128, lr=4e-3, **own)), ("deltas, H = 20, K = 128", deltas(20, 128, lr=4e-3, **own)), ("deltas, H = 50, K = 128", deltas(50, 128, lr=4e-3, **own)),
        ("DiLoCo, H = 50, 16 bits", deltas(50, 4096, **adamw, **dense, **plain)), ("SparseLoCo, H = 30, K = 64", deltas(30, 64, **sparse)),
        ("MuLoCo, H = 30, 16 bits", deltas(30, 4096, **muon, **dense, **plain)), ("SparseLoCo, H = 15, K = 64", deltas(15, 64, **sparse)),
        ("DiLoCo, H = 15, 16 bits", deltas(15, 4096, **adamw, **dense, **plain))]

    def cells(run):
        chosen, tried = climb(lab, run, {"lr": RATES} | ({"nesterov": (0.5, 0.9)} if run.value("nesterov") else {}))
        outer = f"{chosen.value('nesterov'):g}" if chosen.value("nesterov") else ""
        return [tried, f"{chosen.lr:g}", outer, loss_of(lab, chosen), *(f"{bits:.3g}" for bits in bits_of(lab, chosen))]
    return table(["method", "settings tried", "rate", "outer momentum", "held-out loss", "bits sent a parameter and step", "received"], rows_of(lab, variants, cells))


@question
def cohorts(lab):
    """32 workers with 128 tokens each a step, of which in each round only some send, or which send less, or which are 4 sites of 8 machines. 600
    steps, H = 5, text read once, one rate."""
    base = deltas(5, 128, lr=8e-3, beta=0.8, mu=0.9, workers=32, tokens=4096, text=LONG_TEXT, floor=0, warmup=50, steps=600)
    some = base.having(miss=0.875)
    variants = [("all send, K = 128", base), ("all send, K = 16", base.having(k=16)), ("one of eight sends, K = 128", some),
                ("the same, decay of the buffer 0.9", some.having(beta=0.9)), ("the same, decay 0.97", some.having(beta=0.97)),
                ("4 sites of 8 machines as workers, K = 128", base.having(workers=4))]
    return table(["workers", "held-out loss", "received a worker and step"], rows_of(lab, variants, lambda run: [loss_of(lab, run), traffic_of(lab, run)[1]]))
