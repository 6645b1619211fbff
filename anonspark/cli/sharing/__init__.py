"""Commands about more than one table, release or party, and what they show."""

import anonspark.sharing  # noqa: F401 - lets its sections be read
