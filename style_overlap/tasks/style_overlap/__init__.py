"""The folder that the harness reads: a short YAML per task on one base file."""
