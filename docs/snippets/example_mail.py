from ramet import MailConfig, MailResource, SyncWorkspace

config = MailConfig(host="imap.example.org", username="me@example.org", password_env="MAIL_PASSWORD")
with SyncWorkspace({"/mail": MailResource(config)}) as ws:
    print(ws.workspace.mounts())  # then: ws.execute("ls -l /mail")
