"""Tasks for EleutherAI's lm-evaluation-harness."""
