"""Samples of softmax, log-softmax and log-sum-exp."""

from __future__ import annotations

from rules.sample import case

import gradlab as gl

CASES = [
    case("softmax", lambda x: gl.softmax(x, 1), (3, 3)),
    case("softmax", lambda x: gl.softmax(x, 0), (), coincidence=True),
    case("log_softmax", lambda x: gl.log_softmax(x, 0), (3, 2)),
    case("logsumexp", lambda x: x.logsumexp(1), (3, 3)),
    case("logsumexp", lambda x: x.logsumexp((0, 2), keepdim=True), (2, 3, 2)),
]
