"""The built-in model through onnxruntime, with its matrices in 8 bits: an extra, behind the same seam as the one in numpy."""
