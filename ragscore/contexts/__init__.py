"""Which contexts of an item a scorer judges, and where they come from."""

from ragscore.contexts.resolution import Resolver, resolver_for

__all__ = ["Resolver", "resolver_for"]
