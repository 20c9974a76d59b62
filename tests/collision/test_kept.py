"""A cache bounded by bytes."""

from carom.collision.host.kept import Kept


def test_what_was_asked_for_last_is_kept_up_to_the_bytes():
    made: list[str] = []

    def get(key: str) -> str:
        return kept.get(key, lambda: made.append(key) or key)

    kept: Kept[str] = Kept(10, len)
    for key in ("aaaa", "bbbb", "aaaa", "cccc", "aaaa", "bbbb"):
        assert get(key) == key
    assert made == ["aaaa", "bbbb", "cccc", "bbbb"]  # b went for c: a was asked for after it
    assert (len(kept), kept.total) == (2, 8)
    get("d" * 11)
    get("d" * 11)
    assert made[4:] == ["d" * 11] * 2  # too large to be kept
    assert (len(kept), kept.total) == (2, 8)
