"""The model that comes along: small, trained by this project, run with numpy alone."""
