#pragma once

#include <cstddef>

namespace troupe::ckpt {

/// memcpy past the caches where the processor can, else memcpy. For pieces that are not read soon.
void stream_copy(char* to, const char* from, std::size_t bytes);

} // namespace troupe::ckpt
