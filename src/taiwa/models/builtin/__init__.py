"""The model of the package: small, trained by this project, run with numpy alone."""
