"""Does this encoder classify style, or is it reading the content?

Controlled content-overlap evaluation of style classifiers, as a plug-in for EleutherAI's
lm-evaluation-harness. Importing this package loads neither torch nor the harness.
"""

__version__ = "0.1.0"
