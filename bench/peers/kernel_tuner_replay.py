#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replay strategies of Kernel Tuner on recorded spaces, with the options that they have by default.

    kernel_tuner_replay.py SPACE.json.gz.. --strategies pso,.. --repeats N --out DIR [--limit S]

A space is a cache file of Kernel Tuner. Its valid configurations are those that are in it, whatever became of them.
A run is Kernel Tuner's own simulation: what tune_kernel(simulation_mode=True) makes - the search space, the runner,
the budget - is made here in the same way, but the search space once for all runs; what it remembers is emptied before
each. The budget is in evaluations of different configurations, as Kernel Tuner counts max_fevals: those after which
random search is expected to be 5 % of the way from the optimum to the median. So that scores over time are fair, too,
a run then goes on for as long as that many evaluations of the median cost take; who reads the traces leaves off what
is beyond the budget that he looks at. Strategies that plan ahead for max_fevals get the budget and end with it.

DIR/SPACE-HASH/STRATEGY.jsonl takes one line a run: {"space", "method", "seed", "times_ns", "costs_s", "search_s",
"budget"}. times_ns: of each evaluation in the order made, null where it failed; costs_s: what compiling, verifying,
benchmarking and the framework took when it was recorded; search_s: processor time of the run without the simulation,
so the strategy's own, of the first seeds: later ones take shortcuts that change nothing but the time. Seeds that are
there already are not run again. Prints the folders, one a line."""
import argparse
import contextlib
import fcntl
import functools
import gzip
import hashlib
import json
import math
import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
import numpy as np
from constraint import FunctionConstraint
import kernel_tuner.interface as interface
from kernel_tuner import util
from kernel_tuner.core import KernelSource
from kernel_tuner.runners.simulation import SimulationRunner
from kernel_tuner.searchspace import Searchspace
from kernel_tuner.strategies import common
from scipy.stats import qmc
from scipy.stats.qmc import LatinHypercube

# They divide max_fevals up in advance. To the others it only says when to stop.
PLANNING = ("simulated_annealing", "dual_annealing", "basinhopping", "minimize")
PATIENCE = 3  # budgets of evaluations that a run may make while time is left
SLACK = 1.1  # of the time
TIMED = 3  # seeds
COSTS = ("compile_time", "verification_time", "benchmark_time", "framework_time")


class OutOfTime(BaseException):  # past whatever strategies catch
    pass


def is_time(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def text_of(path):
    return gzip.open(path, "rt").read() if str(path).endswith(".gz") else pathlib.Path(path).read_text()


def name_of(path):
    return pathlib.Path(path).name.split(".")[0]


def folder_of(out, path):
    """Of a space's traces; another file of the same name has another."""
    return pathlib.Path(out) / f"{name_of(path)}-{hashlib.sha256(text_of(path).encode()).hexdigest()[:8]}"


def evaluations_to_cutoff(times):
    """As kopt counts: with i of the N times worse than the cutoff, ceil(i / (N + 1 - i))."""
    optimum, median = min(times), statistics.median(times)
    worse = sum(t > optimum + 0.05 * (median - optimum) for t in times)
    return max(1, math.ceil(worse / (len(times) + 1 - worse)))


def cost_s(entry):
    return sum(entry.get(c) or 0 for c in COSTS) / 1e3


class Budget(util.TuningBudget):
    """Used up when both are: the evaluations, and the seconds of the recording."""

    def __init__(self, evaluations, seconds, most):
        super().__init__(None, most)
        self.evaluations, self.seconds, self.spent_s = evaluations, seconds, 0.0

    def is_done(self):
        return super().is_done() or (self.num_fevals >= self.evaluations and self.spent_s >= self.seconds)

    def raise_exception_if_done(self):
        if self.is_done():
            raise util.StopCriterionReached("the budget is used up")

    def get_fraction_consumed(self):
        return min(1.0, self.num_fevals / self.evaluations)


class Visited(set):
    """Of keys: Kernel Tuner's runner adds one when it is evaluated for the first time."""

    def __init__(self, cache, budget):
        super().__init__()
        self.cache, self.budget, self.order = cache, budget, []

    def add(self, key):
        super().add(key)
        self.order.append(self.cache[key])
        self.budget.spent_s += cost_s(self.cache[key])


class Simulation(SimulationRunner):
    """Kernel Tuner's, which also writes down what was evaluated, in order, and what it took itself."""

    def __init__(self, cache, budget, *args):
        super().__init__(*args)
        self.visited_results = Visited(cache, budget)
        self.inside_s = 0.0

    def run(self, parameter_space, tuning_options):
        begun = time.process_time()
        results = super().run(parameter_space, tuning_options)
        self.inside_s += time.process_time() - begun
        return results


class Shortcuts:
    """Two thirds of the time goes into making the same grids, writing numbers that nobody reads, and looking for the
    same neighbours. The results are the same to the bit."""

    def __init__(self, searchspace):
        self.searchspace, self.plain = searchspace, common.unscale_and_snap_to_nearest
        self.find = searchspace.get_neighbors_indices_no_cache
        self.grids, self.neighbors = {}, {}

    def grid(self, count, eps):
        if (count, eps) not in self.grids:
            self.grids[count, eps] = np.linspace(0.5 * eps, eps * count - 0.5 * eps, count)
        return self.grids[count, eps]

    def snap(self, x, tune_params, eps):
        return [v[np.abs(self.grid(len(v), eps) - x[i]).argmin()] for i, v in enumerate(tune_params.values())]

    def neighbors_of(self, config, neighbor_method=None, build_full_cache=False):
        if build_full_cache or neighbor_method is None:
            return self.find(config, neighbor_method, build_full_cache)
        if (config, neighbor_method) not in self.neighbors:
            self.neighbors[config, neighbor_method] = self.find(config, neighbor_method)
        return self.neighbors[config, neighbor_method].copy()

    @contextlib.contextmanager
    def taken(self):
        common.unscale_and_snap_to_nearest = self.snap
        # Of arguments of logging.debug().
        common.str = lambda v: "" if isinstance(v, (np.ndarray, list)) else str(v)
        self.searchspace.get_neighbors_indices_no_cache = self.neighbors_of
        try:
            yield
        finally:
            common.unscale_and_snap_to_nearest = self.plain
            del common.str
            del self.searchspace.get_neighbors_indices_no_cache


class Space:
    """What tune_kernel() makes of a cache file before it calls the strategy."""

    def __init__(self, path):
        self.name = name_of(path)
        text = text_of(path)
        with tempfile.TemporaryDirectory() as tmp:
            plain = os.path.join(tmp, "cache.json")
            pathlib.Path(plain).write_text(text)
            cache = util.read_cache(plain, open_cache=False)
        self.cache, self.params, self.header = cache["cache"], cache["tune_params"], cache
        names = cache["tune_params_keys"]
        recorded = {tuple(entry[name] for name in names) for entry in self.cache.values()}
        self.searchspace = Searchspace({name: self.params[name] for name in names},
                                       [FunctionConstraint(lambda *values: values in recorded)], 10**9)
        keys = {",".join(str(v) for v in config) for config in self.searchspace.list}
        if keys != set(self.cache):
            sys.exit(f"{path}: {len(keys)} configurations are valid, {len(self.cache)} were recorded")
        self.budget = evaluations_to_cutoff([e["time"] for e in self.cache.values() if is_time(e.get("time"))])
        self.budget_s = self.budget * statistics.median(cost_s(e) for e in self.cache.values())
        self.shortcuts = Shortcuts(self.searchspace)

    def forget(self):
        """As a new Searchspace: which neighbours it remembers has a part in which one it draws."""
        s = self.searchspace
        for cache in (s._Searchspace__neighbor_cache, s._Searchspace__neighbor_partial_cache):
            for method in cache.values():
                method.clear()
        s.neighbors_index.clear()

    def options(self, strategy):
        most = self.budget if strategy in PLANNING else PATIENCE * self.budget
        tuning = interface.Options(
            tune_params=self.searchspace.tune_params, restrictions=self.searchspace._modified_restrictions,
            objective=["time"], objective_higher_is_better=[False], metrics=None, verbose=False, simulation_mode=True,
            simulated_time=0, cache=self.cache, cachefile=None, strategy_options=interface.Options(max_fevals=most),
            time_limit=None, max_fevals=most)
        tuning["budget"] = Budget(self.budget, SLACK * self.budget_s, min(most, self.searchspace.size))
        return tuning

    def run(self, strategy, seed, limit_s, timed=True):
        self.forget()
        random.seed(seed)
        np.random.seed(seed)
        # The one generator that is not theirs: Kernel Tuner leaves it to chance.
        qmc.LatinHypercube = functools.partial(LatinHypercube, rng=np.random.default_rng(seed))
        name, tuning = self.header["kernel_name"], self.options(strategy)
        kernel = interface.Options(kernel_name=name, problem_size=self.header["problem_size"])
        device = interface.Options(quiet=True)
        runner = Simulation(self.cache, tuning.budget, KernelSource(name, "", "C"), kernel, device, 7, None)
        begun, why = time.process_time(), None
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        try:
            with contextlib.nullcontext() if timed else self.shortcuts.taken():
                interface.strategy_map[strategy].tune(self.searchspace, runner, tuning)
        except OutOfTime:
            why = f"after {limit_s:g} s"
        except util.StopCriterionReached:
            pass  # greedy_ils does not catch it where its first evaluation is its last
        except Exception as e:  # of the strategy: what it evaluated until then is its result
            why = f"{type(e).__name__}: {e}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        search_s = time.process_time() - begun - runner.inside_s
        entries = runner.visited_results.order
        line = {"space": self.name, "method": f"kt:{strategy}", "seed": seed,
                "times_ns": [round(e["time"] * 1e6, 3) if is_time(e.get("time")) else None for e in entries],
                "costs_s": [round(cost_s(e), 6) for e in entries],
                "budget": self.budget}
        return line | ({"search_s": round(search_s, 4)} if timed else {}) | ({"ended": why} if why else {})


def out_of_time(*_):
    raise OutOfTime


def whole_lines(path):
    text = path.read_text() if path.exists() else ""
    return text[:text.rfind("\n") + 1]


def seeds_in(path):
    return {json.loads(line)["seed"] for line in whole_lines(path).splitlines()}


@contextlib.contextmanager
def appending(path):
    """Behind its last whole line, while no other process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.truncate(len(whole_lines(path).encode()))
        yield f


def run_missing(space, strategy, a, file):
    begun, evaluations, runs = time.process_time(), 0, 0
    with appending(file) as f:
        for seed in sorted(set(range(1, a.repeats + 1)) - seeds_in(file)):
            line = space.run(strategy, seed, a.limit, seed <= TIMED)
            evaluations, runs = evaluations + len(line["times_ns"]), runs + 1
            f.write(json.dumps(line, separators=(",", ":")) + "\n")
            f.flush()
    took = time.process_time() - begun
    print(f"{strategy} on {space.name}: {runs} runs, {evaluations} evaluations, {took:.1f} s, "
          f"{1e3 * took / max(evaluations, 1):.2f} ms each", file=sys.stderr, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("spaces", nargs="+")
    p.add_argument("--strategies", default="firefly_algorithm,pso,genetic_algorithm,random_sample")
    p.add_argument("--repeats", type=int, default=100)
    p.add_argument("--out", required=True)
    p.add_argument("--limit", type=float, default=600, help="processor seconds that a run may take")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, out_of_time)
    folders = {path: folder_of(a.out, path) for path in a.spaces}
    spaces = {}
    for strategy in a.strategies.split(","):
        for path in a.spaces:
            file = folders[path] / f"{strategy}.jsonl"
            if len(seeds_in(file) & set(range(1, a.repeats + 1))) < a.repeats:
                space = spaces.get(path) or spaces.setdefault(path, Space(path))
                run_missing(space, strategy, a, file)
    print("\n".join(map(str, folders.values())))


if __name__ == "__main__":
    main()
