"""GitHub as files: `repository` with its code, issues and pulls, `ci` with the workflow runs.

- `api`: the settings, errors and queries that both share.
- `git_tree`, `git_archive`: the code at a ref, blob by blob or by one tarball.
"""
