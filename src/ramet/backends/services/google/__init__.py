"""Google as file trees: Gmail, Drive, Docs, Sheets and Slides over one token layer.

`token` and `api` are what all of them share; each service is one module, with helpers that carry its name.
"""
