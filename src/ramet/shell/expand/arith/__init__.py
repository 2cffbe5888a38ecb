"""Arithmetic expansion: parser, evaluator and generated code."""
