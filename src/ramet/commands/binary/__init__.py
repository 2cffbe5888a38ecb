"""Commands on bytes: od, xxd, hexdump, strings, base64 and checksums."""
