"""The mix cascade, an anonymous channel: messages of all, and nobody knows whose is whose.

`relays` says who they are; `cascade` has the steps of both roles; `batch` the messages and onions;
`blame` finds who did wrong.
"""
