"""
An independent judge of the studies: generators of its own, with the truth, and one table.

    python -m tools.eval_studies [--seeds 1,2] [--size 100] [--only forecasts,changes]

`make` holds the generators, `score` asks the studies and compares their answers with the
truth. Nothing here may import what the studies are made of or what they were tuned on: only
`STUDIES`, `run_study`, `Series` and the fields of an answer. A generator is changed when
it is wrong about containers, never because a study fails on it.
"""
