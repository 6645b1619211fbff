"""Write and read what describes a release: layout, manifest, conditions, risk, signature."""
