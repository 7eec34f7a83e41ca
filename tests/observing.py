"""A client that sees everything a broker carries, as only its operator could."""

import functools

import aiomqtt
from processes import LIMIT_S

from mpc_rr.crypto.nkeys import Kind, NKey
from mpc_rr.network.broker import fresh_keys
from mpc_rr.network.rights import INVITATIONS
from mpc_rr.randomness import SystemRandomness


@functools.cache
def own_keys():
    """The keys of the embedded broker that tests share."""
    return fresh_keys()


def login(url, keys):
    """User and password of somebody with all rights."""
    if url.user not in INVITATIONS:
        return url.user, url.password
    unlimited = {"subs": -1, "data": -1, "payload": -1, "bearer_token": True, "type": "user"}
    user = NKey.draw(Kind.USER, SystemRandomness()).public
    return "observer", NKey.from_seed(keys.account).token(user, "observer", unlimited)


def observer(url, keys=None):
    """A client with all rights at a broker: at the shared one, or one with these keys."""
    user, password = login(url, keys or own_keys())
    return aiomqtt.Client(url.host, url.port, username=user, password=password, timeout=LIMIT_S)
