"""For scripts of these tests: stops until the test has looked."""


def show(what: str = "here") -> None:
    print(what, flush=True)
    input()
