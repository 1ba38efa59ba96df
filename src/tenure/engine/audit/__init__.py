"""The sealed log: `sealer.py` seals it, `seal_check.py` verifies and exports it, `audit_verbs.py` has the verbs.

Sealing is not part of any caller's transaction: a chain of hashes inside it would put all writers in one queue. The
leader seals committed events, with a log cursor, so that it skips nothing. So the youngest events are not protected:
at most 10 s of them, or 1,000, while a process leads. It writes no event, or there would always be one more to seal.
"""
