"""Public import path of `AzureResource`; the code is in `backends/objects/azure.py`."""

from ramet.backends.objects.azure import AzureConfig as AzureConfig
from ramet.backends.objects.azure import AzureResource as AzureResource
