"""Commands over bytes: od, xxd, base64, checksums."""
