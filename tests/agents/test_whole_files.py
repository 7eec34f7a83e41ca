"""A file that holds a secret or a register is there whole, as it was, or not at all."""

import os
import re
import stat
from pathlib import Path

import pytest

from mpc_rr.agents.whole_files import alone_with, write_whole
from mpc_rr.errors import InputError


@pytest.fixture
def file(tmp_path):
    (tmp_path / "a file").write_text("as it was")
    return tmp_path / "a file"


def mode_of(file):
    return stat.S_IMODE(file.stat().st_mode)


def full_disk(*_):
    raise OSError(28, "No space left on device")


def interrupted(*_):
    raise KeyboardInterrupt


def only(file):
    """Nothing else is in its folder."""
    return [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize(("where", "what"), [(os, "fsync"), (Path, "replace")])
def test_a_write_that_fails_leaves_the_file_as_it_was_and_names_it(monkeypatch, file, where, what):
    monkeypatch.setattr(where, what, full_disk)
    with pytest.raises(InputError, match=f"^{re.escape(str(file))} cannot .*: No space left"):
        write_whole(file, b"a secret")
    assert file.read_text() == "as it was"
    assert only(file)


def test_whoever_is_interrupted_leaves_no_half_of_a_secret(monkeypatch, file):
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(file, b"a secret")
    assert file.read_text() == "as it was"
    assert only(file)


def test_its_owner_alone_can_read_it_unless_it_is_public(file):
    file.chmod(0o666)
    write_whole(file, b"a secret")
    assert mode_of(file) == 0o600
    write_whole(file, b"no secret", public=True)
    plain = file.with_name("plain")
    plain.touch()
    assert mode_of(file) == mode_of(plain)


def test_a_link_is_not_replaced_but_followed(file):
    """An old register stayed where the link had led to: it would have admitted people twice."""
    link = file.with_name("link")
    link.symlink_to(file.name)
    with alone_with(link):
        write_whole(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["folder", "folder/..", "missing/file"])
def test_what_cannot_be_a_file_is_named(tmp_path, name):
    (tmp_path / "folder").mkdir()
    for act in (lambda file: write_whole(file, b""), lambda file: alone_with(file).__enter__()):
        with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path / name))} "):
            act(tmp_path / name)


def test_what_a_killed_process_left_is_cleared_away_and_nothing_else(file):
    left = file.with_name(f".{file.name}.0123abcd.unfinished")
    others = [file.with_name(name) for name in (".b.0123abcd.unfinished", ".a file.unfinished")]
    for path in (left, *others):
        path.write_text("half a secret")
    with alone_with(file):
        assert not left.exists()
    assert all(other.exists() for other in others)
