"""The long proofs: `python -m tests.reliability NAME [args]`, or `./x reliability NAME`.

Each module here is one of them and has `main(argv) -> int`: it takes counts and seeds as arguments, prints how it
goes, ends with one line of numbers, and gives 0 when everything held. Short versions of the same proofs run with
the other tests. To add one, add a module; its docstring's first line is its help.
"""
