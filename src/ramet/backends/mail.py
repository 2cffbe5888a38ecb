"""Public import path of `MailResource`; the code is in `backends/remote/mail.py`."""

from ramet.backends.remote.mail import MailConfig as MailConfig
from ramet.backends.remote.mail import MailResource as MailResource
