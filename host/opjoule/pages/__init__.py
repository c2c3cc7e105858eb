"""What is looked at: drawing, the report, comparisons, figures for print, and the live view."""
