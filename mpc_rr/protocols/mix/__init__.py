"""The mix cascade, an anonymous channel: messages of all, and nobody knows whose is whose.

`cascade` has the steps of both roles; `batch` the messages, options and onions; `blame` finds who
did wrong.
"""
