"""Holders: releases of who must not pool their tables become one, which is proved anew."""
