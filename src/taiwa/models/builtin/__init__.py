"""The bundled model: small, trained by this project, run with numpy alone."""
