"""Checks that storages are shared soundly, by running the graph on names."""

from collections.abc import Sequence

from .graph import Entry, Graph
from .plan_memory import is_identity


def find_conflict(
    graph: Graph,
    storage_ids: Sequence[Sequence[int]],
    in_place: Sequence[Sequence[int]] | None = None,
) -> str | None:
    """Why the storages are unsound, or None if they are sound.

    They are unsound if a node, or the reader of the results, finds other contents in a
    storage than it expects; if two devices use a storage; if two outputs of a node
    share one; or, with `in_place`, if a node overwrites an input other than the one
    given there. Negative storages are not checked.
    """
    run = _Run(graph, storage_ids, in_place)
    for n, node in enumerate(graph.nodes):
        if node.is_variable:
            run.write(Entry(n), Entry(n))
            run.versions[n] = [Entry(n)]
    for n, node in enumerate(graph.nodes):
        if not node.is_variable and (conflict := run.conflict(n)):
            return conflict
    for entry in graph.results:
        if not run.holds(entry):
            return f"result {run.name(entry)} is overwritten before the end"
    return None


class _Run:
    def __init__(
        self,
        graph: Graph,
        storage_ids: Sequence[Sequence[int]],
        in_place: Sequence[Sequence[int]] | None,
    ) -> None:
        self.nodes = graph.nodes
        self.ids = storage_ids
        self.in_place = in_place
        # Contents are named by the entry that they were computed as.
        self.contents: dict[int, Entry] = {}  # of storages
        self.values: dict[Entry, Entry] = {}  # of entries
        self.versions: dict[int, list[Entry]] = {}  # of variables
        self.devices: dict[int, int] = {}  # of storages

    def conflict(self, n: int) -> str | None:
        """Runs a node. Returns the conflict, or None."""
        node = self.nodes[n]
        read = {
            i: entry
            for i, entry in enumerate(node.inputs)
            if i not in node.ignored and not (node.assign and i == 0)
        }
        for entry in read.values():
            if not self.holds(entry):
                return f"{node.name} reads {self.name(entry)} after it was overwritten"
        written = [storage for storage in self.ids[n] if storage >= 0]
        if len(set(written)) < len(written):
            return f"outputs of {node.name} share a storage"
        for output, storage in enumerate(self.ids[n]):
            source = self.copied(n, output)
            if source is None and self.in_place and storage >= 0:
                allowed = self.in_place[n][output]
                for i, entry in read.items():
                    if i != allowed and self.storage(entry) == storage:
                        return f"{node.name} overwrites {self.name(entry)}, its input"
            entry = Entry(n, output)
            self.write(entry, self.value(source) if source else entry)
            if storage >= 0 and self.devices[storage] != node.device:
                return f"{node.name} has a storage of device {self.devices[storage]}"
        if node.assign:
            self.versions[node.inputs[0].node].append(self.values[Entry(n)])
        return None

    def copied(self, n: int, output: int) -> Entry | None:
        """The input whose contents the output has; None if it is not known."""
        node = self.nodes[n]
        if node.assign:
            return node.inputs[1]
        for pair in node.in_place:
            source = node.inputs[pair.input]
            producer = self.nodes[source.node]
            if pair.output == output and is_identity(
                pair, producer.outputs[source.output], node.outputs[output]
            ):
                return source
        return None

    def write(self, entry: Entry, value: Entry) -> None:
        storage = self.storage(entry)
        self.values[entry] = value
        self.contents[storage] = value
        self.devices.setdefault(storage, self.nodes[entry.node].device)

    def holds(self, entry: Entry) -> bool:
        storage = self.storage(entry)
        return storage < 0 or self.contents[storage] == self.value(entry)

    def value(self, entry: Entry) -> Entry:
        if entry.node in self.versions:
            return self.versions[entry.node][entry.version]
        return self.values[entry]

    def storage(self, entry: Entry) -> int:
        return self.ids[entry.node][entry.output]

    def name(self, entry: Entry) -> str:
        return self.nodes[entry.node].name
