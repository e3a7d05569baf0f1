// NCCL's header says the same as cuda_abi.hpp. Compiled by tests/cuda, never run.

#include "runtime/os/probe/abi_compared.hpp"
#include "runtime/os/probe/cuda_abi.hpp"

#include <nccl.h>

#include <type_traits>

namespace {

using namespace troupe::os::cuda;

TROUPE_SAME(ncclGetVersion);
TROUPE_SAME(ncclGetUniqueId);
TROUPE_SAME(ncclCommInitRank);
TROUPE_SAME(ncclCommDestroy);
TROUPE_SAME(ncclCommAbort);
TROUPE_SAME(ncclCommGetAsyncError);
TROUPE_SAME(ncclGetErrorString);
TROUPE_SAME(ncclGetLastError);
TROUPE_SAME(ncclGroupStart);
TROUPE_SAME(ncclGroupEnd);
TROUPE_SAME(ncclAllReduce);
TROUPE_SAME(ncclAllGather);

static_assert(static_cast<int>(ncclSuccess) == nccl_success);
static_assert(static_cast<int>(ncclInProgress) == nccl_in_progress);
static_assert(static_cast<int>(ncclFloat) == nccl_float);
static_assert(static_cast<int>(ncclSum) == nccl_sum);
static_assert(sizeof(ncclUniqueId) == sizeof(nccl_unique_id) &&
              std::is_trivially_copyable_v<nccl_unique_id>);

} // namespace
