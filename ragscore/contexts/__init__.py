"""Which contexts of an item a scorer judges, and where they come from."""

from ragscore.contexts.emptiness import nothing_found
from ragscore.contexts.resolution import IF_ANY, NOTHING, Resolver, resolver_for

__all__ = ["IF_ANY", "NOTHING", "Resolver", "nothing_found", "resolver_for"]
