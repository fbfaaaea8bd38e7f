# SPDX-License-Identifier: Apache-2.0
"""Whoever started us may have had signals ignored or blocked, as a shell does for what it starts in the background.
Tests are about signals: they begin from a clean slate."""
import signal

PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored in Python, put back in what it starts
for number in signal.valid_signals():
    if number not in PYTHONS_OWN and signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
