"""Programs: verbs over values. They import kernel, shape and conversation only."""
