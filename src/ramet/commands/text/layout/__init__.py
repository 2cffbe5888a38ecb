"""Commands that lay out text: columns, paragraphs, line width and tabs."""
