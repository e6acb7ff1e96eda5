"""Runs parts, each in steps, until the time of the call is over. What was done before is not done again."""
import concurrent.futures
import datetime
import threading
import time

import results
import steps


class Runner:
    """`make_context`: () -> parts.Context. `end`: when the call ends, of time.monotonic()."""

    def __init__(self, store, hardware, version, make_context, end):
        self.store, self.hardware, self.version, self.make_context, self.end = store, hardware, version, make_context, end
        self.lock = threading.Lock()  # the document of the part under way, and the output

    def run(self, parts):
        """Every part in order, as far as the time allows; whether all are complete."""
        return all([self.run_part(part) for part in parts])

    def run_part(self, part):
        """Whether the part is complete. A step that does not end in the time that is left waits for the next call."""
        document = self.store.load(part.name) or self._new(part.name)
        if document["complete"]:
            return True
        if self.end - time.monotonic() < part.least:
            return False
        listed = part.steps(self.make_context())
        with concurrent.futures.ThreadPoolExecutor(part.at_once) as pool:
            list(pool.map(lambda step: self._run_step(document, step), [step for step in listed if step.name not in document["steps"]]))
        document["complete"] = all(step.name in document["steps"] for step in listed)
        if document["steps"]:
            self.store.store(document)
        return document["complete"]

    def _run_step(self, document, step):
        if step.usual > self.end - time.monotonic():
            return
        outcome = steps.run(step, self.end)
        with self.lock:
            if outcome is None:
                print(f"-- {document['part']}: {step.name}: not ended in the time that was left", flush=True)
                return
            told = f"-- {document['part']}: {step.name}: {outcome['state']}, {outcome['seconds']:.0f} s"
            print(told + (f": {outcome['why']}" if outcome["why"] else ""), flush=True)
            if self.version not in document["version"].split(", "):
                document["version"] += f", {self.version}"
            document["steps"][step.name] = outcome
            self.store.store(document)

    def _new(self, name):
        return {"schema": results.SCHEMA, "part": name, "hardware": self.hardware, "date": str(datetime.date.today()), "version": self.version,
                "complete": False, "steps": {}}
