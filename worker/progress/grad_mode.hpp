#pragma once

namespace troupe::worker {

/// Whether PyTorch records gradients in this thread: its own word, in a thread's own memory. True
/// where that is not known.
bool records_gradients();

} // namespace troupe::worker
