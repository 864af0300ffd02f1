"""What a configuration may choose by name: formats, shapes, ways to land rows, platforms.

Pure. An entry names where its parts are, as ``module:name``; they are imported when a pipeline
needs them. So a configuration is checked without Spark, and a new kind is one module and one line.
"""
