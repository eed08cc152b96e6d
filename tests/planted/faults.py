"""The table of all kinds of planted faults, filled by importing the families."""

import planted_aliases
import planted_forwarded
import planted_frees
import planted_in_place
import planted_paths
import planted_pipelines
import planted_places
import planted_streams
import planted_transfers
from planted import KINDS

FAMILIES = (
    planted_places,
    planted_paths,
    planted_frees,
    planted_aliases,
    planted_forwarded,
    planted_in_place,
    planted_transfers,
    planted_pipelines,
    planted_streams,
)

ALL = KINDS
