from ramet import Retention, Store

store = Store("memory:")
store.create("app")
store.retention(Retention(keep_last=100, keep_within=30 * 86400), "app")
print(store.gc())  # deletes what no revision, tag or rule keeps
