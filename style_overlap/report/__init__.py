"""From records to tables, figures and pages. Reads records only: no model, no corpus."""
