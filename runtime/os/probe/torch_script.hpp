#pragma once

/// Answers one line of JSON for each line of its input. Its own output is file 3: libraries print
/// on the standard one. It ends with its input.
namespace troupe::os {

constexpr auto torch_script = R"(
import importlib, json, os, sys, time
if sys.path[:1] == [""]: del sys.path[0] # what lies in the current folder is not installed
answers = os.fdopen(3, "w")
def answer(**what): answers.write(json.dumps(what) + "\n"); answers.flush()
kind, plugin = sys.argv[1:3]
try:
    import torch
    if plugin: importlib.import_module(plugin)
    here = getattr(torch, kind)
except BaseException as e:
    answer(error=("%s: %s" % (type(e).__name__, e)).splitlines()[0]); sys.exit(0)
answer(version=torch.__version__)

def wait(*indices):
    for index in indices: here.synchronize(index)

def listed():
    devices = []
    for index in range(here.device_count()):
        free, total = (0, 0)
        name = kind
        try: name = here.get_device_name(index)
        except Exception: pass
        try: free, total = here.mem_get_info(index)
        except Exception: pass
        devices.append({"name": name, "memory": int(total), "used": int(total - free)})
    return {"devices": devices}

def computed(index, size=4096, times=40):
    # Of each row 256 entries count, so that all sums are whole numbers that bfloat16 has.
    step = max(1, size // 256)
    k = torch.arange(size)
    counts = (k % step == 0)
    a = torch.where(counts[None, :], (k[:, None] + k[None, :] // step) % 3 - 1, 0)
    b = (k[:, None] // step + k[None, :]) % 3 - 1
    rows = torch.arange(0, size, max(1, size // 8))
    expected = a[rows].double() @ b.double()
    device = "%s:%d" % (kind, index)
    x, y = (m.to(torch.bfloat16).to(device) for m in (a, b))
    out = x @ y
    wait(index)
    began = time.perf_counter()
    for _ in range(times): out = x @ y
    wait(index)
    took = time.perf_counter() - began
    if not torch.equal(out.cpu()[rows].double(), expected):
        return {"error": "a product of matrices is wrong"}
    return {"seconds": took, "operations": 2.0 * size ** 3 * times}

def copied(source, target, count=1 << 28, times=8):
    data = torch.zeros(count, dtype=torch.uint8, device="%s:%d" % (kind, source))
    into = torch.empty(count, dtype=torch.uint8, device="%s:%d" % (kind, target))
    into.copy_(data)
    wait(source, target)
    began = time.perf_counter()
    for _ in range(times): into.copy_(data)
    wait(source, target)
    return {"seconds": time.perf_counter() - began, "bytes": float(count * times)}

work = {"list": listed, "compute": computed, "copy": copied}
for line in sys.stdin:
    wanted = json.loads(line)
    try: answer(**work[wanted[0]](*wanted[1:]))
    except Exception as e: answer(error=("%s: %s" % (type(e).__name__, e)).splitlines()[0])
)";

} // namespace troupe::os
