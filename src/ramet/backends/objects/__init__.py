"""Buckets of object stores: S3, Google Cloud Storage, Azure."""
