"""All tools, and those of our models that stand beside them."""

from __future__ import annotations

from peers.adapters import (
    anjana,
    anonypy,
    anonypyx,
    lighthouse,
    polarfrost,
    pycanon,
    spark_privacy_preserver,
)
from peers.tool import Tool

__all__ = ["CHECKER", "MODELS", "PEERS"]

PEERS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        lighthouse.TOOL,
        anonypy.TOOL,
        anonypyx.TOOL,
        polarfrost.TOOL,
        spark_privacy_preserver.TOOL,
        anjana.TOOL,
    )
}

CHECKER = pycanon.TOOL

MODELS: dict[str, dict[str, object]] = {
    "smondrian": {"name": "smondrian"},
    "su-mondrian": {"name": "su-mondrian", "rho": 5, "separation": "always"},
    "microaggregation": {"name": "microaggregation"},
}
