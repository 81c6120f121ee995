"""
The CPU budget: costly tables are read less often, and come back when there is room.

The load of a table is its cost per reading divided by its period; the sum of
all loads is held below the budget. Over it, the table with the largest load
goes one tier slower; well below it, the cheapest slowed table that fits comes back.
Pure: costs in, periods out; no clock.
"""

from dataclasses import dataclass, field

from nodescope.collect.run.source import TIERS

# Decisions every five readings of the fastest tier: one slow reading (a
# preempted virtual machine) is not a trend. Of ticks below a second, as many as are in five seconds.
DECIDE_TICKS = 5
# A table that was just moved stays for this long, so that it does not flap.
SETTLE_TICKS = 30
# Coming back must leave this much of the budget free.
COMFORT_RATIO = 0.7


# What people came for: CPU, memory and pressure of every container, every second.
ESSENTIAL = frozenset({"container", "cpu", "cpu.cpu", "memory", "pressure"})


@dataclass(slots=True)
class TablePace:
    """How often a table is read, and what it costs."""

    first_tier: int
    tier: int
    essential: bool = False
    """Slowed only when slowing the others would not be enough."""
    cost_seconds: float = 0.0
    readings: int = 0
    moved_at_tick: int = -SETTLE_TICKS

    @property
    def load(self) -> float:
        return self.cost_seconds / self.tier


@dataclass(slots=True)
class Budget:
    """Periods by table name, kept so that sum(cost / period) <= budget per tick."""

    budget_seconds: float
    """CPU seconds per tick that all tables together may cost."""
    per_second: int = 1
    """Ticks in a second; 1 where a tick is longer."""
    paces: dict[str, TablePace] = field(default_factory=dict)

    @property
    def tiers(self) -> list[int]:
        """Ticks between two readings: of a tenth of a second 1, 10, 50 and 300."""
        return sorted({1, *(tier * self.per_second for tier in TIERS)})

    def register(self, table: str, tier: int) -> None:
        """What is not read at every tick changes slowly, however short a tick is."""
        ticks = tier * self.per_second if tier > 1 else 1
        self.paces.setdefault(table, TablePace(ticks, ticks, table in ESSENTIAL, moved_at_tick=-self._settle))

    @property
    def _settle(self) -> int:
        return SETTLE_TICKS * self.per_second

    def is_due(self, table: str, tick: int) -> bool:
        """Every table at the first tick, so that a first look is complete."""
        return tick % self.paces[table].tier == 0

    def note(self, table: str, cost_seconds: float) -> None:
        """A reading's cost; recent readings count most."""
        pace = self.paces[table]
        weight = 1.0 if pace.readings == 0 else 0.3
        pace.cost_seconds += weight * (cost_seconds - pace.cost_seconds)
        pace.readings += 1

    @property
    def load_seconds(self) -> float:
        return sum(pace.load for pace in self.paces.values())

    def adjust(self, tick: int) -> tuple[str, int] | None:
        """Move at most one table; its name and new period, or None."""
        if tick == 0 or tick % (DECIDE_TICKS * self.per_second):
            return None
        if self.load_seconds > self.budget_seconds:
            return self._slow_down(tick)
        return self._speed_up(tick)

    def _slow_down(self, tick: int) -> tuple[str, int] | None:
        able = [(pace.load, name) for name, pace in self.paces.items() if pace.tier < self.tiers[-1]]
        if not able:
            return None
        # Something that costs a twentieth of the budget is worth slowing
        # before what everybody came for.
        others = [
            (load, name)
            for load, name in able
            if not self.paces[name].essential and load > self.budget_seconds / 20
        ]
        _, name = max(others or able)
        return self._move(name, min(tier for tier in self.tiers if tier > self.paces[name].tier), tick)

    def _speed_up(self, tick: int) -> tuple[str, int] | None:
        slowed = [
            (pace.load, name)
            for name, pace in self.paces.items()
            if pace.tier > pace.first_tier and tick - pace.moved_at_tick >= self._settle
        ]
        for _, name in sorted(slowed):
            pace = self.paces[name]
            faster = max(tier for tier in self.tiers if tier < pace.tier)
            after = self.load_seconds - pace.load + pace.cost_seconds / faster
            if after <= COMFORT_RATIO * self.budget_seconds:
                return self._move(name, faster, tick)
        return None

    def _move(self, name: str, tier: int, tick: int) -> tuple[str, int]:
        self.paces[name].tier = tier
        self.paces[name].moved_at_tick = tick
        return name, tier

    def slowed(self) -> dict[str, int]:
        """Tables that are read less often than they ask for, with their period."""
        return {name: pace.tier for name, pace in self.paces.items() if pace.tier > pace.first_tier}


def count_per_second(interval_seconds: float) -> int:
    return max(1, round(1 / interval_seconds))
