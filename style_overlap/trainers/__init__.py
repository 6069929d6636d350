"""Fine-tuning of style classifiers."""
