"""The commands, each written once over `Proc`; `table.COMMANDS` lists them without importing them."""
