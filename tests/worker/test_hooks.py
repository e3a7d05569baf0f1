"""A script that says nothing about Troupe is seen all the same."""

from __future__ import annotations

import pytest
from conftest import ROOT

TRAINING = """
import torch
import torch.distributed as dist
from at_rest import show
from torch.utils.data import DataLoader

def main():
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear(64, 64) for _ in range(8)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    second = torch.optim.Adam(model.parameters())
    for batch in DataLoader(torch.randn(48, 64), batch_size=8, num_workers=WORKERS):
        model.train()
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        second.step()
    with torch.no_grad():
        for batch in DataLoader(torch.randn(2, 64), batch_size=2, num_workers=WORKERS):
            show("evaluates")
    rank = dist.get_rank()
    part = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(torch.ones(3), group=part)
        dist.send(torch.ones(1), 1) if rank == 0 else dist.recv(torch.ones(1), 0)
    dist.barrier()
    show("trained")
    dist.destroy_process_group()

if __name__ == "__main__":
    main()
"""


def trained(workers, world: int, loaders: int) -> list[dict]:
    ranks = workers(TRAINING.replace("WORKERS", str(loaders)), world)
    for each in ranks:
        assert each.line() == "evaluates"
    assert [each.seen()["phase"] for each in ranks] == ["evaluation"] * world
    for each in ranks:
        each.go()
    for each in ranks:
        assert each.line() == "trained"
    pages = [each.seen() for each in ranks]
    for each in ranks:
        each.go()
        each.end()
    return pages


def test_ddp_on_three_ranks_is_counted_alike_at_all(workers) -> None:
    pages = trained(workers, world=3, loaders=0)
    worlds = [page["communicators"][0] for page in pages]
    for world in worlds:
        assert world["name"] == "default_pg"
        assert world["members"] == 3
        assert world["entered"] == world["left"] > 6  # several buckets of each backward pass, from C++
        assert world["kind"] == "barrier"
        assert world["ends_known"]
    assert len({world["entered"] for world in worlds}) == 1
    assert len({world["members_hash"] for world in worlds}) == 1
    for page in pages[:2]:
        part, messages = (
            next(row for row in page["communicators"][1:] if row["name"].endswith("p2p") is is_p2p)
            for is_p2p in (False, True)
        )
        assert (part["members"], part["entered"], part["left"], part["kind"]) == (2, 1, 1, "all_reduce")
        assert (messages["entered"], messages["left"]) == (1, 1)
    assert not any(row["entered"] for row in pages[2]["communicators"][1:])


@pytest.mark.parametrize("loaders", [0, 2])
def test_steps_and_phases_of_a_loop(workers, loaders: int) -> None:
    (page, _) = trained(workers, world=2, loaders=loaders)
    assert page["steps_made"] == page["step"] == 6
    assert page["feeds"] & 62 == 62
    phases = page["phases"]
    assert phases["input"]["entered"] >= 6
    assert phases["backward"]["entered"] == 6
    assert phases["optimizer"]["entered"] == 12  # of both optimizers; the first one's are steps
    assert phases["forward"]["entered"] >= 6
    assert page["phase"] == "other"


def test_a_rank_that_others_wait_for_has_entered_less(workers) -> None:
    ranks = workers(
        """
        import torch, torch.distributed as dist
        from at_rest import leave, show
        dist.init_process_group("gloo")
        dist.barrier()
        if dist.get_rank() == 1:
            show("late")
        else:
            print("enters", flush=True)
        dist.all_reduce(torch.ones(1))
        show("after")
        leave()
        """,
        2,
    )
    assert [each.line() for each in ranks] == ["enters", "late"]
    waiting, late = ranks
    while (row := waiting.seen()["communicators"][0])["kind"] != "all_reduce":
        assert waiting.process.poll() is None
    assert row["entered"] == row["left"] + 1
    of_late = late.seen()["communicators"][0]
    assert of_late["entered"] == of_late["left"] == row["entered"] - 1
    late.go()
    for each in ranks:
        assert each.line() == "after"
        assert each.seen()["communicators"][0]["left"] == row["entered"]
        each.go()
        each.end()


def test_files_are_a_checkpoint(workers, tmp_path) -> None:
    (rank,) = workers(
        f"""
        import torch
        from at_rest import show
        class Slow:
            def __reduce__(self):
                show("saves")
                return (int, ())
        torch.save(Slow(), {str(tmp_path / "file")!r})
        show("saved")
        class Slower:
            def __reduce__(self):
                return (show, ("loads",))
        torch.save(Slower(), {str(tmp_path / "file")!r})
        torch.load({str(tmp_path / "file")!r}, weights_only=False)
        show("loaded")
        import torch.distributed.checkpoint as dcp
        class Writer(dcp.FileSystemWriter):
            def prepare_local_plan(self, plan):
                show("plans")
                return super().prepare_local_plan(plan)
        dcp.save({{"x": torch.ones(1)}}, storage_writer=Writer({str(tmp_path)!r}))
        show("written")
        """
    )
    for line in ("saves", "saved", "loads", "loaded", "plans", "written"):
        assert rank.line() == line
        assert rank.seen()["phase"] == ("checkpoint" if line in ("saves", "loads", "plans") else "other"), line
        rank.go()
    rank.end()


def test_a_fork_and_a_second_process_do_not_write(workers) -> None:
    (rank,) = workers(
        """
        import os, subprocess, sys
        import torch
        from at_rest import show
        layer = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=1)
        def steps(count):
            for _ in range(count):
                layer(torch.ones(2)).sum().backward()
                optimizer.step()
        if sys.argv[1:] == ["second"]:
            steps(100)
            sys.exit()
        steps(3)
        if os.fork() == 0:
            optimizer.zero_grad()
            for _ in range(100):
                optimizer.step()
            os._exit(0)
        os.wait()
        assert "troupe/hooks" not in os.environ.get("PYTHONPATH", "")
        kept = {name[5:]: value for name, value in os.environ.items() if name.startswith("KEPT_")}
        subprocess.run([sys.executable, __file__, "second"], close_fds=False, check=True, env={**os.environ, **kept})
        show()
        """
    )
    rank.line()
    page = rank.seen()
    assert page["pid"] == rank.process.pid
    assert page["steps_made"] == 3
    rank.go()
    rank.end()


@pytest.mark.parametrize("flags", [("-I",), ("-S",), ("-E",)])
def test_an_isolated_interpreter_has_no_hooks_and_runs(workers, flags: tuple[str, ...]) -> None:
    (rank,) = workers("import sys; print('_troupe_hooks' in sys.modules)", flags=flags)
    assert rank.end() == "False\n"


def test_the_next_sitecustomize_runs_as_if_it_were_the_first(workers, build, tmp_path) -> None:
    (tmp_path / "sitecustomize.py").write_text("mark = 'the next one'\n")
    (rank,) = workers(
        """
        import sys, sitecustomize
        print(sitecustomize.mark, any("troupe/hooks" in each for each in sys.path))
        """,
        environment={"PYTHONPATH": f"{build}/libexec/troupe/hooks:{tmp_path}"},
    )
    assert rank.end() == "the next one False\n"


def test_without_torch_nothing_is_loaded(workers) -> None:
    (rank,) = workers("import sys; print('ctypes' in sys.modules, 'typing' in sys.modules)")
    assert rank.end() == "False False\n"
    assert rank.seen() is None


def test_where_pytorch_cannot_be_looked_at_its_functions_are(workers) -> None:
    ranks = workers(
        """
        import os, sys
        sys.path.insert(0, os.environ["PYTHONPATH"].split(os.pathsep)[0])
        from _troupe_hooks import native
        begin = native.begin
        def begin_without_hooks():
            begun = begin()
            native.library.troupe_hook_collectives = lambda *_: 0
            return begun
        native.begin = begin_without_hooks
        import torch, torch.distributed as dist
        from at_rest import leave, show
        dist.init_process_group("gloo")
        if dist.get_rank() == 1:
            show("late")
        else:
            print("enters", flush=True)
        dist.all_reduce(torch.ones(1))
        show("after")
        leave()
        """,
        2,
    )
    assert [each.line() for each in ranks] == ["enters", "late"]
    waiting, late = ranks
    while not (rows := waiting.seen()["communicators"]) or rows[0]["entered"] == 0:
        assert waiting.process.poll() is None
    assert (rows[0]["name"], rows[0]["kind"], rows[0]["left"]) == ("default_pg", "all_reduce", 0)
    assert waiting.seen()["feeds"] & 12 == 4
    late.go()
    for each in ranks:
        assert each.line() == "after"
        assert (row := each.seen()["communicators"][0])["entered"] == row["left"] == 1
        each.go()
        each.end()


def test_pytorch_s_own_record_comes_without_the_interpreter_s_lock(workers) -> None:
    (rank,) = workers(
        """
        import ctypes, sys
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        dist.all_reduce(torch.ones(10))
        record = ctypes.CDLL(sys.modules["_troupe_hooks.native"].LIBRARY).troupe_flight_record
        record.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        record.restype = ctypes.c_int64
        out, why = ctypes.create_string_buffer(1 << 20), ctypes.create_string_buffer(1000)
        size = record(out, 1 << 20, why, 1000)
        print(why.value.decode() if size < 0 else "gloo:all_reduce" in out.value.decode() and size == len(out.value))
        dist.destroy_process_group()
        """,
        environment={"TORCH_FR_BUFFER_SIZE": "100"},
    )
    assert rank.end().strip() in ("True", "this PyTorch has no flight recorder for gloo and NCCL alike (c10d::dump_fr_trace_json)")


def test_a_script_counts_its_own_steps_and_names_its_phases(workers) -> None:
    (rank,) = workers(
        """
        import os, sys
        sys.path.insert(0, os.environ["PACKAGE"])
        import torch, troupe
        from at_rest import show
        layer = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=1)
        for number in range(100, 103):
            for _ in range(4):
                layer(torch.ones(2)).sum().backward()
                optimizer.step()
            troupe.step(number)
        troupe.touch()
        with troupe.phase("sampling"):
            show()
        show("after")
        """,
        environment={"PACKAGE": str(ROOT / "python")},
    )
    rank.line()
    page = rank.seen()
    assert (page["phase"], page["user_phase"]) == ("user", "sampling")
    # Until the script says its first own step, those of the optimizer are counted.
    assert (page["step"], page["steps_made"]) == (102, 4 + 3)
    assert page["touched_ns"] > 0
    rank.go()
    assert rank.line() == "after"
    assert rank.seen()["phase"] == "other"
    rank.go()
    rank.end()


def test_without_a_launcher_the_script_runs_the_same(workers) -> None:
    (rank,) = workers(
        """
        import os, sys
        sys.path.insert(0, os.environ["PACKAGE"])
        import troupe
        troupe.step()
        troupe.touch()
        with troupe.phase("sampling"):
            print("ran")
        """,
        environment={"PACKAGE": str(ROOT / "python"), "TROUPE_PROGRESS_FD": ""},
        hooks=False,
    )
    assert rank.end() == "ran\n"
    assert rank.seen() is None
