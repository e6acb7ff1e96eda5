"""Runs parts of the first GPU hour, each in steps, until the time of the call is over. What was done before is not done again."""
import datetime
import time

import results
import steps

PART_SECONDS = 530  # below nine minutes, in one call


class Runner:
    """`make_context`: (seconds that are left for a part) -> parts.Context."""

    def __init__(self, store, hardware, version, make_context, seconds):
        self.store, self.hardware, self.version, self.make_context = store, hardware, version, make_context
        self.end = time.monotonic() + seconds

    def run(self, parts):
        """Parts in order, up to the first that is not complete after this call; whether all are."""
        return all(self.run_part(part) for part in parts)

    def run_part(self, part):
        """Whether the part is complete. A step that may not end in the time that is left waits for the next call."""
        document = self.store.load(part.name) or self._new(part.name)
        if document["complete"]:
            return True
        end = min(self.end, time.monotonic() + PART_SECONDS)
        left = []
        for step in part.steps(self.make_context(end - time.monotonic())):
            if step.name in document["steps"]:
                continue
            if step.longest > end - time.monotonic():
                left.append(step.name)
                continue
            print(f"-- {part.name}: {step.name} ... ", end="", flush=True)
            outcome = steps.run(step)
            print(f"{outcome['state']}, {outcome['seconds']:.0f} s" + (f": {outcome['why']}" if outcome["why"] else ""), flush=True)
            document["steps"][step.name] = outcome
            self.store.store(document)
        document["complete"] = not left
        self.store.store(document)
        return not left

    def _new(self, name):
        return {"schema": results.SCHEMA, "part": name, "hardware": self.hardware, "date": str(datetime.date.today()), "version": self.version,
                "complete": False, "steps": {}}
