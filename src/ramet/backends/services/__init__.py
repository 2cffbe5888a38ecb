"""Services as file trees: GitHub, Slack and their like over one REST layer.

- `config`, `auth`, `rest`, `pages`: how a service is asked.
- `nodes`, `tree`, `names`, `contents`, `front_matter`, `chat_days`: how its things become files.
- One module per service holds its table of nodes; `docs/writing-a-service.md` builds a small one.
"""
